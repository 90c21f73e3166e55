"""Places of the least and the largest element along a mode, or of all.

    T.argmax(1)[i] = the first j with T[i,j] = max(k, T[i,k])

Lines without entries have their first element at 0, so that the result is sparse where the tensor
is: entries are compared with the first element of their line that is not stored.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from taco_py.arrays.lines_along import Lines, fill_number, lines_along
from taco_py.arrays.shapes import expand_dims, like, of_dense, place_of, reshape
from taco_py.data.storage.tensor_data import Array
from taco_py.data.tensors.tensor import Tensor
from taco_py.language.diagnostics.errors import OperandError, OperandTypeError


def place_of_extremum(
    name: str,
    T: Tensor,  # noqa: N803
    axis: int | None = None,
    keepdims: bool = False,
) -> Any:
    """Find the first index with the least or the largest value along a mode, of all in row-major
    order where axis is None; a NaN is both.

    name  argmin or argmax

    Returns a Tensor of int64, a number where no mode is left. Raises OperandError of no elements,
    OperandTypeError of complex numbers.
    """
    if T.dtype.kind == "c":
        raise OperandTypeError(
            f"Expected real numbers to compare, found {T.dtype}", hint="take abs(T) or T.real"
        )
    if axis is None:
        found = _along(name, reshape(T, (-1,)), 0)
        return expand_dims(found, tuple(range(T.ndim))) if keepdims else found
    place = place_of(axis, T.ndim)
    found = _along(name, T, place)
    return expand_dims(found, (place,)) if keepdims else found


def _along(name: str, T: Tensor, axis: int) -> Any:  # noqa: N803
    if not T.shape[axis]:
        raise OperandError(
            "Expected elements to find the place of an extremum in, found none",
            hint=f"the shape is {T.shape}",
        )
    if T.format.is_dense:
        numbers = T.to_numpy()
        found = np.argmin(numbers, axis) if name == "argmin" else np.argmax(numbers, axis)
        return of_dense(np.asarray(found)) if np.ndim(found) else np.int64(found)
    data = T.examined()
    lines = lines_along(data, axis)
    places = _places(name, lines, fill_number(data))
    if T.ndim == 1:
        return np.int64(places[0] if len(places) else 0)
    shape = T.shape[:axis] + T.shape[axis + 1 :]
    source = replace(data, values=places[:0], fill="")
    kept = np.flatnonzero(places)
    return like(source, [column[kept] for column in lines.heads()], places[kept], shape)


def _places(name: str, lines: Lines, fill: Any) -> Array:
    """Return the place in each line that has entries."""
    values, starts = lines.values, lines.starts[:-1]
    if not len(values):
        return np.zeros(0, np.int64)
    best = (np.minimum if name == "argmin" else np.maximum).reduceat(values, starts)
    met = np.repeat(best, lines.counts)
    is_best = (values == met) | (values != values)  # a NaN is the best of its line
    places = np.minimum.reduceat(np.where(is_best, lines.places, lines.size), starts)
    gaps = first_gaps(lines)
    if fill != fill:
        better, equal = best == best, best != best
    else:
        better, equal = fill < best if name == "argmin" else fill > best, fill == best
    absent = (gaps < lines.size) & (better | (equal & (gaps < places)))
    found: Array = np.where(absent, gaps, places)
    return found


def first_gaps(lines: Lines) -> Array:
    """Return the first place in each line that is not stored; the size of the line where all
    are."""
    gap = lines.places != lines.rank
    found = np.minimum.reduceat(np.where(gap, lines.rank, lines.size), lines.starts[:-1])
    return np.minimum(found, lines.counts)
