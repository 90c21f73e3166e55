"""What can go wrong with affine programs. Messages name the access, the loop or the statement."""

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
    """A schedule was asked for that the nest does not have: unknown loops, sizes below 1."""


class BudgetExceededError(PolyhedralError):
    """An ISL operation used up its budget. Callers fall back to what needs no answer."""


class LargeCodeError(PolyhedralError):
    """A plan makes more loops than a C compiler takes well. Callers fall back to a plainer one."""
