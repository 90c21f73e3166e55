"""The entries of a matrix in the order of one coordinate: what assembles CSC of CSR, CSR of COO.

    CSR → CSC            ordered by their columns; rows ascend in each, for the sort is stable
    COO, in order → CSR  positions alone are counted, coordinates and values are shared
    COO, any → CSR       ordered by columns, then by rows

One text of C for each type of coordinates and size of values (`taco_order.h`) is compiled when it
is first needed. It is a counting sort, directly or through buckets: `bucket_bits` takes what is
expected to take less time.
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
"""Entries from which on that takes less time than what SciPy and NumPy do."""
ONE, MISSED, MISSED_ALL, BUCKETED, SCATTERED = 3.0, 9.0, 18.0, 6.0, 4.0
"""Nanoseconds an entry: to its place, more where that misses the caches of a core, and all of them;
through buckets, more where each goes to another one than the last. Measured on an EPYC with the
matrices of `benchmarks/conversions.py`."""
SAMPLE, LINE = 4096, 4
"""Entries in a row that are looked at; bits of keys that differ within a line of a cache."""
MOST_BUCKETS, LEAST_BITS = 9, 6
"""Bits of the number of a bucket at most, and of the keys in one at least."""
PARALLEL = 1 << 16
"""Entries from which on other threads are woken."""

_TYPES = {np.dtype("int32"): INT32, np.dtype("int64"): INT64}
_VALUES = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint64_t", 16: "taco_sixteen"}
Ordered = tuple[Array, Array, Array]
"""pos, the other coordinates, values."""


def is_worth_it(count: int, size: int, index: np.dtype[Any], itemsize: int) -> bool:
    """Tell whether entries of such types, so many in `size` lists, are ordered by what is here."""
    known = index in _TYPES and itemsize in _VALUES
    return known and count >= LEAST and size <= 4 * count


def order_entries(
    keys: Array, others: Array, values: Array, size: int, pos: Array | None = None
) -> Ordered | None:
    """Order entries by their keys, those with equal keys as they come.

    others  the other coordinate of each; where there is `pos`, the list that it is in instead
    size    keys are below it

    Returns None where nothing can be compiled. Raises MemoryError.
    """
    functions = _functions(keys.dtype, values.dtype.itemsize)
    if functions is None:
        return None
    order, _ = functions
    count, pool = len(keys), KERNELS.pool
    threads = KERNELS.cores if count >= PARALLEL else 1
    bits = bucket_bits(keys, size, keys.itemsize + values.itemsize)
    moved = 2 * keys.itemsize + max(values.itemsize, keys.itemsize)
    moved = -(-moved // values.itemsize) * values.itemsize
    room = pool.empty((count * moved if bits else 1,), np.uint8)
    to_pos = pool.empty((size + 1,), keys.dtype)
    to_others = pool.empty((count,), keys.dtype)
    to_values = pool.empty((count,), values.dtype)
    lists = 0 if pos is None else len(pos) - 1
    starts = keys if pos is None else pos
    order(
        starts, keys, others, _bytes(values), room, to_pos, to_others, _bytes(to_values),
        lists, count, size, bits, threads,
    )  # fmt: skip
    return to_pos, to_others, to_values


def count_starts(
    keys: Array, others: Array, values: Array, size: int
) -> tuple[Array, bool, bool] | None:
    """Where the entries of each key begin, whether they ascend, and whether strictly: by keys, then
    by `others`. Of those that do not, pos is worth nothing.

    Returns None as `order_entries`.
    """
    functions = _functions(keys.dtype, values.dtype.itemsize)
    if functions is None:
        return None
    to_pos: Array = KERNELS.pool.empty((size + 1,), keys.dtype)
    found = np.empty(1, np.int64)
    threads = KERNELS.cores if len(keys) >= PARALLEL else 1
    functions[1](keys, others, to_pos, found, len(keys), size, threads)
    return to_pos, bool(found[0] < 2), bool(found[0] == 0)


def ascends_strictly(pos: Array, others: Array) -> bool:
    """Tell whether coordinates ascend strictly below each key."""
    look = KERNELS.host_functions[f"taco_ascends_{others.dtype.name}"]
    found = np.empty(1, np.int64)
    look(pos, others, found, len(pos) - 1, len(others))
    return bool(found[0])


def bucket_bits(keys: Array, size: int, entry: int) -> int:
    """Bits of the keys in one bucket, 0 for no buckets: what is expected to take less time.

    entry  bytes of an entry of the result
    """
    near, shared = _caches()
    whole = len(keys) * entry
    if whole <= near:
        return 0
    middle = (len(keys) - min(SAMPLE, len(keys))) // 2
    sample = keys[middle : middle + SAMPLE]
    lines = np.sort(sample >> LINE)
    far = (1 + np.count_nonzero(lines[1:] != lines[:-1])) / len(sample)
    missed = MISSED * (1 - near / whole) + MISSED_ALL * max(0.0, 1 - shared / whole)
    directly, through = ONE + far * missed, BUCKETED + far * SCATTERED
    bits = max(LEAST_BITS, int(size - 1).bit_length() - MOST_BUCKETS)
    return bits if through < directly and size >> bits > 1 else 0


def _caches() -> tuple[int, int]:
    """Return bytes of the largest cache of a core, and of the last one."""
    found: tuple[int, int] | None = KERNELS.memo.get("caches of conversions")
    if found is None:
        sizes = (*cache_sizes(), 1 << 20, 1 << 20)
        found = sizes[1], max(sizes)
        KERNELS.memo.put("caches of conversions", found)
    return found


def _bytes(values: Array) -> Array:
    return values.view(np.uint8)


def _functions(index: np.dtype[Any], itemsize: int) -> tuple[Any, Any] | None:
    """Return the functions for such coordinates and values, compiled where they are not yet."""
    key = f"order of entries {index.name} {itemsize}"
    found: tuple[Any, Any] | None = KERNELS.memo.get(key)
    if found is not None:
        return found
    try:
        kernel = KERNELS.get_or_build(key, lambda: _source(_TYPES[index], itemsize)).kernel
    except NoCompilerError:  # SciPy does it
        return None
    found = kernel.functions["order_entries"], kernel.functions["count_starts"]
    KERNELS.memo.put(key, found)
    return found


def _source(index: ScalarType, itemsize: int) -> KernelSource:
    """Return the text for one type of coordinates and one size of values."""
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
