"""Cumulative sums and products, and differences of neighbours, along a mode.

    T.cumsum(1)[i,j] = sum(k <= j, T[i,k])

A sparse tensor's sums are stored from the first entry of each line on, its products up to the first
zero of each line. Lines without entries store nothing.
"""

from __future__ import annotations

from dataclasses import replace
from math import isqrt
from typing import Any

import numpy as np

from taco_py.arrays.lines_along import Lines, fill_number, lines_along
from taco_py.arrays.numpy_surface.axes import place_of
from taco_py.arrays.shapes import concatenate, like, of_dense, reshape
from taco_py.data.storage.room import room
from taco_py.data.storage.tensor_data import Array
from taco_py.data.tensors.tensor import Tensor
from taco_py.language.diagnostics.errors import DimensionError, FormatError

NEUTRAL = {"sum": 0, "prod": 1}


def cumulative(
    name: str,
    T: Tensor,  # noqa: N803
    axis: int | None = None,
    dtype: Any = None,
) -> Tensor:
    """Add up ("sum") or multiply ("prod") along a mode; without axis, in row-major order.

    Returns a tensor of the same shape; small integers become 64 bits, as in NumPy. Raises
    DimensionError, and FormatError where the result would be dense: the fill value is neither 0
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
    empty = np.empty(0, data.dtype)
    result = (np.cumsum if name == "sum" else np.cumprod)(empty, dtype=dtype).dtype
    lines = lines_along(data, place)
    if name == "prod" and fill == 0:
        return _products(T, lines, result)
    scanned = scan_lines(np.add if name == "sum" else np.multiply, lines, result)
    return _fill_lines(T, lines, scanned, "" if name == "sum" else "1")


def scan_lines(combine: np.ufunc, lines: Lines, dtype: np.dtype[Any]) -> Array:
    """Accumulate the entries of each line, one after another as NumPy does.

    Long lines are scanned one by one, short ones together, entry after entry.
    """
    scanned = lines.values.astype(dtype)
    counts = lines.counts
    most = isqrt(len(scanned)) + 1
    with np.errstate(all="ignore"):
        for line in np.flatnonzero(counts > most):
            span = slice(lines.starts[line], lines.starts[line + 1])
            scanned[span] = combine.accumulate(scanned[span])
        short = lines.starts[:-1][counts <= most]
        counts = counts[counts <= most]
        step = 1
        while len(short := short[counts > step]):
            counts = counts[counts > step]
            scanned[short + step] = combine(scanned[short + step - 1], scanned[short + step])
            step += 1
    return scanned


def _fill_lines(T: Tensor, lines: Lines, scanned: Array, fill: str) -> Tensor:  # noqa: N803
    """Repeat each value up to the next entry of its line."""
    ends = np.full(len(scanned), lines.size, np.int64)
    same = lines.rank[1:] > 0
    ends[:-1][same] = lines.places[1:][same]
    lengths = ends - lines.places
    total = int(lengths.sum())
    byte_count = total * (scanned.itemsize + 8 * T.ndim)
    with room(f"a cumulative sum of {total} entries", byte_count):
        entries = np.repeat(np.arange(len(scanned)), lengths)
        offsets = np.arange(total) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        columns = [column[entries] for column in lines.columns]
        columns[lines.axis] = lines.places[entries] + offsets
        return _stored(T, columns, scanned[entries], fill)


def _products(T: Tensor, lines: Lines, dtype: np.dtype[Any]) -> Tensor:  # noqa: N803
    """Return products up to the first element of each line that is not stored."""
    scanned = scan_lines(np.multiply, lines, dtype)
    before_gap = np.flatnonzero(lines.places == lines.rank)
    return _stored(T, [column[before_gap] for column in lines.columns], scanned[before_gap], "")


def _stored(T: Tensor, columns: Any, values: Array, fill: str) -> Tensor:  # noqa: N803
    source = replace(T.data, values=values[:0], fill=fill)
    return like(source, columns, values, T.shape)


def standard_scan(
    name: str, x: Any, axis: int | None, dtype: Any, include_initial: bool = False
) -> Tensor:
    """Add up ("sum") or multiply ("prod") along a mode, as the array API standard has it.

    include_initial  whether the neutral element comes first

    Raises DimensionError where the mode is not said for a tensor of several.
    """
    if axis is None and x.ndim != 1:
        raise DimensionError(
            f"Expected an axis for a tensor of order {x.ndim}, found none", hint="axis=0"
        )
    place = place_of(axis or 0, x.ndim)
    scanned = cumulative(name, x, place, dtype)
    if not include_initial:
        return scanned
    shape = (*x.shape[:place], 1, *x.shape[place + 1 :])
    first = of_dense(np.full(shape, NEUTRAL[name], scanned.dtype))
    return concatenate([first, scanned], place)
