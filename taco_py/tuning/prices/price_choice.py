"""The model of the price that a call names; that of this release is read when it is first used."""

from __future__ import annotations

from importlib.resources import as_file, files

from codegen.user_line import warn_user
from taco_py.arguments.learned_price import ANALYTIC, LEARNED, Price
from taco_py.compiler.devices import remembered
from taco_py.language.diagnostics.cautions import LearnedPriceWarning
from taco_py.language.diagnostics.errors import FileFormatError, OperandTypeError
from taco_py.tuning.prices.model_file import read_model_file
from taco_py.tuning.prices.price_model import LearnedModel, PriceModel, model_in

SHIPPED = "learned_price.npz"


def model_of(price: Price | None) -> LearnedModel | None:
    """Return the model of a price; None for the analytic one.

    None, with a warning, where the file of this release cannot be read.
    """
    if price is None or price == ANALYTIC:
        return None
    if isinstance(price, LearnedModel):
        return price
    if price == LEARNED:
        return shipped_model()
    raise OperandTypeError(f"Expected a price, found {price!r:.80}")


def shipped_model() -> PriceModel | None:
    """Return the learned price that comes with this release, read once."""
    return remembered(("learned price", SHIPPED), _read_shipped)


def _read_shipped() -> PriceModel | None:
    try:
        with as_file(files(__package__) / SHIPPED) as path:
            return model_in(read_model_file(path))
    except (FileFormatError, OSError) as error:
        warn_user(LearnedPriceWarning(f"Plans have their analytic price: {error}"))
        return None
