"""Growing results: what arrives, how often memory moved, who frees it, what is recycled."""

from __future__ import annotations

import gc
import resource
import sys
from pathlib import Path

import numpy as np
import pytest

from codegen.runtime.kernel_cache import KernelCache, LoadedKernel
from codegen.runtime.memory import memory_pool
from codegen.runtime.memory.memory_pool import Pool
from tests.toolchain import samples

MB = 2**20
LINUX = sys.platform.startswith("linux")
needs_mappings = pytest.mark.skipif(not LINUX, reason="large blocks are mapped on Linux only")


@pytest.fixture(autouse=True)
def nothing_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a test takes."""
    monkeypatch.setattr(memory_pool, "IDLE", 3600.0)


@pytest.fixture
def loaded(cache: KernelCache) -> LoadedKernel:
    return cache.get_or_build("runtime", samples.runtime).kernel


@pytest.fixture
def kernel(loaded: LoadedKernel, cache: KernelCache) -> LoadedKernel:
    """With nothing in the pool, and nothing that would come back to it."""
    gc.collect()
    cache.pool.clear()
    return loaded


def iota(kernel: LoadedKernel, n: int, room: int = 0) -> tuple[np.ndarray, int]:
    grown = np.zeros(1, np.int64)
    (result,) = kernel.functions["iota"](grown, room, n)
    return result, int(grown[0])


@pytest.mark.parametrize("n", [0, 1, 16, 17, 1000, MB - 1, MB, MB + 1, 3 * MB])
@pytest.mark.parametrize("room", [0, 10, MB, 5 * MB])
def test_contents_survive_growth(loaded: LoadedKernel, n: int, room: int) -> None:
    result, grown = iota(loaded, n, room)
    np.testing.assert_array_equal(result, np.arange(n, dtype=np.int32))
    assert result.dtype == np.int32
    assert result.flags.writeable
    if room >= n:
        assert grown == 0


def test_growth_doubles(kernel: LoadedKernel) -> None:
    _, grown = iota(kernel, 100_000)
    assert grown <= 14


@needs_mappings
def test_growth_in_a_reservation_is_free(kernel: LoadedKernel) -> None:
    """From 4 MB on, one reservation holds whatever the machine's memory can."""
    _, small = iota(kernel, MB)
    _, large = iota(kernel, 8 * MB)
    assert large <= small + 1


def test_the_array_owns_its_memory(kernel: LoadedKernel) -> None:
    view = iota(kernel, 3 * MB)[0][10:20]
    gc.collect()
    other, _ = iota(kernel, 3 * MB)
    other[:] = -1
    assert view.tolist() == list(range(10, 20))


@needs_mappings
def test_released_blocks_are_recycled(kernel: LoadedKernel, cache: KernelCache) -> None:
    first, _ = iota(kernel, 3 * MB)
    address = first.__array_interface__["data"][0]
    assert cache.pool.spare_bytes == 0
    del first
    assert 12 * MB <= cache.pool.spare_bytes <= 14 * MB
    second, _ = iota(kernel, 3 * MB)
    assert second.__array_interface__["data"][0] == address
    assert cache.pool.spare_bytes == 0


@needs_mappings
def test_a_spare_that_is_too_small_is_enlarged(kernel: LoadedKernel, cache: KernelCache) -> None:
    for n in (2 * MB, 4 * MB, 9 * MB):
        result, _ = iota(kernel, n)
        np.testing.assert_array_equal(result[::4099], np.arange(0, n, 4099, dtype=np.int32))
        del result
    assert cache.pool.spare_bytes > 0


@needs_mappings
def test_an_unused_spare_returns(kernel: LoadedKernel, cache: KernelCache) -> None:
    big, _ = iota(kernel, 3 * MB)
    del big
    held = cache.pool.spare_bytes
    small, _ = iota(kernel, 10)
    assert cache.pool.spare_bytes == held
    assert small.tolist() == list(range(10))


@needs_mappings
def test_results_are_trimmed(kernel: LoadedKernel, cache: KernelCache) -> None:
    result, _ = iota(kernel, 10, room=64 * MB)
    del result
    assert cache.pool.spare_bytes <= 2 * MB


@needs_mappings
def test_what_is_in_an_array_fits_the_spare_block_it_moves_to(
    kernel: LoadedKernel, cache: KernelCache
) -> None:
    """The spare block is of 2 MB; the array holds 3.6 MB when it becomes large."""
    cache.pool.clear()
    small, _ = iota(kernel, 10, room=64 * MB)
    del small
    assert cache.pool.spare_bytes == 2 * MB
    large, _ = iota(kernel, 3 * MB, room=9 * MB // 10)
    assert np.array_equal(large, np.arange(3 * MB))


def test_running_out_of_memory(kernel: LoadedKernel, cache: KernelCache) -> None:
    big, _ = iota(kernel, 3 * MB)
    del big
    with pytest.raises(MemoryError):
        kernel.functions["pair"](0, 0, 3 * MB, 1)
    a, b = kernel.functions["pair"](0, 0, 3 * MB, 0)
    assert a[-1] == 0.5 * (3 * MB - 1)
    assert b[-1] == 1 - 3 * MB


@needs_mappings
def test_refused_calls_do_not_leak(kernel: LoadedKernel, cache: KernelCache) -> None:
    """The spare block of a call that fails before it starts is freed, or still in the pool."""

    def mapped() -> int:
        words = Path("/proc/self/statm").read_text().split()
        return int(words[1]) * resource.getpagesize()

    good, bad = np.zeros(1, np.int64), np.zeros(1)
    for name, wrong in (
        ("pair", (0, 0, "n", 0)),
        ("pair", (0, 0, 3)),
        ("pair", ("room", 0, 3, 0)),
        ("pair", (0, 2**60, 3, 0)),
        ("iota", (bad, 0, 3)),
        ("iota", (good, 0, "n")),
    ):
        block = cache.pool.empty((64 * MB,), np.uint8)
        block[:] = 1
        del block
        before = mapped() - cache.pool.spare_bytes
        with pytest.raises((TypeError, ValueError, MemoryError)):
            kernel.functions[name](*wrong)
        assert mapped() - cache.pool.spare_bytes <= before + 8 * MB
        cache.pool.clear()


def test_asking_for_more_than_there_is(kernel: LoadedKernel) -> None:
    with pytest.raises(MemoryError):
        iota(kernel, 10, room=2**60)
    with pytest.raises(MemoryError):
        iota(kernel, 10, room=2**63 - 1)


@needs_mappings
def test_the_pool_has_a_limit(kernel: LoadedKernel, cache: KernelCache) -> None:
    pool = Pool(cache._get_host()[0], limit=20 * MB)
    arrays = [pool.empty((8 * MB,), np.uint8) for _ in range(3)]
    for array in arrays:
        array[:] = 1
    del array, arrays
    gc.collect()
    assert pool.spare_bytes == 16 * MB
    huge = pool.empty((32 * MB,), np.uint8)
    del huge
    assert pool.spare_bytes == 16 * MB
    pool.clear()
    assert pool.spare_bytes == 0


def test_empty(cache: KernelCache) -> None:
    for shape in ((), (0,), (3, 4), (1000, 1000), (0, 10**9)):
        array = cache.pool.empty(shape, np.complex128)
        assert (array.shape, array.dtype) == (shape, np.complex128)
        array[...] = 1j
        assert array.flags.c_contiguous


def address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def test_arrays_of_some_megabytes_are_recycled(cache: KernelCache) -> None:
    """Calls with temporaries of this size would otherwise touch fresh pages each time."""
    pool = Pool(cache._get_host()[0], limit=20 * MB)
    first = pool.empty((512, 512), np.float64)
    first[...] = 1.0
    view, where = first[3:], address(first)
    del first
    other = pool.empty((512, 512), np.float64)
    assert address(other) != where, "a view keeps the memory"
    del view
    third = pool.empty((700, 700), np.float32)  # a little less
    assert address(third) == where
    assert (third.shape, third.dtype, third.nbytes) == ((700, 700), np.float32, 700 * 700 * 4)
    third[...] = 2.0
    del third, other
    assert pool.spare_bytes == 2 * 512 * 512 * 8
    assert address(pool.empty((MB,), np.uint8)) != where, "much less would waste what it keeps"
    pool.clear()
    assert pool.spare_bytes == 0


@pytest.mark.parametrize("size", [0, 100, MB, 3 * MB, 4 * MB, 9 * MB, 40 * MB])
@pytest.mark.parametrize("dtype", ["float64", "int8", "complex64", "bool"])
def test_zeros(cache: KernelCache, size: int, dtype: str) -> None:
    """All are zero, also in memory that others have left full; and they are recycled."""
    cache.pool.clear()
    length = size // np.dtype(dtype).itemsize
    addresses = set()
    for shape in ((length,), (length,), (1, length)):
        found = cache.pool.zeros(shape, dtype)
        assert found.shape == shape and found.dtype == dtype and not found.any()
        found.fill(1)
        addresses.add(found.__array_interface__["data"][0])
        del found
    if LINUX and MB <= size <= 32 * MB:
        assert len(addresses) == 1
    kept = cache.pool.zeros((length,), dtype)
    other = cache.pool.zeros((length,), dtype)
    assert not np.may_share_memory(kept, other) or not size


def test_large_zeros_take_no_memory_before_they_are_written(cache: KernelCache) -> None:
    cache.pool.clear()
    cache.pool.empty((40 * MB,), "int8").fill(1)  # kept, and not taken to be cleared
    held = cache.pool.spare_bytes
    found = cache.pool.zeros((40 * MB,), "int8")
    assert cache.pool.spare_bytes == held and not found[::MB].any()


def test_the_latest_array_is_taken_first(cache: KernelCache) -> None:
    """It may still be in a cache."""
    for megabytes in (2, 8):
        pool = Pool(cache._get_host()[0], limit=64 * MB)
        one, two = (pool.empty((megabytes * MB,), np.uint8) for _ in range(2))
        last = address(one)
        del two
        del one
        assert address(pool.empty((megabytes * MB,), np.uint8)) == last


def test_few_arrays_are_kept(cache: KernelCache) -> None:
    pool = Pool(cache._get_host()[0])
    arrays = [pool.empty((3 * MB,), np.uint8) for _ in range(40)]
    del arrays
    assert pool.spare_bytes == 30 * MB
    pool = Pool(cache._get_host()[0], limit=MB)
    pool.empty((3 * MB,), np.uint8)
    assert pool.spare_bytes == 0
