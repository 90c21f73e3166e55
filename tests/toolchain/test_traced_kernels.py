"""Bytes that kernels move between simulated caches, against counts by hand and a plain model."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen.machine.cpu import Processor
from codegen.runtime.kernel_cache import KernelCache, KernelSource
from codegen.runtime.signature import Kind, Parameter, Signature
from codegen.runtime.traced.kernel_tracer import KernelTracer, traced_kernels
from codegen.runtime.traced.simulated_caches import (
    CacheTraffic,
    MemoryTraffic,
    SimulatedCache,
    SimulatedCaches,
)
from codegen.toolchain.errors import ToolchainError
from codegen.types import FLOAT32, INT32, INT64, UINT8

LINE = 64
_TEXT = """#include "taco_runtime.h"

int32_t copy(const float *restrict x, float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i];
    return 0;
}

int32_t stream(const float *restrict x, float *restrict y, int64_t n)
{
#ifdef __AVX512F__
    enum { LANES = 16 };
#else
    enum { LANES = 8 };
#endif
    typedef float lanes __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
    for (int64_t i = 0; i < n; i += LANES) {
        const lanes part = *(const lanes *)(x + i);
        TACO_STREAM(*(lanes *)(y + i), part);
    }
    return 0;
}

int32_t transpose(const float *restrict x, float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            y[j * n + i] = x[i * n + j];
    return 0;
}

/* Two passes over each of n rows of 1024 numbers. */
int32_t passes(const float *restrict x, float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float sum = 0, squares = 0;
        for (int64_t j = 0; j < 1024; j++)
            sum += x[i * 1024 + j];
        for (int64_t j = 0; j < 1024; j++)
            squares += (x[i * 1024 + j] - sum) * (x[i * 1024 + j] - sum);
        y[i] = squares;
    }
    return 0;
}

int32_t add(const float *restrict x, float *restrict y, int64_t n)
{
    float sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    y[0] = sum;
    return 0;
}

/* A temporary of the stack in between. */
int32_t reverse(const float *restrict x, float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i += 64) {
        float part[64];
        for (int64_t j = 0; j < 64; j++)
            part[63 - j] = x[i + j];
        for (int64_t j = 0; j < 64; j++)
            y[i + j] = part[j] + part[(j * j) & 63];
    }
    return 0;
}

int32_t drawn(uint8_t *bytes, int64_t count, int64_t steps, int64_t seed)
{
    uint64_t state = (uint64_t)seed, sum = 0;
    for (int64_t step = 0; step < steps; step++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const int64_t place = (int64_t)((state >> 33) % (uint64_t)count);
        if (state >> 62 == 0)
            bytes[place] = 1;
        else
            sum += bytes[place];
    }
    return sum > (uint64_t)steps;
}
"""


def _signature(name: str) -> Signature:
    x, y = Parameter("x", Kind.INPUT, FLOAT32), Parameter("y", Kind.OUTPUT, FLOAT32)
    return Signature(name, (x, y, Parameter("n", Kind.SCALAR, INT64)))


_DRAWN = Signature(
    "drawn",
    (
        Parameter("bytes", Kind.OUTPUT, UINT8),
        *(Parameter(name, Kind.SCALAR, INT64) for name in ("count", "steps", "seed")),
    ),
)
_NAMES = ("copy", "stream", "transpose", "passes", "add", "reverse")
_SOURCE = KernelSource(_TEXT, (*map(_signature, _NAMES), _DRAWN))


@pytest.fixture(scope="module")
def followed(cache: KernelCache) -> KernelCache:
    if cache.compiler.kind != "gcc":
        pytest.skip("no gcc: accesses are not followed here")
    return cache


def _caches(*sizes: int, ways: int = 8) -> SimulatedCaches:
    return SimulatedCaches(tuple(SimulatedCache(size, ways) for size in sizes))


def _lines(count: int, dtype: str = "f4") -> np.ndarray[Any, Any]:
    """`count` elements that begin at a page, so that no other array has lines of theirs."""
    size = np.dtype(dtype).itemsize
    memory = np.zeros(count * size + 8192, np.uint8)
    start = -memory.ctypes.data % 4096
    return memory[start : start + count * size].view(dtype)


def _moved(cache: KernelCache, caches: SimulatedCaches, name: str, *arguments: Any) -> Any:
    """What one call of a function moves, from empty caches to empty caches."""
    with traced_kernels(cache, caches) as tracer:
        cache.get_or_build("traced", lambda: _SOURCE).kernel.functions[name](*arguments)
        tracer.empty_caches()
        return tracer.traffic


def _on_lines(size: int, n: int, cache: KernelCache, name: str, *sizes: int) -> Any:
    x, y = _lines(size), _lines(size)
    x[:] = np.arange(size)
    return _moved(cache, _caches(*sizes), name, x, y, n), x, y


def test_a_copy_past_the_cache_reads_what_it_writes_too(followed: KernelCache) -> None:
    """A line that is written is fetched first."""
    n = 100_000
    moved, x, y = _on_lines(n, n, followed, "copy", 32768)
    assert (y == x).all()
    assert moved == MemoryTraffic(4 * n, 4 * n, (CacheTraffic(8 * n, 4 * n),))
    assert (moved.dram_read, moved.dram_written, moved.dram_bytes) == (8 * n, 4 * n, 12 * n)


def test_what_is_streamed_is_not_fetched(followed: KernelCache) -> None:
    n = 64_000
    moved, x, y = _on_lines(n, n, followed, "stream", 32768, 65536)
    assert (y == x).all()
    if moved.streamed == 0:
        pytest.skip("no vectors that are written past caches here")
    assert moved.caches == (CacheTraffic(4 * n, 0), CacheTraffic(4 * n, 0))
    assert (moved.streamed, moved.dram_read, moved.dram_written) == (4 * n, 4 * n, 4 * n)


def test_a_sum_reads_once(followed: KernelCache) -> None:
    n = 50_000
    moved, _, _ = _on_lines(n, n, followed, "add", 4096, 32768)
    line = CacheTraffic(4 * n + LINE, LINE)
    assert moved == MemoryTraffic(4 * n, 4, (line, line))


@pytest.mark.parametrize(("size", "fits"), [(8192, True), (2048, False)])
def test_a_second_pass_over_a_row_is_free_where_it_fits(
    followed: KernelCache, size: int, fits: bool
) -> None:
    """Rows are 4096 bytes; the last cache has room for them either way."""
    rows, row = 64, 4096
    moved, _, _ = _on_lines(rows * 1024, rows, followed, "passes", size, 65536)
    assert moved.loaded == 2 * rows * row
    results = rows * 4 if fits else rows * LINE
    assert moved.caches[0].bytes_read == (1 if fits else 2) * rows * row + results
    assert moved.caches[1] == CacheTraffic(rows * row + rows * 4, rows * 4)


@pytest.mark.parametrize(
    ("n", "size", "fits"), [(240, 64 * 1024, True), (240, 4096, False), (256, 64 * 1024, False)]
)
def test_a_transpose_moves_a_line_for_each_element_where_columns_do_not_fit(
    followed: KernelCache, n: int, size: int, fits: bool
) -> None:
    """A column is a line of each of n rows: 15 KiB. In rows of 1024 bytes, though,
    columns use each 16th of the 128 sets that 64 KiB have: 64 lines stay, not 256."""
    moved, x, y = _on_lines(n * n, n, followed, "transpose", size)
    assert (y.reshape(n, n) == x.reshape(n, n).T).all()
    whole = 4 * n * n
    written = whole if fits else LINE * n * n
    assert moved.caches == (CacheTraffic(whole + written, written),)


def test_the_stack_counts_as_registers(followed: KernelCache) -> None:
    n = 64 * 100
    moved, _, _ = _on_lines(n, n, followed, "reverse", 4096)
    assert moved == MemoryTraffic(4 * n, 4 * n, (CacheTraffic(8 * n, 4 * n),))


def test_runs_are_told_apart_and_share_caches(followed: KernelCache) -> None:
    """The second run finds in the cache what the first one has read and written."""
    x, y = _lines(256), _lines(256)
    with traced_kernels(followed, _caches(8192)) as tracer:
        copy = followed.get_or_build("traced", lambda: _SOURCE).kernel.functions["copy"]
        copy(x, y, 256)
        copy(x, y, 256)
        first, second = tracer.runs
        assert (first.function, first.source) == ("copy", _TEXT)
        assert first.traffic.caches == (CacheTraffic(2048, 0),)
        assert second.traffic == MemoryTraffic(1024, 1024, (CacheTraffic(0, 0),))
        tracer.forget()
        assert (tracer.runs, tracer.traffic.dram_bytes) == ([], 0)
        copy(x, y, 256)
        assert tracer.traffic.dram_read == 2048


def test_kernels_are_themselves_again_afterwards(followed: KernelCache) -> None:
    x, y = _lines(64), _lines(64)
    with traced_kernels(followed, _caches(4096)) as tracer:
        traced = followed.get_or_build("traced", lambda: _SOURCE).kernel.functions["copy"]
    plain = followed.get_or_build("traced", lambda: _SOURCE).kernel.functions["copy"]
    x[:] = 3
    plain(x, y, 64)
    assert tracer.traffic.loaded == 0
    traced(x, y, 64)
    assert tracer.traffic.loaded == 256
    assert (y == 3).all()


class _Model:
    """Caches as ordered mappings from lines to whether they were changed, the oldest first."""

    def __init__(self, caches: SimulatedCaches) -> None:
        lines = [cache.bytes // LINE for cache in caches.caches]
        ways = [cache.ways for cache in caches.caches]
        self.ways = ways
        self.sets: list[list[OrderedDict[int, bool]]] = [
            [OrderedDict() for _ in range(count // way)]
            for count, way in zip(lines, ways, strict=True)
        ]
        self.read, self.written = [0] * len(lines), [0] * len(lines)

    def use(self, level: int, line: int, writes: bool, whole: bool = False) -> None:
        if level == len(self.sets):
            return
        held = self.sets[level][line % len(self.sets[level])]
        changed = held.pop(line, None)
        if changed is None:
            if len(held) == self.ways[level]:
                self._leave(level, *held.popitem(last=False))
            if not whole:
                self.read[level] += 1
                self.use(level + 1, line, False)
        held[line] = writes or bool(changed)

    def _leave(self, level: int, line: int, changed: bool) -> None:
        if changed:
            self.written[level] += 1
            self.use(level + 1, line, True, True)

    def empty(self) -> None:
        for level, sets in enumerate(self.sets):
            for held in sets:
                while held:
                    self._leave(level, *held.popitem())


@settings(max_examples=40)
@given(
    sizes=st.lists(st.integers(1, 24), min_size=1, max_size=3),
    ways=st.sampled_from((1, 2, 3, 8)),
    count=st.integers(1, 20_000),
    seed=st.integers(0, 2**40),
)
def test_drawn_accesses_move_what_a_plain_model_moves(
    followed: KernelCache, sizes: list[int], ways: int, count: int, seed: int
) -> None:
    caches = _caches(*(size * ways * LINE for size in sizes), ways=ways)
    memory, steps = _lines(count, "u1"), 2000
    moved = _moved(followed, caches, "drawn", memory, count, steps, seed)
    model, state = _Model(caches), seed
    for _ in range(steps):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        place = (state >> 33) % count
        model.use(0, (memory.ctypes.data + place) // LINE, state >> 62 == 0)
    model.empty()
    read = [cache.bytes_read // LINE for cache in moved.caches]
    assert (read, [cache.bytes_written // LINE for cache in moved.caches]) == (
        model.read,
        model.written,
    )
    assert moved.loaded + moved.stored == steps


def test_a_routine_is_refused(followed: KernelCache) -> None:
    tracer = KernelTracer(followed, _caches(4096))
    with pytest.raises(ToolchainError, match=r"found the routine gemm[\s\S]*libraries=False"):
        tracer.routine("routine gemm", lambda: None)()


@pytest.mark.parametrize(
    ("caches", "line", "message"),
    [
        ((), 64, "1 to 4 caches, found 0"),
        ((SimulatedCache(4096),) * 5, 64, "1 to 4 caches, found 5"),
        ((SimulatedCache(4096),), 48, "a power of 2 bytes, found 48"),
        ((SimulatedCache(4096), SimulatedCache(1000)), 64, "cache 2 .* found 1000 bytes"),
        ((SimulatedCache(4096, 0),), 64, "multiple of 0 lines"),
    ],
)
def test_caches_that_cannot_be(caches: tuple[SimulatedCache, ...], line: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SimulatedCaches(caches, line)


def test_the_caches_of_a_processor() -> None:
    processor = Processor(cache_bytes=(49152, 2097152), line_bytes=64)
    caches = SimulatedCaches.of_processor(processor, (12, 16)).caches
    assert caches == (SimulatedCache(49152, 12), SimulatedCache(2097152, 16))
    assert SimulatedCaches.of_processor(Processor(cache_bytes=(500,))).caches[0].bytes == 512


def test_traffic_is_read_in_a_line() -> None:
    traffic = MemoryTraffic(8, 4, (CacheTraffic(64, 0), CacheTraffic(128, 64)), streamed=4)
    assert str(traffic) == (
        "registers 8 read 4 written, cache 1 64 read 0 written, memory 128 read 68 written"
    )


def test_integers_that_threads_are_counted_by_are_one(followed: KernelCache) -> None:
    """A traced kernel runs in one thread."""
    text = """#include "taco_runtime.h"
int32_t tell(int64_t *y, int32_t threads) { y[0] = threads; return 0; }
"""
    y, threads = Parameter("y", Kind.OUTPUT, INT64), Parameter("threads", Kind.THREADS, INT32)
    source = KernelSource(text, (Signature("tell", (y, threads)),))
    told = np.zeros(1, np.int64)
    with traced_kernels(followed, _caches(4096)):
        followed.get_or_build("tell", lambda: source).kernel.functions["tell"](told, 7)
    assert told[0] == 1
