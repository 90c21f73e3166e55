"""The errors of affine programs. Messages name the access, the loop or the statement."""

from __future__ import annotations


class PolyhedralError(ValueError):
    """Base of the errors of this package. `hint` is the remedy, where there is one."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        self.message = message
        self.hint = hint
        super().__init__(message if hint is None else f"{message}\nhint: {hint}")


class NonAffineError(PolyhedralError):
    """A bound or a subscript is no integer combination of loop variables and parameters."""


class NestError(PolyhedralError):
    """A statement or nest contradicts itself: names used twice, bounds that use inner loops."""


class ScheduleError(PolyhedralError):
    """A schedule is impossible for the nest: it has unknown loops, or sizes below 1."""


class BudgetExceededError(PolyhedralError):
    """An ISL operation used up its budget. Callers fall back to methods without ISL."""


class LargeCodeError(PolyhedralError):
    """A plan has more loops than a C compiler handles well. Callers fall back to a simpler plan."""
