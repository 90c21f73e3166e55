"""Dense sums and products whose indices are fused, turned or copied, on arrays with any strides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import taco_py
from taco_py import Tensor

pytestmark = pytest.mark.user_flags

Array = np.ndarray[Any, Any]


def arrays(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Iterator[Array]:
    """The same numbers stored in several ways."""
    array = rng.integers(-4, 5, shape).astype(dtype)
    yield array
    wide = np.zeros((*shape[:-1], shape[-1] + 3), dtype)
    wide[..., 1:-2] = array
    yield wide[..., 1:-2]
    yield np.repeat(array, 2, axis=0)[::2]


@pytest.mark.parametrize(
    "text, shapes, dtype",
    [
        ("c,cab->", ((3,), (3, 5, 70)), "float32"),
        ("j,ijk->ki", ((5,), (34, 5, 17)), "float64"),
        ("ac,bca->abc", ((18, 33), (7, 33, 18)), "float32"),
        ("bca,da->bcad", ((40, 8, 33), (16, 33)), "int64"),
    ],
)
def test_results_are_those_of_numpy(
    text: str, shapes: tuple[tuple[int, ...], ...], dtype: str
) -> None:
    rng = np.random.default_rng(3)
    for threads in (1, 2):
        for few in (shapes, *(tuple((n,) * len(shape) for shape in shapes) for n in (0, 1))):
            for operands in zip(*(arrays(rng, shape, dtype) for shape in few), strict=True):
                expected = np.einsum(text, *operands)
                out = np.full_like(expected, 7)
                for _ in range(2):  # the long way, then the short one
                    found = taco_py.einsum(text, *operands, threads=threads)
                    np.testing.assert_array_equal(found, expected)
                if out.ndim:
                    assert taco_py.einsum(text, *operands, out=out, threads=threads) is out
                    np.testing.assert_array_equal(out, expected)


def test_fused_results_have_all_modes() -> None:
    """Of a Tensor, of arrays that must be copied to, and where sizes disagree."""
    A, B = np.arange(6.0).reshape(2, 3), np.ones((3, 2))
    found = taco_py.einsum("ij,ij->ij", Tensor.from_numpy(A), A)
    assert isinstance(found, np.ndarray) and np.array_equal(found, A * A)
    out = np.zeros((3, 2)).T
    assert taco_py.einsum("ij,ij->ij", A, A, out=out) is out
    assert np.array_equal(out, A * A)
    for _ in range(2):
        assert np.array_equal(taco_py.einsum("ij,ij->ij", A, A), A * A)
        with pytest.raises(taco_py.TacoError, match="one size for index"):
            taco_py.einsum("ij,ij->ij", A, B)


@pytest.mark.parametrize(
    "text, shapes, kept",
    [
        ("bc,abc->cab", ((3, 4), (2, 3, 4)), "abc"),
        ("abc->cb", ((2, 3, 4),), "bc"),
        ("a,bc->cab", ((3,), (4, 5)), "abc"),
        ("ab,bc->ca", ((3, 4), (4, 5)), "ca"),
        ("cij,cjk->ikc", ((2, 3, 4), (2, 4, 5)), "cik"),  # products of a batch one after another
        ("icj,dcjk->kidc", ((3, 2, 4), (6, 2, 4, 5)), "ckid"),
        ("ijc,jkc->ikc", ((3, 4, 2), (4, 5, 2)), "ikc"),
    ],
)
def test_results_are_stored_as_the_operands_are(
    text: str, shapes: tuple[tuple[int, ...], ...], kept: str
) -> None:
    """Unless an order, an array or a format says otherwise."""
    operands = [np.arange(float(np.prod(shape))).reshape(shape) for shape in shapes]
    expected, wanted = np.einsum(text, *operands), text.split("->")[1]
    for _ in range(2):  # the long way, then the short one
        found = taco_py.einsum(text, *operands)
        np.testing.assert_array_equal(found, expected)
        assert found.transpose([wanted.index(i) for i in kept]).flags.c_contiguous
        for order in "CF":
            asked = taco_py.einsum(text, *operands, order=order)
            np.testing.assert_array_equal(asked, expected)
            assert asked.flags[f"{order}_CONTIGUOUS"]
    assert taco_py.einsum(text, *operands, format="d" * len(wanted)).flags.c_contiguous
    says = f"] is a view of an array that is stored in the order {','.join(kept)}"
    assert (says in taco_py.explain(text, *operands, frontier_budget=0)) == (kept != wanted)


def test_products_with_small_factors_that_are_multiplied_first() -> None:
    rng = np.random.default_rng(4)
    shapes = ((4, 60, 24, 25), (4, 25), (4, 24, 25))
    operands = [rng.integers(-3, 4, shape).astype("float32") for shape in shapes]
    expected = np.einsum("abdc,ac,adc->", *operands)
    for _ in range(2):
        assert taco_py.einsum("abdc,ac,adc->", *operands) == expected


@pytest.mark.rotating(3)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "complex128"])
@pytest.mark.parametrize("middle", [0, 1, 7, 8, 30])
@pytest.mark.parametrize("text", ["acb,ba->", "acb,ba->a", "acb,ab->b", "dacb,ba->", "dcab,ad->ab"])
def test_sums_outside_of_short_rows(text: str, middle: int, dtype: str) -> None:
    rng = np.random.default_rng(middle)
    sizes = {"a": 5, "b": 6, "c": middle, "d": 3}
    terms = text.split("->")[0].split(",")
    operands = [rng.integers(-4, 5, [sizes[i] for i in term]).astype(dtype) for term in terms]
    expected = np.einsum(text, *operands)
    found = taco_py.einsum(text, *operands)
    np.testing.assert_array_equal(found, expected)
    assert np.asarray(found).dtype == np.asarray(expected).dtype


@pytest.mark.rotating(2)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("few", [None, 0, 1, 2])
@pytest.mark.parametrize(
    "text, sizes",
    [
        ("acdb,dbc->d", (20, 4, 5, 6)),
        ("acdb,dbc->cb", (20, 4, 5, 6)),
        ("acdb,dbc,c->d", (9, 4, 5, 6)),
        ("abcd,dcb->", (16, 3, 4, 5)),
    ],
)
def test_temporaries_in_longer_rows(
    text: str, sizes: tuple[int, ...], few: int | None, dtype: str
) -> None:
    """Their own modes are taken apart again, by the long way and by the short one."""
    rng = np.random.default_rng(5)
    size = dict(zip("abcd", sizes if few is None else (few,) * 4, strict=True))
    terms = text.split("->")[0].split(",")
    for shift in (0, 1):  # other sizes of the same class, on the same kernels
        shapes = [[size[i] + shift * (few is None) for i in term] for term in terms]
        for operands in zip(*(arrays(rng, tuple(s), dtype) for s in shapes), strict=True):
            expected = np.einsum(text, *operands)
            for threads in (1, 1, 2):
                found = taco_py.einsum(text, *operands, threads=threads)
                np.testing.assert_array_equal(found, expected)
    if few is None and text == "acdb,dbc->d":
        whole = map(np.ascontiguousarray, operands)
        told = taco_py.explain(text, *whole, frontier_budget=0)
        assert "unfuse    T from T_fused" in told
