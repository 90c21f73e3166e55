"""A learned price of plans, as an option of calls: `taco_py.tuning.prices` has the trees."""

from __future__ import annotations

from typing import Any

from taco_py.language.diagnostics.errors import OperandTypeError
from taco_py.language.diagnostics.suggest import with_suggestion

ANALYTIC, LEARNED = "analytic", "learned"
"""The prices that calls name: the planner's own, and the one that comes with this release."""


class LearnedPrice:
    """A price that was learned from times. Two of one digest are equal.

    digest  of the numbers that make the price
    """

    __slots__ = ()
    digest: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LearnedPrice) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.digest}>"


Price = LearnedPrice | str


def check_price(price: Any) -> Price:
    """Return the price that a call names. Raises OperandTypeError for anything else."""
    if isinstance(price, LearnedPrice):
        return price
    if isinstance(price, str) and price in (ANALYTIC, LEARNED):
        return price
    raise OperandTypeError(
        f"Expected price to be '{ANALYTIC}', '{LEARNED}' or a model, found {price!r:.80}",
        hint=with_suggestion(
            "tp.load_price reads a model, tp.learn trains one", str(price), (ANALYTIC, LEARNED)
        ),
    )
