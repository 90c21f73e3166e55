"""The command line: `python -m taco_py demo [file.mtx|file.tns]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from taco_py.api.arguments import MOST_THREADS
from taco_py.diagnostics.errors import CompilerError, InternalError, TacoError
from taco_py.diagnostics.report import internal_error
from taco_py.show.demo import demo

WRONG = 1
BAD_INPUT = 2  # the status argparse too uses for what a user got wrong
OUR_FAULT = 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status.

    0 all is well, 1 a result is wrong or the machine lacks something, 2 bad input, 3 our fault
    """
    options = parser().parse_args(arguments)
    try:
        return demo(options.file, options.threads)
    except CompilerError as error:
        return complain(str(error), WRONG)
    except MemoryError:
        return complain("Expected enough memory for the input, found too little", WRONG)
    except InternalError as error:
        return complain(f"a fault of taco_py, not of its input\n{error}", OUR_FAULT)
    except TacoError as error:
        hint = "" if error.hint is None else f" (hint: {error.hint})"
        return complain(error.message + hint, BAD_INPUT)
    except OSError as error:
        return complain(str(error), BAD_INPUT)
    except Exception as error:
        fault = internal_error(" ".join(map(str, vars(options).values())), error)
        return complain(f"a fault of taco_py, not of its input\n{fault}", OUR_FAULT)


def complain(text: str, status: int) -> int:
    """Print what went wrong; the status."""
    print(f"taco_py: {text}", file=sys.stderr)
    return status


def thread_count(text: str) -> int:
    """The number of threads; argparse turns a ValueError into its own message."""
    count = int(text)
    if not 1 <= count <= MOST_THREADS:
        raise argparse.ArgumentTypeError(
            f"expected a number from 1 to {MOST_THREADS}, found {count}"
        )
    return count


def parser() -> argparse.ArgumentParser:
    """What the command line accepts."""
    top = argparse.ArgumentParser(prog="python -m taco_py", description="sparse tensor compiler")
    commands = top.add_subparsers(required=True, metavar="command")
    run = commands.add_parser(
        "demo",
        help="run the main kernels, check their results and show times beside scipy's",
        description="SpMV, SpMM, SpGEMM and SDDMM on two matrices that the demo builds, or on a "
        "matrix from a file; TTV and MTTKRP on a tensor from a file.",
    )
    run.add_argument("file", nargs="?", help="a .mtx, .tns or .npz file, also gzipped (.gz)")
    run.add_argument(
        "--threads", type=thread_count, default=1, help="threads of our kernels (default 1)"
    )
    return top
