"""Places of the least and the largest element along a mode, or of all.

    T.argmax(1)[i] = the first j with T[i,j] = max(k, T[i,k])

The extremum of a line without entries is at 0, so that a sparse tensor has a sparse result. Entries
are compared with the first element of their line that is not stored.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from taco_py.arrays.lines_along import Lines, fill_number, lines_along
from taco_py.arrays.numpy_surface.axes import place_of
from taco_py.arrays.shapes import expand_dims, like, of_dense, reshape
from taco_py.data.storage.tensor_data import Array
from taco_py.data.tensors.tensor import Tensor
from taco_py.language.diagnostics.errors import OperandError, OperandTypeError


def place_of_extremum(
    name: str,
    T: Tensor,  # noqa: N803
    axis: int | None = None,
    keepdims: bool = False,
) -> Any:
    """Find the first index with the least or the largest value along a mode.

    name  argmin or argmax
    axis  None for the index of all elements in row-major order

    NaN counts as the extremum. Returns a Tensor of int64, or a number where no mode is left. Raises
    OperandError for no elements, OperandTypeError for complex numbers.
    """
    if T.dtype.kind == "c":
        raise OperandTypeError(
            f"Expected real numbers to compare, found {T.dtype}", hint="take abs(T) or T.real"
        )
    if axis is None:
        index = _extremum_along(name, reshape(T, (-1,)), 0)
        return expand_dims(index, tuple(range(T.ndim))) if keepdims else index
    place = place_of(axis, T.ndim)
    index = _extremum_along(name, T, place)
    return expand_dims(index, (place,)) if keepdims else index


def _extremum_along(name: str, T: Tensor, axis: int) -> Any:  # noqa: N803
    if not T.shape[axis]:
        raise OperandError(
            "Expected elements to find the place of an extremum in, found none",
            hint=f"the shape is {T.shape}",
        )
    if T.format.is_dense:
        numbers = T.to_numpy()
        positions = np.argmin(numbers, axis) if name == "argmin" else np.argmax(numbers, axis)
        return of_dense(np.asarray(positions)) if np.ndim(positions) else np.int64(positions)
    data = T.examined()
    lines = lines_along(data, axis)
    places = _places(name, lines, fill_number(data))
    if T.ndim == 1:
        return np.int64(places[0] if len(places) else 0)
    shape = T.shape[:axis] + T.shape[axis + 1 :]
    source = replace(data, values=places[:0], fill="")
    nonzeros = np.flatnonzero(places)
    return like(source, [column[nonzeros] for column in lines.heads()], places[nonzeros], shape)


def _places(name: str, lines: Lines, fill: Any) -> Array:
    """Return the place of the extremum in each line that has entries."""
    values, starts = lines.values, lines.starts[:-1]
    if not len(values):
        return np.zeros(0, np.int64)
    best = (np.minimum if name == "argmin" else np.maximum).reduceat(values, starts)
    best_of_line = np.repeat(best, lines.counts)
    is_best = (values == best_of_line) | (values != values)  # a NaN is the best of its line
    places = np.minimum.reduceat(np.where(is_best, lines.places, lines.size), starts)
    gaps = first_gaps(lines)
    if fill != fill:
        better, equal = best == best, best != best
    else:
        better, equal = fill < best if name == "argmin" else fill > best, fill == best
    absent = (gaps < lines.size) & (better | (equal & (gaps < places)))
    chosen_places: Array = np.where(absent, gaps, places)
    return chosen_places


def first_gaps(lines: Lines) -> Array:
    """Return the first place of each line that is not stored, or the line's size without one."""
    gap = lines.places != lines.rank
    first_ranks = np.minimum.reduceat(np.where(gap, lines.rank, lines.size), lines.starts[:-1])
    return np.minimum(first_ranks, lines.counts)
