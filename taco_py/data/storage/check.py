"""Checks that a stored tensor is well formed. Kernels read without bounds checks, so that input is
checked here: always for files, and for operands when the user asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from taco_py.data.storage.borrow import require_dtype
from taco_py.data.storage.by_level.kinds_packed import packing_of
from taco_py.data.storage.sizes import level_sizes
from taco_py.data.storage.tensor_data import Array, TensorData, ordered
from taco_py.language.diagnostics.errors import (
    DimensionError,
    IndexOverflowError,
    OperandError,
    OperandTypeError,
    StructureError,
)
from taco_py.language.formats import CSC, CSR

REBUILD = "rebuild the tensor from its coordinates, for example with Tensor.from_coo"


def check(data: TensorData) -> None:
    """Raise StructureError where the arrays of `data` contradict each other or its shape.

    The checks, level by level from the root: the arrays that each kind needs exist and hold
    integers of one type; pos has one entry more than there are parents, starts with 0, never
    descends, and ends with the number of coordinates; coordinates lie within 0 … size - 1; there is
    one value a position. Order and duplicates are no errors. O(nnz), without copies of arrays.
    """
    check_lengths(data)
    for place, size in enumerate(level_sizes(data.shape, data.format)):
        if not data.format.levels[place].kind.usual:
            continue  # checked by `check_lengths`
        if data.levels[place].pos is not None:
            check_monotone(data, place)
        if data.levels[place].crd is not None:
            check_range(data, place, size)


def check_lengths(data: TensorData) -> None:
    """Check kinds and lengths of arrays and the ends of pos, without reading all elements.

    Raises StructureError.
    """
    require_dtype(data.dtype, "values")
    check_shape(data.shape)
    if data.format.order != len(data.shape):
        raise StructureError(
            f"Expected one level a mode, found {data.format.order} levels for shape {data.shape}",
            hint=REBUILD,
        )
    if data.format.is_dense:
        if data.values.shape != data.shape:
            raise StructureError(
                f"Expected values of shape {data.shape}, found {data.values.shape}", hint=REBUILD
            )
        return
    counts = [1]
    sizes = level_sizes(data.shape, data.format)
    for place, (level, size) in enumerate(zip(data.format.levels, sizes, strict=True)):
        if not level.kind.usual:
            packing, arrays = packing_of(level.kind), data.levels[place]
            packing.check(arrays, counts, size)
            counts.append(packing.count(arrays, counts[-1], size))
        elif level.full:
            counts.append(counts[-1] * size)
        else:
            counts.append(check_level(data, place, counts[-1]))
    count = counts[-1]
    if data.values.shape != (count,):
        raise StructureError(
            f"Expected a vector of {count} values, one a position of the last level, found shape "
            f"{data.values.shape}",
            hint=REBUILD,
        )


def check_level(data: TensorData, place: int, parents: int) -> int:
    """Check the lengths of a compressed or singleton level's arrays; return its number of
    positions."""
    arrays = data.levels[place]
    crd = require_indices(arrays.crd, names(data, place)[1])
    chained = data.format.levels[place].chained
    children = parents if chained else check_pos(data, place, parents)
    if len(crd) != children:
        pos_name, crd_name = names(data, place)
        counted = "positions above" if arrays.pos is None else f"counted by {pos_name}"
        raise StructureError(
            f"Expected {children} coordinates in {crd_name} ({counted}), found {len(crd)}",
            hint=REBUILD,
        )
    return children


def check_pos(data: TensorData, place: int, parents: int) -> int:
    """Check the length and the ends of a compressed level's pos; return the number of children."""
    name = names(data, place)[0]
    pos = require_indices(data.levels[place].pos, name)
    if len(pos) != parents + 1:
        raise StructureError(
            f"Expected {parents + 1} entries in {name}, one more than the {parents} positions "
            f"above, found {len(pos)}",
            hint=REBUILD,
        )
    if pos[0] != 0:
        raise StructureError(
            f"Expected {name} to start with 0, found {pos[0]}",
            hint=f"subtract {pos[0]} from {name} if it counts from there",
        )
    return int(pos[-1])


def check_monotone(data: TensorData, place: int) -> None:
    """Check that no segment of a level ends before it begins."""
    name, pos = names(data, place)[0], data.levels[place].pos
    assert pos is not None
    falls = np.flatnonzero(pos[1:] < pos[:-1])
    if len(falls):
        row = int(falls[0])
        raise StructureError(
            f"Expected {name} to be monotone, found {pos[row]} and then {pos[row + 1]} at "
            f"{parent_name(data)} {row}",
            hint=f"{name}[r + 1] is where the entries of {parent_name(data)} r end. {REBUILD}",
        )


def check_range(data: TensorData, place: int, size: int) -> None:
    """Check that every coordinate of a level lies within its mode."""
    crd = data.levels[place].crd
    assert crd is not None
    if len(crd) == 0 or (crd.min() >= 0 and crd.max() < size):
        return
    worst = int(np.flatnonzero((crd < 0) | (crd >= size))[0])
    raise StructureError(
        f"Expected coordinates from 0 to {size - 1} in {names(data, place)[1]} (mode "
        f"{data.format.mode_order[place]} has size {size}), found {crd[worst]} at position {worst}",
        hint="coordinates count from 0; enlarge the shape if the entry is meant",
    )


def require_indices(array: Array | None, name: str) -> Array:
    """Return the array. Raises StructureError unless it exists and holds integers."""
    if array is None:
        raise StructureError(f"Expected an array {name}, found none", hint=REBUILD)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise StructureError(
            f"Expected {name} to be a vector of integers, found {array.ndim} axes of {array.dtype}",
            hint=f"convert {name} with .astype(np.int64)",
        )
    return array


def names(data: TensorData, place: int) -> tuple[str, str]:
    """Return the names of a level's pos and crd for messages: scipy's names where it has some."""
    if ordered(data.format) in (CSR, CSC):
        return "indptr", "indices"
    if data.format.is_coo:
        return "pos", f"coords[{data.format.mode_order[place]}]"
    return f"pos of level {place}", f"crd of level {place}"


def parent_name(data: TensorData) -> str:
    if ordered(data.format) == CSR:
        return "row"
    return "column" if ordered(data.format) == CSC else "parent position"


# --- coordinates of a user -----------------------------------------------------------------------


MOST = 1 << 62
"""The largest size of a mode: one tile more of its coordinates still fits 64 bits."""


def check_shape(shape: Any) -> tuple[int, ...]:
    """Return the shape as Python ints, of a sequence or (order 1) one integer.

    Raises DimensionError for sizes that are negative or no integers, IndexOverflowError for sizes
    above `MOST`.
    """
    if not isinstance(shape, Sequence | np.ndarray):
        shape = (shape,)
    for mode, size in enumerate(shape):
        if not isinstance(size, int | np.integer) or isinstance(size, bool) or size < 0:
            raise DimensionError(
                f"Expected a size of 0 or more for mode {mode}, found {size!r} in shape "
                f"{tuple(shape)}",
                hint="shape is one non-negative integer a mode",
            )
        if size > MOST:
            raise IndexOverflowError(
                f"Expected a size of at most 2^62 for mode {mode}, found {size} in shape "
                f"{tuple(shape)}",
                hint="loops count in 64-bit integers: number the coordinates that there are",
            )
    return tuple(int(size) for size in shape)


def check_coordinates(coords: Sequence[Array], values: Array, shape: tuple[int, ...]) -> None:
    """Check that `coords` are one integer vector a mode, within `shape`, one entry a value.

    Raises OperandError for a wrong number of modes, OperandTypeError for coordinates that are no
    integers and values of an unsupported dtype, StructureError for lengths that differ and
    coordinates out of range.
    """
    require_dtype(values.dtype, "values")
    if len(coords) != len(shape):
        raise OperandError(
            f"Expected coordinates of {len(shape)} modes for shape {shape}, found {len(coords)}",
            hint="coords is one array a mode, or a table of shape (order, nnz) or (nnz, order)",
        )
    if values.ndim != 1:
        raise StructureError(
            f"Expected a vector of values, found {values.ndim} axes",
            hint="values holds one number an entry",
        )
    for mode, column in enumerate(coords):
        if column.dtype.kind not in "iu" and len(column):
            raise OperandTypeError(
                f"Expected integer coordinates, found {column.dtype} in mode {mode}",
                hint="convert them with .astype(np.int64)",
            )
        if column.shape != values.shape:
            raise StructureError(
                f"Expected one coordinate a value, found {len(column)} in mode {mode} and "
                f"{len(values)} values",
                hint="each mode needs as many coordinates as there are values",
            )
        check_mode(column, mode, shape[mode])


def check_mode(column: Array, mode: int, size: int) -> None:
    """Raise StructureError for the first coordinate that is not within 0 … size - 1."""
    if len(column) == 0 or (column.min() >= 0 and column.max() < size):
        return
    entry = int(np.flatnonzero((column < 0) | (column >= size))[0])
    raise StructureError(
        f"Expected coordinates from 0 to {size - 1} in mode {mode}, found {column[entry]} at entry "
        f"{entry}",
        hint="coordinates count from 0; enlarge the shape if the entry is meant",
    )
