"""The command line: `taco-py <expression> [flags]`, `taco-py demo [file.mtx|file.tns]`,
`taco-py store list|show|export|merge|prune FILE`, `taco-py tune tasks.toml --store FILE` and
`taco-py calibrate`.

All are also `python -m taco_py …`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from taco_py import __version__
from taco_py.arguments.option_checks import MOST_THREADS
from taco_py.compiler.schedule.parser import syntax
from taco_py.language.diagnostics.errors import CompilerError, DeviceError, InternalError, TacoError
from taco_py.language.diagnostics.report import internal_error
from taco_py.tool.calibrate_command import add_calibrate_command, run_calibrate
from taco_py.tool.demo import demo
from taco_py.tool.flags import help_text, parse_flags
from taco_py.tool.run_command import run_tool
from taco_py.tool.store_command import add_store_commands, run_store
from taco_py.tool.tune_command import add_tune_command, run_tune

COMMANDS = {"store": run_store, "tune": run_tune, "calibrate": run_calibrate}
WRONG = 1
BAD_INPUT = 2  # the status argparse too uses for what a user got wrong
OUR_FAULT = 3
INTERRUPTED = 128 + 2  # of a process that Ctrl-C ends, as shells count
NO_READER = 128 + 13  # of one that writes into a pipe that nobody reads any more


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status.

    0 all is well, 1 a result is wrong or the machine lacks something, 2 bad input, 3 our fault,
    130 interrupted, 141 the reader of what is printed has gone
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if is_expression(words):
        return guarded(lambda: expression(words), " ".join(words))
    options = parser().parse_args(words)
    if words[0] in COMMANDS:
        return guarded(lambda: COMMANDS[words[0]](options), " ".join(words))
    return guarded(
        lambda: demo(options.file, options.threads), " ".join(map(str, vars(options).values()))
    )


def is_expression(words: Sequence[str]) -> bool:
    """Tell whether the words are an expression with flags, and no command."""
    return not words or words[0] not in ("demo", *COMMANDS)


def expression(words: Sequence[str]) -> int:
    """Compile and run an expression as its flags say."""
    line = parse_flags(["-help" if word == "-h" else word for word in words])
    if line.has("version"):
        print(f"taco-py {__version__}")
    elif line.has("help"):
        print(scheduling_help() if line.last("help") == "scheduling" else help_text())
    else:
        return run_tool(line)
    return 0


def scheduling_help() -> str:
    """Return the scheduling commands, a line each."""
    return "\n".join(f"  {name:<12} takes {takes}" for name, takes in syntax().items())


def guarded(act: Callable[[], int], input: str) -> int:
    """Return the exit status of `act`, or of the error that ends it, which is printed."""
    try:
        status = act()
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        return complain("interrupted", INTERRUPTED)
    except BrokenPipeError:
        return silenced()
    except (CompilerError, DeviceError) as error:
        return complain(str(error), WRONG)
    except MemoryError as error:
        plain = "Expected enough memory for the input, found too little"
        return complain(error.message if isinstance(error, TacoError) else plain, BAD_INPUT)
    except InternalError as error:
        return complain(f"a fault of taco_py, not of its input\n{error}", OUR_FAULT)
    except TacoError as error:
        hint = "" if error.hint is None else f" (hint: {error.hint})"
        return complain(error.message + hint, BAD_INPUT)
    except OSError as error:
        reason = str(error) if error.filename is None else f"{error.strerror}: {error.filename!r}"
        return complain(reason, BAD_INPUT)
    except Exception as error:
        fault = internal_error("compile", input, error)
        return complain(f"a fault of taco_py, not of its input\n{fault}", OUR_FAULT)


def silenced() -> int:
    """Return the status where nobody reads the output; Python's last flush goes nowhere then."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return NO_READER


def complain(text: str, status: int) -> int:
    """Print the error, and return the status."""
    print(f"taco-py: {text}", file=sys.stderr)
    return status


def thread_count(text: str) -> int:
    """Return the number of threads; argparse turns a ValueError into its own message."""
    count = int(text)
    if not 1 <= count <= MOST_THREADS:
        raise argparse.ArgumentTypeError(
            f"expected a number from 1 to {MOST_THREADS}, found {count}"
        )
    return count


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    top = argparse.ArgumentParser(prog="taco-py", description="sparse tensor compiler")
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
    add_store_commands(commands)
    add_tune_command(commands)
    add_calibrate_command(commands)
    return top
