"""`taco-py calibrate`: prices of plans made to fit this machine, or again as they were shipped."""

from __future__ import annotations

import argparse
from typing import Any

from taco_py.language.diagnostics.errors import CompilerError


def add_calibrate_command(commands: Any) -> None:
    """Let a parser take `calibrate` and its arguments."""
    calibrate = commands.add_parser(
        "calibrate",
        help="fit the prices of plans to this processor and compiler",
        description="Times about 40 small kernels, and fits the costs that plans are compared by. "
        "They are kept beside the compiled kernels, for later plans of this processor and "
        "compiler. Interrupted with Ctrl-C, it leaves what was kept before.",
    )
    calibrate.add_argument("--seconds", type=float, default=60.0, help="for all of it (60)")
    either = calibrate.add_mutually_exclusive_group()
    either.add_argument("--dry-run", action="store_true", help="show what is found, keep nothing")
    either.add_argument(
        "--reset", action="store_true", help="remove what was kept: prices are as shipped again"
    )


def run_calibrate(options: argparse.Namespace) -> int:
    """Carry out a `calibrate` command. Raises CompilerError, OperandTypeError or OSError."""
    if options.reset:
        return _reset()
    from taco_py.api.tuning.calibrate import calibrate

    print(calibrate(options.seconds, save=not options.dry_run))
    return 0


def _reset() -> int:
    """Remove the calibration of this machine."""
    from codegen.toolchain.errors import ToolchainError
    from taco_py.data.kept_calibration import forget_calibration

    try:
        removed = forget_calibration()
    except ToolchainError as error:
        raise CompilerError(error.message, hint=error.hint) from error
    print("prices are as shipped" + ("" if removed else ", as they were"))
    return 0
