"""Cumulative sums and products, and differences of neighbours, along a mode.

    T.cumsum(1)[i,j] = sum(k <= j, T[i,k])

The sums of a sparse tensor are stored from the first entry of each line on, the products as long as
no zero has come: what is 0 in each line without entries is not stored.
"""

from __future__ import annotations

from dataclasses import replace
from math import isqrt
from typing import Any

import numpy as np

from taco_py.arrays.elementwise import elementwise
from taco_py.arrays.lines_along import Lines, fill_number, lines_along
from taco_py.arrays.shapes import concatenate, like, of_dense, place_of, reshape
from taco_py.arrays.subscripts_of_modes import part_of
from taco_py.data.storage.room import room
from taco_py.data.storage.tensor_data import Array
from taco_py.data.tensors.tensor import Tensor
from taco_py.language.diagnostics.errors import FormatError

NEUTRAL = {"sum": 0, "prod": 1}


def cumulative(
    name: str,
    T: Tensor,  # noqa: N803
    axis: int | None = None,
    dtype: Any = None,
) -> Tensor:
    """Add up ("sum") or multiply ("prod") along a mode; of all in row-major order without axis.

    Returns a tensor of the same shape, small integers in 64 bits as NumPy. Raises DimensionError,
    and FormatError where no entry of a line is what its elements are: the fill value is neither 0
    nor, for products, 1.
    """
    if axis is None:
        return cumulative(name, reshape(T, -1), 0, dtype)
    place = place_of(axis, T.ndim)
    if T.format.is_dense:
        scan = np.cumsum if name == "sum" else np.cumprod
        return of_dense(scan(T.to_numpy(), axis=place, dtype=dtype))
    data = T.examined()
    fill = fill_number(data)
    if fill != 0 and (name == "sum" or fill != 1):
        raise FormatError(
            f"Expected a tensor of zeros where nothing is stored for a cumulative {name}, found "
            f"the fill value {fill}",
            hint="call .to_dense() of it if the result fits into memory",
        )
    wanted = np.empty(0, data.dtype)
    result = (np.cumsum if name == "sum" else np.cumprod)(wanted, dtype=dtype).dtype
    lines = lines_along(data, place)
    if name == "prod" and fill == 0:
        return _products(T, lines, result)
    scanned = scan_lines(np.add if name == "sum" else np.multiply, lines, result)
    return _spread(T, lines, scanned, "" if name == "sum" else "1")


def scan_lines(combine: np.ufunc, lines: Lines, dtype: np.dtype[Any]) -> Array:
    """Accumulate the entries of each line, one after another as NumPy does.

    Long lines are scanned one by one, short ones all at once, entry after entry.
    """
    found = lines.values.astype(dtype)
    counts = lines.counts
    most = isqrt(len(found)) + 1
    with np.errstate(all="ignore"):
        for line in np.flatnonzero(counts > most):
            span = slice(lines.starts[line], lines.starts[line + 1])
            found[span] = combine.accumulate(found[span])
        short = lines.starts[:-1][counts <= most]
        counts = counts[counts <= most]
        step = 1
        while len(short := short[counts > step]):
            counts = counts[counts > step]
            found[short + step] = combine(found[short + step - 1], found[short + step])
            step += 1
    return found


def _spread(T: Tensor, lines: Lines, scanned: Array, fill: str) -> Tensor:  # noqa: N803
    """Return each value at its own place and those up to the next entry of the line."""
    ends = np.full(len(scanned), lines.size, np.int64)
    same = lines.rank[1:] > 0
    ends[:-1][same] = lines.places[1:][same]
    lengths = ends - lines.places
    total = int(lengths.sum())
    wanted = total * (scanned.itemsize + 8 * T.ndim)
    with room(f"a cumulative sum of {total} entries", wanted):
        entries = np.repeat(np.arange(len(scanned)), lengths)
        within = np.arange(total) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        columns = [column[entries] for column in lines.columns]
        columns[lines.axis] = lines.places[entries] + within
        return _stored(T, columns, scanned[entries], fill)


def _products(T: Tensor, lines: Lines, dtype: np.dtype[Any]) -> Tensor:  # noqa: N803
    """Return products up to the first element of each line that is not stored."""
    scanned = scan_lines(np.multiply, lines, dtype)
    kept = np.flatnonzero(lines.places == lines.rank)
    return _stored(T, [column[kept] for column in lines.columns], scanned[kept], "")


def _stored(T: Tensor, columns: Any, values: Array, fill: str) -> Tensor:  # noqa: N803
    source = replace(T.data, values=values[:0], fill=fill)
    return like(source, columns, values, T.shape)


def with_initial(name: str, found: Tensor, axis: int) -> Tensor:
    """Put what a sum or product of nothing is before the first element along a mode."""
    shape = list(found.shape)
    shape[axis] = 1
    first = of_dense(np.full(shape, NEUTRAL[name], found.dtype))
    return concatenate([first, found], axis)


def diff(
    T: Any,  # noqa: N803
    n: int = 1,
    axis: int = -1,
    prepend: Any = None,
    append: Any = None,
) -> Tensor:
    """Subtract each element from the next one along a mode, n times; truths are compared."""
    place = place_of(axis, T.ndim)
    ends = [each for each in (prepend, T, append) if each is not None]
    found = concatenate(ends, place) if len(ends) > 1 else T
    for _ in range(n):
        later = part_of(found, place, slice(1, None))
        earlier = part_of(found, place, slice(None, -1))
        name = "not_equal" if found.dtype.kind == "b" else "subtract"
        found = elementwise(name, later, earlier)
    return found
