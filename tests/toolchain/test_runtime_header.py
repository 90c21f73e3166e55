"""taco_runtime.h: sorting against NumPy, the hash table against a dict, allocation at its ends."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from codegen.runtime.kernel_cache import KernelCache, LoadedKernel
from tests.toolchain import samples

LENGTHS = (0, 1, 2, 3, 16, 24, 25, 33, 100, 255, 256, 257, 511, 513, 1000, 5000)


@pytest.fixture(scope="module")
def kernel(cache: KernelCache) -> LoadedKernel:
    return cache.get_or_build("runtime", samples.runtime).kernel


def inputs(n: int, dtype: type, seed: int) -> list[NDArray[np.integer]]:
    """Random in three ranges, ascending, descending, nearly sorted, all equal."""
    rng = np.random.default_rng(seed)
    limits = np.iinfo(dtype)
    nearly = np.arange(n, dtype=dtype)
    if n > 3:
        nearly[[0, n // 2]] = nearly[[n // 2, 0]]
    ranges = ((0, 5), (-(10**5), 10**6), (limits.min, limits.max))
    drawn = [rng.integers(low, high, n, dtype=dtype, endpoint=True) for low, high in ranges]
    ascending = np.arange(n, dtype=dtype)
    return [*drawn, ascending, ascending[::-1].copy(), nearly, np.full(n, -7, dtype)]


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize(("name", "dtype"), [("sort32", np.int32), ("sort64", np.int64)])
def test_sort_is_numpys(kernel: LoadedKernel, name: str, dtype: type, n: int) -> None:
    for a in inputs(n, dtype, seed=n):
        expected = np.sort(a)
        kernel.functions[name](a, n)
        np.testing.assert_array_equal(a, expected)


@pytest.mark.parametrize("size", [40, 700, 100_003])
@pytest.mark.parametrize("n", [n for n in LENGTHS if n < 1000])
def test_sort_by_marks_is_numpys(kernel: LoadedKernel, n: int, size: int) -> None:
    a = np.random.default_rng(n).permutation(size)[:n].astype(np.int32)
    marks = np.isin(np.arange(size), a)
    kernel.functions["marked32"](a, len(a), marks)
    np.testing.assert_array_equal(a, np.flatnonzero(marks))


@pytest.mark.parametrize("n", LENGTHS)
def test_heap_sort_does_without_memory(kernel: LoadedKernel, n: int) -> None:
    for a in inputs(n, np.int32, seed=n):
        expected = np.sort(a)
        kernel.functions["heap32"](a, n)
        np.testing.assert_array_equal(a, expected)


@pytest.mark.parametrize("n", LENGTHS)
def test_merge_sort(kernel: LoadedKernel, n: int) -> None:
    for a in inputs(n, np.int64, seed=n):
        expected = np.sort(a)
        kernel.functions["merge64"](a, np.empty_like(a), n)
        np.testing.assert_array_equal(a, expected)


def test_sort_touches_nothing_else(kernel: LoadedKernel) -> None:
    a = np.arange(700, dtype=np.int64)[::-1].copy()
    kernel.functions["sort64"](a[100:], 500)
    np.testing.assert_array_equal(a[:100], np.arange(699, 599, -1))
    np.testing.assert_array_equal(a[600:], np.arange(99, -1, -1))
    assert (np.diff(a[100:600]) > 0).all()


def check_table(kernel: LoadedKernel, keys: NDArray[np.int64], dropped: int) -> None:
    n = len(keys)
    entries, ranked = np.empty(n, np.int64), np.empty(n, np.int64)
    count = np.zeros(1, np.int64)
    kernel.functions["table"](keys, entries, ranked, count, n, dropped)
    numbers: dict[int, int] = {}
    expected = []
    for i, key in enumerate(keys.tolist()):
        if i == dropped:
            numbers.clear()
        expected.append(numbers.setdefault(key, len(numbers)))
    assert entries.tolist() == expected
    assert count[0] == len(numbers)
    assert ranked[: count[0]].tolist() == [numbers[key] for key in sorted(numbers)]


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 40, 300, 5000])
def test_table_is_a_dict(kernel: LoadedKernel, n: int) -> None:
    rng = np.random.default_rng(n)
    extremes = np.array([np.iinfo(np.int64).min, np.iinfo(np.int64).max, -1, 0, 1])
    for keys in (
        rng.integers(0, n, n),
        rng.integers(0, n, n) * 4096,
        np.arange(n)[::-1].copy(),
        rng.integers(-(2**62), 2**62, n),
        rng.choice(extremes, n),
        np.where(rng.random(n) < 0.5, rng.integers(0, 50, n), rng.integers(-(2**62), 2**62, n)),
        rng.integers(0, 3, n) * 2**60 + rng.integers(0, 4000, n),  # many differ in low bits alone
    ):
        check_table(kernel, keys.astype(np.int64), dropped=-1)


@pytest.mark.parametrize("kept", [1, 3, 200])
def test_cleared_table_is_empty(kernel: LoadedKernel, kept: int) -> None:
    """Both ways of clearing: few entries in a large table one by one, many by filling."""
    rng = np.random.default_rng(kept)
    for dropped in (1, 2, 5, 1000):
        check_table(kernel, rng.integers(0, 10**6, dropped + kept), dropped)


def test_few_entries_are_cleared_one_by_one(kernel: LoadedKernel) -> None:
    """Entries that collided must all be found, though clearing opens gaps in their chains."""
    golden = 0x9E3779B97F4A7C15
    inverse = pow(golden, -1, 2**64)
    # Keys whose products with the golden ratio agree in the leading bits share a slot.
    colliding = [(((7 << 32) + k) * inverse) % 2**64 for k in range(2)]
    keys = np.array(colliding, np.uint64).astype(np.int64)
    check_table(kernel, np.concatenate([keys, keys[::-1]]), dropped=2)


def test_allocation(kernel: LoadedKernel) -> None:
    for n in (0, 1, 100, 9 * 2**20):
        facts = np.zeros(4, np.int64)
        kernel.functions["allocation"](facts, n)
        assert facts.tolist() == [0, 1, 1, 1]
