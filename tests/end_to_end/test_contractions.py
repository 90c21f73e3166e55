"""Contractions of dense tensors through register tiles, against NumPy: orders, strides, types, and
sizes at the edges of tiles and blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import taco_py as tp

TEXTS = (
    "ik,kj->ij",
    "ki,jk->ji",
    "ij,kj->ki",
    "bij,bjk->bik",
    "bij,bkj->kib",
    "bik,bkj->bji",
    "bkj,bki->bji",
    "aebf,dfce->abcd",
    "abc,dca->bd",
    "ace,ecb->ba",
    "bqhd,bkhd->bhqk",
    "ijk,ir->rjk",
)
SIZES = (1, 5, 6, 7, 8, 9, 13, 33)


def operands(text: str, rng: np.random.Generator, dtype: str, large: int) -> list[Any]:
    """Arrays of small integers, so that sums are exact in any order."""
    terms = text.split("->")[0].split(",")
    indices = sorted(set("".join(terms)))
    choices = SIZES if len(indices) < 5 else SIZES[:5]
    sizes = {i: int(rng.choice(choices)) for i in indices}
    sizes[str(rng.choice(indices))] = large
    return [rng.integers(-4, 5, [sizes[i] for i in term]).astype(dtype) for term in terms]


def strided(array: Any, rng: np.random.Generator) -> Any:
    """The same numbers in another layout."""
    match int(rng.integers(4)):
        case 0:
            return np.asfortranarray(array)
        case 1:
            wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1] + 1), array.dtype)
            wide[..., 1::2] = array
            return wide[..., 1::2]
        case 2:
            return array[::-1].copy()[::-1]
    return array


@pytest.mark.rotating(6)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("large", [0, 1, 20, 131, pytest.param(260, marks=pytest.mark.user_flags)])
@pytest.mark.parametrize("text", TEXTS)
def test_against_numpy(text: str, large: int, dtype: str) -> None:
    """By one thread and by two, one of them with libraries: the other one for the other type."""
    rng = np.random.default_rng(large)
    arrays = operands(text, rng, dtype, large)
    expected = np.einsum(text, *arrays)
    for threads in (1, 2):
        given = [strided(array, rng) for array in arrays]
        libraries = (threads == 1) == (dtype == "float64")
        found = tp.einsum(text, *given, threads=threads, libraries=libraries)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("shape", [(300, 260, 520), (127, 4100, 9), (1, 700, 300), (700, 1, 300)])
def test_many_blocks(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, size).astype(float) for size in ((m, k), (k, n)))
    kernel = tp.compile("C[i,j] = A[i,k] * B[k,j]", A=tp.dense(2), B=tp.dense(2), C=tp.dense(2))
    assert "tiles of" in kernel.explain()
    for threads in (1, 2):
        np.testing.assert_array_equal(kernel(A=a, B=b, threads=threads), a @ b)
        out = np.full((m, n), np.nan)
        assert kernel(A=a, B=b, out=out, threads=threads) is out
        np.testing.assert_array_equal(out, a @ b)


def test_infinities_and_nan_stay_where_they_are() -> None:
    a, b = np.ones((9, 9)), np.ones((9, 9))
    a[2, 3], b[5, 8] = np.inf, np.nan
    for libraries in (False, True):
        found = tp.einsum("ik,kj->ij", a, b, libraries=libraries)
        np.testing.assert_array_equal(found, a @ b)


def test_a_static_size_and_the_same_operand_twice() -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(-4, 5, (70, 40)).astype(float)
    for libraries in (False, True):
        found = tp.einsum("ik,jk->ij", a, a, libraries=libraries)
        np.testing.assert_array_equal(found, a @ a.T)
    found = tp.evaluate("C[i,j] = A[i,k] * A[j,k]", A=a, static={"k": 40})
    np.testing.assert_array_equal(found, a @ a.T)


def test_an_order_of_loops_that_the_user_wants_is_kept() -> None:
    a = np.ones((70, 70))
    text = "C[i,j] = A[i,k] * B[k,j]"
    assert "tiles of" in tp.explain(text, A=a, B=a, libraries=False)
    assert "tiles of" not in tp.explain(text, A=a, B=a, schedule="reorder(i,k,j)")


@pytest.mark.rotating(4)
@pytest.mark.user_flags
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("text", ["ij->ji", "ijk->kji", "ijk->kij", "ijk->jik", "ijkl->lkji"])
def test_copies_in_another_order(text: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    for _ in range(4):
        sizes = {i: int(rng.choice([1, 16, 17, 24, 33])) for i in text.split("->")[0]}
        array = rng.random(tuple(sizes.values())).astype(dtype)
        expected = np.einsum(text, array)
        for threads in (1, 2):
            room = np.full(expected.size + 1, np.nan, dtype)
            for out in (room[1:].reshape(expected.shape), room[:-1].reshape(expected.shape)):
                assert tp.einsum(text, array, out=out, threads=threads) is out
                np.testing.assert_array_equal(out, expected)
    large = np.ones((70, 30, 70), dtype)
    assert "transposed in registers" in tp.explain("C[k,j,i] = A[i,j,k]", A=large)
    assert "transposed" not in tp.explain("C[j,i,k] = A[i,j,k]", A=large)


@pytest.mark.parametrize(
    "text", ["ij->ji", "ijk->kij", "ij", "ii->i", "iji->ij", "...j->j...", "iii->i"]
)
def test_permutations_and_diagonals_are_views(text: str) -> None:
    order = len(text.split("->")[0].replace("...", "a"))
    array = np.arange(4**order, dtype=float).reshape((4,) * order)
    found = tp.einsum(text, array)
    np.testing.assert_array_equal(found, np.einsum(text, array))
    assert np.shares_memory(found, array) and found.flags.writeable
    array.flags.writeable = False
    assert not tp.einsum(text, array).flags.writeable
    out = np.empty(found.shape)
    assert not np.shares_memory(tp.einsum(text, array, out=out), array)
    assert not np.shares_memory(tp.einsum(text, array, dtype=complex), array)
    assert tp.einsum(text, array, dtype=float).base is array.base


@pytest.mark.parametrize("text", ["ijk->kij", "iji->ij", "iij->ji", "ijij->ji", "iii->i", "ij->ji"])
def test_remembered_views(text: str) -> None:
    rng = np.random.default_rng(0)
    labels = text.split("->")[0]
    for _ in range(30):
        sizes = {label: int(rng.choice([0, 1, 2, 3])) for label in labels}
        whole = rng.random(tuple(2 * sizes[label] for label in labels)).astype(
            rng.choice(["f", "d"])
        )
        step = tuple(slice(None, None, int(rng.choice([2, -2]))) for _ in labels)
        array = np.asarray(whole[step], order=rng.choice(["K", "F"]))
        for _ in range(2):
            found = tp.einsum(text, array)
            np.testing.assert_array_equal(found, np.einsum(text, array))
            assert found.strides == np.einsum(text, array).strides or found.size < 2


def test_a_remembered_diagonal_looks_at_sizes() -> None:
    tp.einsum("ii->i", np.ones((3, 3)))
    with pytest.raises(tp.DimensionError, match="one size for index i"):
        tp.einsum("ii->i", np.ones((3, 2)))


@pytest.mark.parametrize("columns", [1600, 1601])
@pytest.mark.parametrize("threads", [1, 2])
def test_results_larger_than_half_of_a_cache(columns: int, threads: int) -> None:
    one, other = np.arange(2000.0), np.arange(float(columns))
    room = np.full(one.size * columns + 1, np.nan)
    for out in (None, room[:-1].reshape(-1, columns), room[1:].reshape(-1, columns)):
        found = tp.einsum("i,j->ij", one, other, out=out, threads=threads)
        np.testing.assert_array_equal(found, np.multiply.outer(one, other))
