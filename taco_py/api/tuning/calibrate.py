"""`calibrate`: the prices of plans made to fit this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taco_py.tuning.calibration.calibrate_price import calibrate_price
from taco_py.tuning.tasks.search_options import checked_search_option

if TYPE_CHECKING:
    from taco_py.tuning.calibration.calibration_report import CalibrationReport


def calibrate(seconds: float = 60.0, *, save: bool = True) -> CalibrationReport:
    """Measure small kernels, and fit the costs that plans are compared by to this machine.

    Later plans of this processor and compiler follow them, in other processes too.

    >>> report = tp.calibrate(seconds=0.01, save=False)
    >>> print(report)  # doctest: +ELLIPSIS
    calibrated ...
    >>> report.saved, min(report.factors.values()) > 0
    (False, True)

    seconds  for all of it; with fewer than it takes to measure each kernel nothing is kept
    save     whether later plans follow what is found, and a file beside the compiled kernels keeps
             it; what was kept before stays until all is measured, also where this is interrupted

    Raises CompilerError without a compiler, OSError where nothing can be kept, and
    OperandTypeError.
    """
    seconds = checked_search_option("seconds", seconds)
    return calibrate_price(seconds, save)
