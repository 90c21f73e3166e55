"""The command line: `python -m taco_py demo [file.mtx|file.tns]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from taco_py.diagnostics.errors import CompilerError, TacoError
from taco_py.show.demo import demo

BAD_INPUT = 2  # the status argparse too uses for what a user got wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status: 0 all is well, 1 a result is wrong, 2 bad input."""
    options = parser().parse_args(arguments)
    try:
        return demo(options.file, options.threads)
    except CompilerError as error:
        print(f"taco_py: {error}", file=sys.stderr)
        return 1
    except (TacoError, OSError) as error:
        print(f"taco_py: {error}", file=sys.stderr)
        return BAD_INPUT


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
    run.add_argument("--threads", type=int, default=1, help="threads of our kernels (default 1)")
    return top
