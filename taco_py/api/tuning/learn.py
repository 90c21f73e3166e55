"""`learn`: a price from what plans took."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from taco_py.tuning.prices.learn_price import learned
from taco_py.tuning.prices.price_model import PriceModel

if TYPE_CHECKING:
    from taco_py.tuning.bench.tuning_store import TuningStore


def learn(times: TuningStore | str | Path, *, earlier: PriceModel | None = None) -> PriceModel:
    """Return a price that is fitted to the times of plans on this machine.

    LightGBM grows its trees.

    >>> with tp.TuningStore() as store:
    ...     tp.learn(store)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    TuningStoreError: Expected the times of 200 plans at least to learn from, found 0
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "times.npz"
    >>> path.write_bytes(b"something else")
    14
    >>> tp.learn(path)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    FileFormatError: Expected a store of tuned plans or a file of times, found neither

    times    a store that `tune` filled, or its path; or a file that
             `python -m benchmarks.price_data pack` writes
    earlier  a model of the same times, which is returned unless there are a fifth more by now

    Raises FileFormatError, TuningStoreError for too few plans, OperandTypeError for an earlier
    price that is no model of trees, and MissingExtraError without the extra `tacopy[learn]`.
    """
    source: Any = times
    return learned(getattr(source, "file", None) or Path(source), earlier)
