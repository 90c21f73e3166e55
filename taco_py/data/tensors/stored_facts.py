"""Properties of a stored tensor, on the host or on a device: sizes, types, format, fill value."""

from __future__ import annotations

from typing import Any

import numpy as np

from taco_py.data.storage.by_level.entry_count import entry_count
from taco_py.data.storage.tensor_data import TensorData
from taco_py.language.fill import as_number
from taco_py.language.formats import Format


class StoredFacts:
    """Properties of the arrays `_data`, on the host or on a device."""

    __slots__ = ()

    _data: TensorData

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the size of each mode."""
        return self._data.shape

    @property
    def ndim(self) -> int:
        """Return the number of modes."""
        return len(self._data.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the type of the values."""
        return self._data.dtype

    @property
    def format(self) -> Format:
        """Return the format."""
        return self._data.format

    @property
    def nnz(self) -> int:
        """Return the number of entries: as many as `to_coo` returns, the same in every format.

        A stored zero counts where the format distinguishes it from padding.
        """
        return entry_count(self._data)

    @property
    def value_count(self) -> int:
        """Return the number of values in memory: of entries, and of padding."""
        return int(self._data.values.size)

    @property
    def fill_value(self) -> Any:
        """Return the value of the elements that are not stored, a NumPy number of the dtype.

        >>> tp.Tensor.from_coo([[0, 1]], [5.0], (2, 3), axis=1, fill_value=-np.inf).fill_value
        np.float64(-inf)
        """
        return as_number(self._data.fill, self._data.dtype)
