"""A price from the times of a store of tuned plans, or from a file of times."""

from __future__ import annotations

from pathlib import Path

from taco_py.language.diagnostics.errors import FileFormatError, OperandTypeError
from taco_py.tuning.prices.plan_counts import data_of_records
from taco_py.tuning.prices.price_data import PriceData, load_data
from taco_py.tuning.prices.price_model import PriceModel
from taco_py.tuning.prices.train_price import trained
from taco_py.tuning.store.fingerprint import target_here
from taco_py.tuning.store.store_file import StoreFile
from taco_py.tuning.store.trial_log import trials_of

PATIENCE = 30.0
"""Seconds that a lock of others is waited for."""
GROWN = 1.2
"""How many times as many plans there have to be as a model has seen for another one."""


def learned(source: StoreFile | Path, earlier: PriceModel | None) -> PriceModel:
    """Return the price that times say; an earlier one unless there are many more by now.

    Raises OperandTypeError for an earlier price of another kind, FileFormatError, and what
    `trained` raises.
    """
    if not isinstance(earlier, PriceModel | None):
        raise OperandTypeError(
            f"Expected the earlier price to be a model of trees, found {earlier!r:.80}",
            hint="leave earlier= out to train one",
        )
    data = data_of_store(source) if isinstance(source, StoreFile) else data_of_path(source)
    if earlier is not None and len(data.rest) < GROWN * earlier.origin.records:
        return earlier
    return trained(data)


def data_of_path(path: Path) -> PriceData:
    """Return the times of a store or of a file of times. Raises FileFormatError."""
    with path.open("rb") as file:
        head = file.read(16)
    if head.startswith(b"SQLite format 3"):
        store = StoreFile(path, PATIENCE, write=False)
        try:
            return data_of_store(store)
        finally:
            store.close()
    if head.startswith(b"PK"):
        return load_data(path)
    raise FileFormatError(
        f"Expected a store of tuned plans or a file of times, found neither in {path}",
        hint="tp.tune fills a store",
    )


def data_of_store(file: StoreFile) -> PriceData:
    """Return the times of plans on this machine that a store has with their counts."""
    with file.read() as connection:
        return data_of_records(trials_of(connection, None), target_here())
