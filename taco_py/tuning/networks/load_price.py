"""`tp.load_price`: the file of a learned price, be it of trees or of a network."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from taco_py.language.diagnostics.errors import OperandTypeError
from taco_py.tuning.networks.network import network_in
from taco_py.tuning.prices.model_file import read_model_file
from taco_py.tuning.prices.price_model import LearnedModel, model_in


def load_price(path: str | Path) -> LearnedModel:
    """Return the learned price that `save` wrote to a file; nothing in it is run.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "mine.npz"
    >>> path.write_bytes(b"something else")
    14
    >>> tp.load_price(path)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    FileFormatError: Expected a file of a learned price, found something else

    path  of the file, of trees or of a network

    Raises FileFormatError for a file of something else, one that is cut off, or one of a release
    with another version of files or other features.
    """
    if not isinstance(path, str | PathLike):
        raise OperandTypeError(f"Expected the path of a learned price, found {path!r:.80}")
    file = read_model_file(path)
    return network_in(file) if "kind" in file.words else model_in(file)
