"""CSR into diagonals of slices of rows: SDIA.

Each slice merges its rows by the difference of column and row: the least difference is a slot,
which holds an element of each row that has it. Slots are counted, then filled; one C text for each
type of coordinates and size of values is compiled at its first use.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from codegen.runtime.kernel_cache import KernelSource
from codegen.runtime.signature import Kind, Parameter, Signature
from codegen.toolchain.errors import NoCompilerError
from codegen.types import INT32, INT64, UINT8, ScalarType
from taco_py.data.kernels import KERNELS
from taco_py.data.storage.tensor_data import LevelArrays, TensorData
from taco_py.language.formats import SDIA, RemappedFormat
from taco_py.language.formats.stored_modes import Quotient

MOST_ROWS = 32
"""The largest number of rows of a slice: the bits of a word."""
PARALLEL = 1 << 16
"""The number of entries from which several threads are used."""

_TYPES = {np.dtype("int32"): INT32, np.dtype("int64"): INT64}
_VALUES = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint64_t", 16: "taco_sixteen"}


def is_of_slices(format: RemappedFormat) -> bool:
    """Tell whether the format is SDIA, whatever its name."""
    first, *_ = format.modes
    return isinstance(first, Quotient) and format == SDIA(first.block)


def diagonals_of_slices(data: TensorData, format: RemappedFormat) -> TensorData | None:
    """Store a matrix in CSR, sorted and without duplicates, in diagonals of slices of rows.

    Returns None for unsupported types, or without a C compiler.
    """
    level, itemsize = data.levels[1], data.dtype.itemsize
    rows = format.cuts[0]
    assert level.pos is not None and level.crd is not None
    index = level.crd.dtype
    if rows > MOST_ROWS or index not in _TYPES or itemsize not in _VALUES or data.fill:
        return None
    if level.pos.dtype != index:
        return None
    functions = _functions(index, itemsize)
    if functions is None:
        return None
    count, fill = functions
    slices = -(-data.shape[0] // rows)
    threads = KERNELS.cores if data.nnz >= PARALLEL else 1
    first = np.zeros(slices + 1, index)
    count(level.pos, level.crd, first, data.shape[0], rows, threads)
    total = int(first.cumsum(dtype=np.int64)[-1])
    if total * rows > np.iinfo(index).max:
        return None
    np.cumsum(first, out=first)
    pool = KERNELS.pool
    offsets, marks = pool.empty((total,), index), pool.empty((total,), index)
    values = pool.empty((total * rows,), data.dtype)
    fill(
        level.pos, level.crd, data.values.view(np.uint8), first, offsets, marks,
        values.view(np.uint8), data.shape[0], rows, threads,
    )  # fmt: skip
    levels = (LevelArrays(), LevelArrays(first), LevelArrays(crd=marks), LevelArrays(crd=offsets))
    width = int(np.diff(first).max(initial=0))
    shape = (slices, width, rows, data.shape[1])
    return replace(
        data,
        format=format.inner,
        shape=shape,
        levels=levels,
        values=values,
        sorted=True,
        unique=True,
    )


def _functions(index: np.dtype[Any], itemsize: int) -> tuple[Any, Any] | None:
    """Return the functions for these types, compiled at their first use; None without a
    compiler."""
    key = f"diagonals of slices {index.name} {itemsize}"
    functions: tuple[Any, Any] | None = KERNELS.memo.get(key)
    if functions is not None:
        return functions
    try:
        kernel = KERNELS.get_or_build(key, lambda: _source(_TYPES[index], itemsize)).kernel
    except NoCompilerError:
        return None
    functions = kernel.functions["count_slots"], kernel.functions["fill_slots"]
    KERNELS.memo.put(key, functions)
    return functions


def _source(index: ScalarType, itemsize: int) -> KernelSource:
    """Return the C source for one type of coordinates and one size of values."""
    sizes = (
        *(Parameter(name, Kind.SCALAR, INT64) for name in ("rows", "height")),
        Parameter("threads", Kind.THREADS, INT32),
    )
    read = tuple(Parameter(name, Kind.INPUT, index) for name in ("pos", "crd"))
    count = Signature("count_slots", (*read, Parameter("slots", Kind.OUTPUT, index), *sizes))
    fill = Signature(
        "fill_slots",
        (
            *read,
            Parameter("values", Kind.INPUT, UINT8),
            Parameter("first", Kind.INPUT, index),
            *(Parameter(name, Kind.OUTPUT, index) for name in ("offsets", "marks")),
            Parameter("to_values", Kind.OUTPUT, UINT8),
            *sizes,
        ),
    )
    text = _TEXT.replace("INDEX", index.c).replace("VALUE", _VALUES[itemsize])
    return KernelSource(text, (count, fill))


_TEXT = """#include <stdint.h>
typedef struct { uint64_t halves[2]; } taco_sixteen;

/* Where the rows of a slice begin and end; a column minus the number of its row is its key. */
#define OPEN_SLICE(s)                                                    \\
    int64_t at[32], end[32];                                             \\
    const int64_t top = (s) * height;                                    \\
    const int64_t lanes = rows - top < height ? rows - top : height;     \\
    for (int64_t l = 0; l < lanes; l++) {                                \\
        at[l] = pos[top + l];                                            \\
        end[l] = pos[top + l + 1];                                       \\
    }

static inline int64_t least_key(const INDEX *crd, const int64_t *at, const int64_t *end,
                                int64_t lanes)
{
    int64_t least = INT64_MAX;
    for (int64_t l = 0; l < lanes; l++) {
        const int64_t key = at[l] < end[l] ? (int64_t)crd[at[l]] - l : INT64_MAX;
        least = key < least ? key : least;
    }
    return least;
}

/* How many slots each slice has: slots[s + 1]. */
int32_t count_slots(const INDEX *restrict pos, const INDEX *restrict crd, INDEX *restrict slots,
                    int64_t rows, int64_t height, int32_t threads)
{
    const int64_t slices = (rows + height - 1) / height;
    #pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t s = 0; s < slices; s++) {
        OPEN_SLICE(s)
        int64_t count = 0;
        for (int64_t key; (key = least_key(crd, at, end, lanes)) < INT64_MAX; count++)
            for (int64_t l = 0; l < lanes; l++)
                at[l] += at[l] < end[l] && (int64_t)crd[at[l]] - l == key;
        slots[s + 1] = (INDEX)count;
    }
    return 0;
}

/* The key of each slot, a bit for each row that has it, and an element for each row, or 0. */
int32_t fill_slots(const INDEX *restrict pos, const INDEX *restrict crd, const void *values,
                   const INDEX *restrict first, INDEX *restrict offsets, INDEX *restrict marks,
                   void *to_values, int64_t rows, int64_t height, int32_t threads)
{
    const int64_t slices = (rows + height - 1) / height;
    const VALUE *restrict from = values;
    VALUE *restrict to = to_values;
    const VALUE nothing = {0};
    #pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t s = 0; s < slices; s++) {
        OPEN_SLICE(s)
        for (int64_t q = first[s]; q < first[s + 1]; q++) {
            const int64_t key = least_key(crd, at, end, lanes);
            uint64_t bits = 0;
            for (int64_t l = 0; l < height; l++) {
                const int there = l < lanes && at[l] < end[l] && (int64_t)crd[at[l]] - l == key;
                to[q * height + l] = there ? from[at[l]] : nothing;
                bits |= (uint64_t)there << l;
                if (there)
                    at[l]++;
            }
            offsets[q] = (INDEX)key;
            marks[q] = (INDEX)bits;
        }
    }
    return 0;
}
"""
