"""A call's operands in a file of a private folder, for a process that is to read them once.

Arrays keep their strides: plans are made for these.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from taco_py.data.storage.tensor_data import Array


class UnpassableError(Exception):
    """Something cannot be passed to another process."""


@contextmanager
def operand_file(content: Any) -> Iterator[Path]:
    """Yield the path of a file with the pickled operands, until the block is left.

    Raises UnpassableError.
    """
    with TemporaryDirectory(prefix="tacopy-tune-") as folder:
        path = Path(folder) / "operands"
        try:
            with path.open("wb") as file:
                _Pickler(file, pickle.HIGHEST_PROTOCOL).dump(content)
        except (pickle.PicklingError, TypeError, AttributeError, OSError) as error:
            raise UnpassableError(str(error)) from error
        yield path


def read_operands(path: str) -> Any:
    """Read the operands that `operand_file` wrote."""
    with Path(path).open("rb") as file:
        return pickle.load(file)


class _Pickler(pickle.Pickler):
    """Keeps the strides of arrays that do not lie together."""

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is not np.ndarray or obj.flags.forc or not obj.size:
            return NotImplemented
        return strided_like, (np.ascontiguousarray(obj), obj.strides)


def strided_like(values: Array, strides: tuple[int, ...]) -> Array:
    """Return the values in new memory with these strides, which may be 0 or less."""
    ends = [step * (n - 1) for step, n in zip(strides, values.shape, strict=True)]
    offset = -sum(min(0, end) for end in ends)
    memory = np.zeros(offset + sum(max(0, end) for end in ends) + values.itemsize, np.uint8)
    array = np.ndarray(values.shape, values.dtype, memory, offset, strides)
    array[...] = values
    return array
