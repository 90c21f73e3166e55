"""Functions of elements that take more than one operation: bounds, decimals, parts, coordinates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from taco_py.arrays.elementwise import elementwise
from taco_py.arrays.shapes import of_dense, zeros_in
from taco_py.data.storage.pack import canonical, unpack
from taco_py.data.storage.tensor_data import Array
from taco_py.data.tensors.tensor import Tensor
from taco_py.language.diagnostics.errors import DimensionError, FormatError
from taco_py.language.fill import as_text, differs


def clip(T: Any, least: Any = None, most: Any = None) -> Any:  # noqa: N803
    """Bound elements; None leaves a bound out, NaN stays."""
    if least is not None and most is not None:
        return elementwise("clip", T, least, most)
    if least is not None:
        return elementwise("maximum", T, least)
    return T if most is None else elementwise("minimum", T, most)


def where(condition: Any, x: Any, y: Any) -> Any:
    """Take elements of x where a condition is not 0, of y elsewhere, in their common dtype."""
    if isinstance(condition, Tensor) and condition.dtype.kind != "b":
        condition = elementwise("not_equal", condition, 0)
    return elementwise("where", condition, x, y)


def conj(T: Tensor) -> Tensor:  # noqa: N803
    """Conjugate; a real tensor is returned unchanged."""
    conjugate: Tensor = elementwise("conj", T) if T.dtype.kind == "c" else T
    return conjugate


def real(T: Tensor) -> Tensor:  # noqa: N803
    """Take real parts; a real tensor is returned unchanged."""
    parts: Tensor = elementwise("real", T) if T.dtype.kind == "c" else T
    return parts


def imag(T: Tensor) -> Tensor:  # noqa: N803
    """Take imaginary parts; zeros for a real tensor."""
    if T.dtype.kind == "c":
        parts: Tensor = elementwise("imag", T)
        return parts
    return Tensor(zeros_in(T.shape, T.dtype, T.format))


def nonzero(T: Tensor) -> tuple[Array, ...]:  # noqa: N803
    """Find the coordinates of elements that are not 0, in row-major order, as np.nonzero does.

    Raises DimensionError of a scalar. Where the fill value is not 0, elements that are not stored
    count too; the result then grows with the size of the tensor.
    """
    if not T.shape:
        raise DimensionError("Expected a tensor of order 1 or more", hint="T.reshape(1) has one")
    if T.data.fill or T.format.is_dense:
        return np.nonzero(T.to_numpy())
    columns, values = unpack(canonical(T.data))
    nonzeros = np.flatnonzero(differs(values, ""))
    columns = tuple(column[nonzeros] for column in columns)
    order = np.lexsort(columns[::-1])
    return tuple(column[order].astype(np.int64) for column in columns)


def nextafter(one: Any, other: Any) -> Tensor:
    """Find the next number of the dtype after each element of one towards the other.

    Raises FormatError for a sparse tensor beside another tensor.
    """
    sparse = [T for T in (one, other) if isinstance(T, Tensor) and not T.format.is_dense]
    if not sparse:
        return of_dense(np.asarray(np.nextafter(*map(_plain, (one, other)))))
    (T, *more), rest = sparse, other if sparse[0] is one else one  # noqa: N806
    if more or np.ndim(_plain(rest)):
        raise FormatError(
            "Expected dense tensors or one beside a number for nextafter, found a sparse one",
            hint="call .to_dense() of it if the result fits into memory",
        )
    data = canonical(T.examined())
    neighbours = [
        np.nextafter(*(numbers if part is T else _plain(rest) for part in (one, other)))
        for numbers in (data.values, T.fill_value)
    ]
    values, fill = neighbours
    return Tensor(replace(data, values=values, fill=as_text(fill.astype(values.dtype))))


def _plain(obj: Any) -> Any:
    return obj.to_numpy() if isinstance(obj, Tensor) else obj
