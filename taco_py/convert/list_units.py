"""CSR of any format of matrices whose levels are loops: ELL, slices, diagonals, runs, blocks …

The levels are nested loops, as they are in kernels. They run twice: entries of each row are counted,
then each goes to its row's next place. Loops meet the columns of each row in ascending order; what
comes out is looked at, and declined where they did not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from codegen.runtime.kernel_cache import KernelSource
from codegen.runtime.signature import Kind, Parameter, Signature
from codegen.toolchain.errors import NoCompilerError
from codegen.types import INT64, UINT8
from taco_py.convert.order_entries import ascends_strictly
from taco_py.convert.stored_text import (
    INDEX_TYPES,
    LEAST,
    VALUE_TYPES,
    filled,
    logical_texts,
    texts_of,
    with_types,
)
from taco_py.formats import CSR, RemappedFormat
from taco_py.formats.level_kind import LevelKind
from taco_py.kernels import KERNELS
from taco_py.storage.by_level.level_tree import fills_up
from taco_py.storage.sizes import index_dtype_of, level_counts
from taco_py.storage.tensor_data import Array, LevelArrays, TensorData, row_of_bits


def rows_of_units(
    stored: TensorData, format: RemappedFormat, shape: tuple[int, ...], drop_fill: bool
) -> TensorData | None:
    """Store a matrix of a remapped format in CSR.

    drop_fill  whether elements of units that are 0 are left out

    Returns None where the types are others, levels have no loops here, entries are few or in
    another order, or nothing can be compiled.
    """
    index = index_dtype_of(stored)
    known = index in INDEX_TYPES and stored.dtype.itemsize in VALUE_TYPES
    if stored.fill or not known or len(stored.values) < LEAST or not _is_sound(stored, index):
        return None
    drops = drop_fill and fills_up(format.inner)
    functions = _functions(format, index, stored.dtype, drops)
    if functions is None:
        return None
    count, fill = functions
    arrays = [array for level in stored.levels for array in (level.pos, level.crd)]
    given = [np.zeros(1, index) if array is None else array for array in arrays]
    values = stored.values.view(np.uint8)
    sizes = (*stored.shape, *shape)
    starts = np.zeros(shape[0] + 1, index)
    count(*given, values, starts, *sizes)
    total = int(starts.sum(dtype=np.int64))
    if total > np.iinfo(index).max:
        return None
    pos = np.cumsum(starts, dtype=index)
    crd: Array = KERNELS.pool.empty((total,), index)
    made: Array = KERNELS.pool.empty((total,), stored.dtype)
    fill(*given, values, pos[:-1].copy(), crd, made.view(np.uint8), *sizes)
    if not ascends_strictly(pos, crd):
        return None
    return TensorData(CSR, shape, (LevelArrays(), LevelArrays(pos, crd)), made, True, True)


def _is_sound(stored: TensorData, index: np.dtype[Any]) -> bool:
    """Whether loops stay within the arrays, whatever these hold."""
    counts = level_counts(stored)
    for place, (level, arrays) in enumerate(zip(stored.format.levels, stored.levels, strict=True)):
        parents, kind = counts[place], level.kind
        if any(a is not None and a.dtype != index for a in (arrays.pos, arrays.crd)):
            return False
        wanted = {
            LevelKind.BANDED: parents,
            LevelKind.PADDED: parents,
            LevelKind.INTERVAL: parents,
            LevelKind.OFFSET: counts[max(place - 1, 0)],
            LevelKind.COMPRESSED: counts[place + 1],
            LevelKind.BITMAP: parents * row_of_bits(_size(stored, place), index) // _bits(index),
        }.get(kind, 0)
        if wanted and (arrays.crd is None or len(arrays.crd) < wanted):
            return False
        if arrays.pos is None:
            continue
        if kind is LevelKind.INTERVAL:
            last = arrays.crd if arrays.crd is not None else arrays.pos
            inside = len(arrays.pos) >= parents and last.max(initial=0) <= _size(stored, place)
            if not inside or arrays.pos.min(initial=0) < 0:
                return False
        elif len(arrays.pos) != parents + 1 or arrays.pos[0] or _descends(arrays.pos):
            return False
    return len(stored.values) >= counts[-1]


def _size(stored: TensorData, place: int) -> int:
    return stored.shape[stored.format.mode_order[place]]


def _bits(index: np.dtype[Any]) -> int:
    return 8 * index.itemsize


def _descends(pos: Array) -> bool:
    return bool((pos[1:] < pos[:-1]).any())


def _functions(
    format: RemappedFormat, index: np.dtype[Any], dtype: np.dtype[Any], drops: bool
) -> tuple[Any, Any] | None:
    """The functions for such levels and types, compiled where they are not yet."""
    key = f"rows of {format.inner} {format.mapping} {index.name} {dtype.str} {drops}"
    found: tuple[Any, Any] | None = KERNELS.memo.get(key)
    if found is not None:
        return found
    source = _source(format, index, dtype, drops)
    if source is None:
        return None
    try:
        kernel = KERNELS.get_or_build(key, lambda: source).kernel
    except NoCompilerError:
        return None
    found = kernel.functions["count_rows"], kernel.functions["fill_rows"]
    KERNELS.memo.put(key, found)
    return found


def _source(
    format: RemappedFormat, index: np.dtype[Any], dtype: np.dtype[Any], drops: bool
) -> KernelSource | None:
    levels, logical = texts_of(format), logical_texts(format)
    if levels is None or logical is None:
        return None
    last, element = len(levels) - 1, INDEX_TYPES[index]
    names = [f"{name}{k}" for k in range(last + 1) for name in ("lpos", "lcrd")]
    sizes = [*(f"n{k}" for k in range(last + 1)), "rows", "columns"]
    opened = "\n".join(filled(level.visit, k) for k, level in enumerate(levels))
    skip = f"if (is_zero(values + p{last})) continue;" if drops else ""
    head = f"""const int64_t p_root = 0; const VALUE *restrict values = from; (void)values;
{opened}
const int64_t i = {logical[0]}, j = {logical[1]};
if (i < 0 || i >= rows || j < 0 || j >= columns) continue;
{skip}"""
    closed = "}" * (opened.count("{") - opened.count("}"))
    read = (
        *(Parameter(name, Kind.INPUT, element) for name in names),
        Parameter("from", Kind.INPUT, UINT8),
    )
    scalars = tuple(Parameter(name, Kind.SCALAR, INT64) for name in sizes)
    count = Signature("count_rows", (*read, Parameter("starts", Kind.OUTPUT, element), *scalars))
    outputs = (
        Parameter("next", Kind.OUTPUT, element),
        Parameter("crd", Kind.OUTPUT, element),
        Parameter("to", Kind.OUTPUT, UINT8),
    )
    fill = Signature("fill_rows", (*read, *outputs, *scalars))
    c_read = ", ".join([*(f"const INDEX *restrict {name}" for name in names), "const void *from"])
    c_sizes = ", ".join(f"int64_t {name}" for name in sizes)
    text = f"""
int32_t count_rows({c_read}, INDEX *restrict starts, {c_sizes})
{{
{head}
starts[i + 1]++;
{closed}
return 0;
}}

int32_t fill_rows({c_read}, INDEX *restrict next, INDEX *restrict crd, void *to, {c_sizes})
{{
VALUE *restrict made = to;
{head}
const int64_t q = next[i]++;
crd[q] = (INDEX)j;
made[q] = values[p{last}];
{closed}
return 0;
}}
"""
    return KernelSource(with_types(text, index, dtype), (count, fill))
