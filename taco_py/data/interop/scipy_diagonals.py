"""scipy.sparse's dia arrays as stored tensors, around the same arrays.

data[k, j] is the element in column j of the diagonal offsets[k], in row j - offsets[k]. Elements of
`data` outside of the rows are ignored.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from taco_py.data.storage.borrow import plain, require_dtype
from taco_py.data.storage.tensor_data import LevelArrays, TensorData
from taco_py.language.diagnostics.errors import StructureError
from taco_py.language.formats.diagonals import DIA_OF_COLUMNS
from taco_py.language.formats.remapped import RemappedFormat

DIA_TYPES = (sp.dia_array, sp.dia_matrix)
NO_ARRAYS = LevelArrays()


def is_dia(x: Any) -> bool:
    """Tell whether `x` is a dia_array or dia_matrix whose diagonals are as long as its rows."""
    return type(x) in DIA_TYPES and x.data.ndim == 2 and x.data.shape[1] == x.shape[1]


def from_dia(A: Any) -> tuple[TensorData, RemappedFormat]:  # noqa: N803 - the field's name
    """Return the stored tensor of a dia array, which borrows its values, and its format.

    offsets, data of shape (diagonals, columns)   →   ddo of shape (diagonals, columns, rows)

    Raises OperandTypeError for an unsupported dtype, StructureError where the lengths contradict
    each other.
    """
    values, offsets = A.data, np.asarray(A.offsets)
    require_dtype(values.dtype, "values")
    count = len(values)
    if offsets.shape != (count,) or offsets.dtype.kind != "i":
        raise StructureError(
            f"Expected an offset for each of {count} diagonals, found {offsets.dtype} of shape "
            f"{offsets.shape}",
            hint="rebuild the matrix from its diagonals",
        )
    if not plain(values) or not values.dtype.isnative:
        native = values.dtype.newbyteorder("=")
        values = np.require(values, dtype=native, requirements=["C", "A"])
    rows, columns = A.shape
    kind = np.int32 if max(rows, columns, values.size) < 2**31 else np.int64
    unique = len(np.unique(offsets)) == count
    inside = np.clip(offsets, -rows, columns)  # diagonals beyond are empty
    levels = (NO_ARRAYS, NO_ARRAYS, LevelArrays(crd=(-inside).astype(kind)))
    shape = (count, columns, rows)
    form = DIA_OF_COLUMNS
    data = TensorData(form.inner, shape, levels, values.reshape(-1), sorted=True, unique=unique)
    return data, form
