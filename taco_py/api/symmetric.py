"""`symmetric`: a matrix of which one triangle is stored, and both are used."""

from __future__ import annotations

from typing import Any

import numpy as np

from taco_py.data.storage.pack import pack_coo, unpack
from taco_py.data.storage.sizes import index_dtype_of
from taco_py.data.tensors.remapped_tensor import RemappedTensor, in_format
from taco_py.data.tensors.tensor import Tensor, as_data
from taco_py.language.diagnostics.errors import FormatError, OperandError
from taco_py.language.formats import SYM

TRIANGLES = ("lower", "upper")


def symmetric(A: Any, triangle: str | None = None) -> Tensor:  # noqa: N803 - the field's name
    """Store one triangle of a symmetric matrix; kernels read each entry once and use it twice.

    >>> T = tp.symmetric(np.array([[2.0, 1.0], [1.0, 0.0]]))
    >>> T.stored.value_count, tp.evaluate("y[i] = A[i,j] * x[j]", A=T, x=np.array([1.0, 10.0]))
    (2, array([12.,  1.]))

    A         a matrix of any kind; a symmetric one where no triangle is named
    triangle  "lower" or "upper": the entries that are taken, with the diagonal; what A has in the
              other triangle is not looked at

    Raises FormatError for a matrix that is not square, or has other entries above its diagonal than
    below; OperandError for another triangle.
    """
    data = as_data(A)
    if triangle is None:
        return in_format(Tensor(data), SYM)
    if triangle not in TRIANGLES:
        raise OperandError(
            f'Expected triangle to be "lower" or "upper", found {triangle!r}',
            hint="leave it out for a matrix that is symmetric",
        )
    if len(data.shape) != 2 or data.shape[0] != data.shape[1]:
        raise FormatError(
            f"Expected a square matrix, found a tensor of shape {data.shape}",
            hint="only these are symmetric",
        )
    (rows, columns), values = unpack(data, drop_fill=True)
    selected = rows >= columns if triangle == "lower" else rows <= columns
    one, other, values = rows[selected], columns[selected], values[selected]
    larger, smaller = (one, other) if triangle == "lower" else (other, one)
    turn = np.zeros(len(values), np.int64)
    size = data.shape[0]
    kind = None if data.format.is_dense else index_dtype_of(data)
    coordinates = (larger, smaller, turn, larger, smaller)
    shape = (size, size, 2, size, size)
    stored = pack_coo(coordinates, values, shape, SYM.inner, kind, data.fill)
    return RemappedTensor(stored, SYM, data.shape)
