"""`learn`: a price from what plans took."""

from __future__ import annotations

from pathlib import Path

from taco_py.tuning.prices.price_data import load_data
from taco_py.tuning.prices.price_model import PriceModel
from taco_py.tuning.prices.train_price import trained


def learn(times: str | Path) -> PriceModel:
    """Return a price that is fitted to the times of plans on one machine.

    LightGBM grows its trees.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "times.npz"
    >>> path.write_bytes(b"something else")
    14
    >>> tp.learn(path)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    FileFormatError: Expected a file of what plans took, found none

    times  a file that `python -m benchmarks.price_data pack` writes

    Raises FileFormatError, TuningStoreError for too few plans, and MissingExtraError without the
    extra `tacopy[learn]`.
    """
    return trained(load_data(times))
