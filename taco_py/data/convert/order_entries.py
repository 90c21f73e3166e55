"""Counting sorts of matrix entries by one coordinate, which convert CSR to CSC and COO to CSR.

    CSR → CSC            ordered by columns; rows ascend in each, for the sort is stable
    COO, in order → CSR  only positions are counted, coordinates and values are shared
    COO, any → CSR       ordered by columns, then by rows

One C text for each type of coordinates and size of values (`taco_order.h`) is compiled at its first
use. It is a counting sort, direct or through buckets: `bucket_bits` chooses by expected time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from codegen.runtime.kernel_cache import KernelSource
from codegen.runtime.signature import Kind, Parameter, Signature
from codegen.toolchain.errors import NoCompilerError
from codegen.toolchain.processor import cache_sizes
from codegen.types import INT32, INT64, UINT8, ScalarType
from taco_py.data.kernels import KERNELS
from taco_py.data.storage.tensor_data import Array

LEAST = 1 << 15
"""The number of entries from which it is faster than SciPy and NumPy."""
ONE, MISSED, MISSED_ALL, BUCKETED, SCATTERED = 3.0, 9.0, 18.0, 6.0, 4.0
"""Nanoseconds an entry: for a direct move, more where it misses the caches of a core, and all
caches; for a move through buckets, more where adjacent entries go to different ones. Measured on an
EPYC with the matrices of `benchmarks/conversions.py`."""
SAMPLE, LINE = 4096, 4
"""The number of sampled consecutive entries; the bits of keys within a cache line."""
MOST_BUCKETS, LEAST_BITS = 9, 6
"""The largest number of bits of a bucket's number, and the smallest of the keys in a bucket."""
PARALLEL = 1 << 16
"""The number of entries from which several threads are used."""

_TYPES = {np.dtype("int32"): INT32, np.dtype("int64"): INT64}
_VALUES = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint64_t", 16: "taco_sixteen"}
Ordered = tuple[Array, Array, Array]
"""pos, crd and values."""


def is_worth_it(count: int, size: int, index: np.dtype[Any], itemsize: int) -> bool:
    """Tell whether the compiled sort supports the types and is expected to be faster."""
    supported = index in _TYPES and itemsize in _VALUES
    return supported and count >= LEAST and size <= 4 * count


def order_entries(
    keys: Array, crd: Array, values: Array, size: int, pos: Array | None = None
) -> Ordered | None:
    """Sort entries stably by their keys.

    crd     the other coordinate of each entry; unused with `pos`, whose segments determine it
    size    the upper bound of the keys

    Returns None without a C compiler. Raises MemoryError.
    """
    functions = _functions(keys.dtype, values.dtype.itemsize)
    if functions is None:
        return None
    order, _ = functions
    count, pool = len(keys), KERNELS.pool
    threads = KERNELS.cores if count >= PARALLEL else 1
    bits = bucket_bits(keys, size, keys.itemsize + values.itemsize)
    entry_bytes = 2 * keys.itemsize + max(values.itemsize, keys.itemsize)
    entry_bytes = -(-entry_bytes // values.itemsize) * values.itemsize
    room = pool.empty((count * entry_bytes if bits else 1,), np.uint8)
    to_pos = pool.empty((size + 1,), keys.dtype)
    to_others = pool.empty((count,), keys.dtype)
    to_values = pool.empty((count,), values.dtype)
    lists = 0 if pos is None else len(pos) - 1
    starts = keys if pos is None else pos
    order(
        starts, keys, crd, _bytes(values), room, to_pos, to_others, _bytes(to_values),
        lists, count, size, bits, threads,
    )  # fmt: skip
    return to_pos, to_others, to_values


def count_starts(
    keys: Array, crd: Array, values: Array, size: int
) -> tuple[Array, bool, bool] | None:
    """Return where the entries of each key begin, whether entries ascend, and whether strictly.

    The order is by keys, then by `crd`. Where entries do not ascend, pos is meaningless. Returns
    None as `order_entries`.
    """
    functions = _functions(keys.dtype, values.dtype.itemsize)
    if functions is None:
        return None
    to_pos: Array = KERNELS.pool.empty((size + 1,), keys.dtype)
    result = np.empty(1, np.int64)
    threads = KERNELS.cores if len(keys) >= PARALLEL else 1
    functions[1](keys, crd, to_pos, result, len(keys), size, threads)
    return to_pos, bool(result[0] < 2), bool(result[0] == 0)


def ascends_strictly(pos: Array, crd: Array) -> bool:
    """Tell whether coordinates ascend strictly below each key."""
    look = KERNELS.host_functions[f"taco_ascends_{crd.dtype.name}"]
    result = np.empty(1, np.int64)
    look(pos, crd, result, len(pos) - 1, len(crd))
    return bool(result[0])


def bucket_bits(keys: Array, size: int, entry: int) -> int:
    """Return the number of bits of the keys in one bucket, 0 where a direct sort is faster.

    entry  bytes of an entry of the result
    """
    near, shared = _caches()
    total = len(keys) * entry
    if total <= near:
        return 0
    middle = (len(keys) - min(SAMPLE, len(keys))) // 2
    sample = keys[middle : middle + SAMPLE]
    lines = np.sort(sample >> LINE)
    far = (1 + np.count_nonzero(lines[1:] != lines[:-1])) / len(sample)
    missed = MISSED * (1 - near / total) + MISSED_ALL * max(0.0, 1 - shared / total)
    directly, through = ONE + far * missed, BUCKETED + far * SCATTERED
    bits = max(LEAST_BITS, int(size - 1).bit_length() - MOST_BUCKETS)
    return bits if through < directly and size >> bits > 1 else 0


def _caches() -> tuple[int, int]:
    """Return the bytes of the largest private cache of a core, and of the last-level cache."""
    sizes: tuple[int, int] | None = KERNELS.memo.get("caches of conversions")
    if sizes is None:
        known_sizes = (*cache_sizes(), 1 << 20, 1 << 20)
        sizes = known_sizes[1], max(known_sizes)
        KERNELS.memo.put("caches of conversions", sizes)
    return sizes


def _bytes(values: Array) -> Array:
    return values.view(np.uint8)


def _functions(index: np.dtype[Any], itemsize: int) -> tuple[Any, Any] | None:
    """Return the functions for these types, compiled at their first use; None without a
    compiler."""
    key = f"order of entries {index.name} {itemsize}"
    functions: tuple[Any, Any] | None = KERNELS.memo.get(key)
    if functions is not None:
        return functions
    try:
        kernel = KERNELS.get_or_build(key, lambda: _source(_TYPES[index], itemsize)).kernel
    except NoCompilerError:  # SciPy converts instead
        return None
    functions = kernel.functions["order_entries"], kernel.functions["count_starts"]
    KERNELS.memo.put(key, functions)
    return functions


def _source(index: ScalarType, itemsize: int) -> KernelSource:
    """Return the C source for one type of coordinates and one size of values."""
    arrays = ("pos", "keys", "others"), ("to_pos", "to_others")
    order = Signature(
        "order_entries",
        (
            *(Parameter(name, Kind.INPUT, index) for name in arrays[0]),
            Parameter("values", Kind.INPUT, UINT8),
            Parameter("room", Kind.OUTPUT, UINT8),
            *(Parameter(name, Kind.OUTPUT, index) for name in arrays[1]),
            Parameter("to_values", Kind.OUTPUT, UINT8),
            *(Parameter(n, Kind.SCALAR, INT64) for n in ("lists", "count", "range", "shift")),
            Parameter("threads", Kind.THREADS, INT32),
        ),
    )
    starts = Signature(
        "count_starts",
        (
            *(Parameter(name, Kind.INPUT, index) for name in ("keys", "others")),
            Parameter("to_pos", Kind.OUTPUT, index),
            Parameter("found", Kind.OUTPUT, INT64),
            *(Parameter(n, Kind.SCALAR, INT64) for n in ("count", "range")),
            Parameter("threads", Kind.THREADS, INT32),
        ),
    )
    return KernelSource(_TEXT.format(index=index.c, value=_VALUES[itemsize]), (order, starts))


_TEXT = """#include <stdint.h>
typedef struct {{ uint64_t halves[2]; }} taco_sixteen;
#define TACO_INDEX {index}
#define TACO_VALUE {value}
#include "taco_order.h"

int32_t order_entries(const TACO_INDEX *pos, const TACO_INDEX *keys, const TACO_INDEX *others,
                      const void *values, void *room, TACO_INDEX *to_pos, TACO_INDEX *to_others,
                      void *to_values, int64_t lists, int64_t count, int64_t range, int64_t shift,
                      int32_t threads)
{{
    return taco_order(pos, keys, others, values, room, to_pos, to_others, to_values, lists, count,
                      range, shift, threads);
}}

int32_t count_starts(const TACO_INDEX *keys, const TACO_INDEX *others, TACO_INDEX *to_pos,
                     int64_t *found, int64_t count, int64_t range, int32_t threads)
{{
    return taco_starts(keys, others, to_pos, found, count, range, threads);
}}

/* taco_order.h has loops of "omp parallel", and calls taco_alloc: what this says is linked. */
"""
