"""The price that a call names: "analytic", or a model."""

from __future__ import annotations

from typing import Any

from taco_py.language.diagnostics.errors import OperandTypeError
from taco_py.tuning.prices.price_model import PriceModel

ANALYTIC = "analytic"


def model_of(price: Any) -> PriceModel | None:
    """Return the model of a price, None for the analytic one. Raises OperandTypeError."""
    if price is None or isinstance(price, PriceModel):
        return price
    if isinstance(price, str) and price == ANALYTIC:
        return None
    raise OperandTypeError(
        f'Expected price="{ANALYTIC}" or a model, found {price!r:.80}',
        hint="tp.load_price reads a model, tp.learn trains one",
    )
