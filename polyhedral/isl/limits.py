"""A context of ISL with a budget of operations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from polyhedral.errors import BudgetExceededError, ScheduleError

if TYPE_CHECKING:
    import islpy


BUDGET = 2_000_000
"""The default budget of ISL's operations for one question."""


@contextmanager
def limited(budget: int) -> Iterator[islpy.Context]:
    """Yield a fresh context whose operations, in total, stay within `budget` (0: no limit).

    Raises BudgetExceededError out of the `with` block, and ScheduleError for a negative budget.
    """
    import islpy

    if budget < 0:
        raise ScheduleError(f"Expected a budget of 0 operations or more, found {budget}.")
    context = islpy.Context()
    context.set_max_operations(budget)
    try:
        yield context
    except islpy.Error as error:
        if not is_exhausted(context):
            raise
        raise BudgetExceededError(
            f"Expected ISL to answer within {context.get_max_operations()} operations, found it "
            "needs more.",
            "give a larger budget, or keep the loops as they are",
        ) from error
    finally:
        context.set_max_operations(0)


def is_exhausted(context: islpy.Context) -> bool:
    """Tell whether the budget is used up: then a trivial operation fails, too."""
    import islpy

    try:
        islpy.Set.read_from_str(context, "{ : }")
    except islpy.Error:
        return True
    return False
