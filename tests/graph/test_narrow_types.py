"""Small integers and truths in traced functions wrap as NumPy's do, whatever the plan is."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from tests.graph.random_programs import failures

OPERANDS = {
    "int8": np.array([[100, 100, 1], [-128, 3, 77]], np.int8),
    "uint8": np.array([[1, 2, 3], [255, 200, 0]], np.uint8),
    "bool": np.array([[True, True, False], [False, False, False]]),
    "int16": np.array([[30000, 30000, 1], [-32768, 3, 77]], np.int16),
    "uint64": np.array([[1, 2, 3], [2**63, 2**63 - 1, 0]], np.uint64),
}
FUNCTIONS: tuple[Callable[[Any], Any], ...] = (
    lambda a: ((a + a).sum(), (a + a).sum(0), (a * a).sum(1), ((a + a) * 1.0).sum()),
    lambda a: (np.prod(a + a), np.cumsum(a + a, 1), np.mean(a + a), (a + a).max() + (a + a).sum()),
    lambda a: ((a * 2).sum(), ((a + a) * a).sum(0), np.abs(a + a).sum(), (a > 1).sum()),
    lambda a: (~(a > 1).sum(1), (~a).sum(), (a + (a > 0)).sum(), np.sum(a * a.sum(0))),
)
SIGNED: Callable[[Any], Any] = lambda a: ((-a).sum(), (a - np.uint8(5)).sum(), (a**2).sum(0))  # noqa: E731


@pytest.mark.parametrize("optimize", ["stages", "none", "greedy"])
@pytest.mark.parametrize("dtype", OPERANDS)
def test_sums_of_what_wraps(dtype: str, optimize: str) -> None:
    a = OPERANDS[dtype]
    functions = FUNCTIONS if optimize == "stages" else FUNCTIONS[:1]
    for function in (*functions, *([SIGNED] if dtype != "bool" else [])):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = function(a)
        for found, other in zip(tp.fuse(function, optimize=optimize)(a), expected, strict=True):
            assert np.asarray(found).dtype == np.asarray(other).dtype
            np.testing.assert_allclose(found, other, rtol=1e-12)


WRITTEN_TYPES = ("int8", "uint16", "int32", "bool", "int64", "float16", "float32", "complex64")


@pytest.mark.parametrize("wanted", WRITTEN_TYPES)
@pytest.mark.parametrize("dtype", OPERANDS)
def test_types_that_sums_are_given(dtype: str, wanted: str) -> None:
    a = OPERANDS[dtype] // 3 if dtype != "bool" else OPERANDS[dtype]

    def written(a: Any) -> tuple[Any, ...]:
        one = a.sum(dtype=wanted), np.sum(a + a, 0, dtype=wanted, keepdims=True)
        return *one, np.add.reduce(a, 1, dtype=wanted), np.nansum(a, 0, dtype=wanted)

    def product(a: Any) -> tuple[Any, ...]:
        return a.prod(0, dtype=wanted), np.multiply.reduce(a, 1, dtype=wanted)

    for function in (written, product):
        with np.errstate(all="ignore"):
            expected = function(a)
        for found, other in zip(tp.fuse(function)(a), expected, strict=True):
            assert np.asarray(found).dtype == np.asarray(other).dtype
            np.testing.assert_allclose(found, other, rtol=2e-3 if wanted == "float16" else 1e-5)


TYPES = (
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
    "float32", "float64", "complex64", "complex128",
)  # fmt: skip


@pytest.mark.parametrize("dtype", TYPES)
def test_conversions_of_all_types(dtype: str) -> None:
    a = np.array([[0, 1, 2], [1, 0, 1]]).astype(dtype)

    def converted(a: Any) -> tuple[Any, ...]:
        return tuple(a.astype(wanted) + a.astype(wanted) for wanted in TYPES)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        found, expected = tp.fuse(converted)(a), converted(a)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("wanted", ["complex64", "complex128"])
def test_special_numbers_made_complex(wanted: str) -> None:
    a = np.array([np.inf, -np.inf, np.nan, -0.0, 1], np.float32)
    converted = tp.fuse(lambda a: (a.astype(wanted), a[:1].sum(dtype=wanted)))(a)
    for found, expected in zip(converted, (a.astype(wanted), a[:1].astype(wanted)), strict=True):
        np.testing.assert_array_equal(found, expected.reshape(np.shape(found)))
        assert (np.signbit(np.real(found)) == np.signbit(expected.real)).all()
    for entries in (sp.csr_array(a[None]), tp.tensor(sp.csr_array(a[None]))):
        found = tp.fuse(lambda a: a.astype(wanted))(entries)
        assert found.nnz == entries.nnz
        dense = found.to_numpy() if isinstance(found, tp.Tensor) else found.toarray()
        np.testing.assert_array_equal(dense[0], a.astype(wanted))


def test_types_that_means_are_given() -> None:
    a = np.array([[1, 2, np.nan], [4, 5, 6]], np.float32)
    assert tp.fuse(lambda a: np.nanmean(a, 0, dtype="float64"))(a).dtype == np.float64
    for function in (np.mean, np.var, np.std, np.nanmean):
        with pytest.raises(tp.OperandTypeError, match="int8"):
            tp.fuse(lambda a, of=function: of(a, 0, dtype="int8"))(a)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_of_sparse_and_lazy_operands(dtype: str) -> None:
    a = OPERANDS[dtype].copy()
    a[:, 1] = 0
    expected = (a + a).sum(0), (a * a).sum()
    found = tp.fuse(lambda a: ((a + a).sum(0), (a * a).sum()))(tp.tensor(sp.csr_array(a)))
    for one, other in zip(found, expected, strict=True):
        one = one.to_numpy() if isinstance(one, tp.Tensor) else np.asarray(one)
        np.testing.assert_array_equal(one, other)
    with tp.lazy() as later:
        total = (later(a) + later(a)).sum(0)
    np.testing.assert_array_equal(total.compute(), expected[0])


@pytest.mark.parametrize("optimize", ["stages", "none", "operators"])
def test_random_programs(optimize: str) -> None:
    seed = 100 * len(optimize)
    wrong = list(failures(8, seed, optimize, narrow=True))
    assert not wrong, "\n".join(wrong)
