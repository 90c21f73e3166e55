"""Plans are kept by the facts they were made from; kernels are built once for all sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.calls.call import prepare as front
from taco_py.data.kernels import KERNELS

RNG = np.random.default_rng(6)


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The plans made during the test."""
    KERNELS.memo.clear()
    monkeypatch.setattr(KERNELS, "note", lambda key: None)  # nothing from earlier processes
    made: list[Any] = []
    original = front.make_plan

    def plan(*args: Any, **kwargs: Any) -> Any:
        made.append(original(*args, **kwargs))
        return made[-1]

    monkeypatch.setattr(front, "make_plan", plan)
    yield made
    KERNELS.memo.clear()


def csr(rows: int, columns: int, density: float = 0.3) -> Any:
    return sp.random_array((rows, columns), density=density, format="csr", rng=RNG)


def test_sizes_with_as_many_bits_share_a_plan(planned: list[Any]) -> None:
    for rows in (65, 90, 127):
        a, x = csr(rows, 100), RNG.random(100)
        np.testing.assert_allclose(tp.einsum("ij,j->i", a.todok(), x), a @ x)
    assert len(planned) <= 3
    before = len(planned)
    a = csr(66, 101)
    for _ in range(5):
        tp.einsum("ij,j->i", a.todok(), RNG.random(101))
    assert len(planned) <= before + 1


def test_new_sizes_build_no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    a = csr(40, 40)
    tp.einsum("ij,j->i", a, RNG.random(40))

    def refuse(*_: Any) -> Any:
        raise AssertionError("a kernel was built")

    monkeypatch.setattr("taco_py.compiler.driver.make_source", refuse)
    for rows, columns in ((1, 40), (40, 1), (0, 3), (3, 0), (300, 2), (70, 70)):
        b, x = csr(rows, columns), RNG.random(columns)
        np.testing.assert_allclose(tp.einsum("ij,j->i", b, x), b @ x)


def test_operands_of_one_plan_differ_in_broadcast_axes(planned: list[Any]) -> None:
    for left, right in ((1, 3), (3, 1), (3, 3), (1, 1), (2, 1), (2, 2)):
        a, b = RNG.random((4, left)), RNG.random((4, right))
        for _ in range(2):
            np.testing.assert_allclose(tp.einsum("ij,ij->ij", a, b), np.einsum("ij,ij->ij", a, b))


def test_diagonals_and_traces_follow_the_operand(planned: list[Any]) -> None:
    for _ in range(3):
        a = csr(9, 9)
        np.testing.assert_allclose(tp.einsum("ii->", a), a.trace())
        np.testing.assert_allclose(tp.einsum("ii->i", a).toarray(), a.diagonal())
        with pytest.raises(tp.DimensionError):
            tp.einsum("ii->", csr(9, 8))
    assert len(planned) <= 3


def test_out_is_written_and_checked_each_time(planned: list[Any]) -> None:
    a = csr(9, 9)
    for _ in range(2):
        x, out = RNG.random(9), np.full(9, np.nan)
        assert tp.einsum("ij,j->i", a, x, out=out) is out
        np.testing.assert_allclose(out, a @ x)
        with pytest.raises(tp.OutputError):
            tp.einsum("ij,j->i", a, x, out=np.empty(8))
    y = RNG.random(9)
    expected = a @ y
    np.testing.assert_allclose(tp.einsum("ij,j->i", a, y, out=y), expected)


def test_static_sizes_are_checked_each_time(planned: list[Any]) -> None:
    text = "C[i,k] = A[i,j] * B[j,k]"
    a = csr(9, 9)
    for _ in range(2):
        b = RNG.random((9, 4))
        np.testing.assert_allclose(tp.evaluate(text, A=a, B=b, static={"k": 4}), a @ b)
        with pytest.raises(tp.DimensionError):
            tp.evaluate(text, A=a, B=RNG.random((9, 5)), static={"k": 4})


def test_numbers_of_other_types_have_other_plans(planned: list[Any]) -> None:
    x = np.arange(3, dtype=np.int16)
    for number, dtype in ((2, np.int16), (2.0, np.float64), (2j, np.complex128), (2, np.int16)):
        result = tp.evaluate("y[i] = a * x[i]", a=number, x=x)
        assert result.dtype == dtype
        np.testing.assert_allclose(result, number * x)


def test_scipy_looks_at_its_indices_once(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = csr(30, 30), csr(30, 30)
    tp.evaluate("C[i,j] = A[i,j] + B[i,j]", A=a, B=b)
    monkeypatch.setattr("taco_py.data.interop.in_order.is_sorted", pytest.fail)
    monkeypatch.setattr("taco_py.data.interop.in_order.is_unique", pytest.fail)
    KERNELS.memo.clear()
    for _ in range(2):
        result = tp.evaluate("C[i,j] = A[i,j] + B[i,j]", A=a, B=b)
        np.testing.assert_allclose(result.toarray(), (a + b).toarray())


def test_tensors_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    a = csr(30, 30)
    unknown = sp.csr_array((a.data, a.indices, a.indptr), shape=a.shape)
    one = tp.tensor(unknown)
    assert one.data.sorted is None
    tp.evaluate("C[i,j] = A[i,j] + A[i,j]", A=one)
    assert one.data.sorted is True
    monkeypatch.setattr("taco_py.data.tensors.tensor.is_sorted", pytest.fail)
    tp.evaluate("C[i,j] = A[i,j] + A[i,j]", A=one)


def test_clearing_the_kernels_clears_the_plans(planned: list[Any]) -> None:
    tp.einsum("ij,j->i", csr(9, 9), RNG.random(9))
    assert len(KERNELS.memo) > 0
    KERNELS.memo.clear()
    assert len(KERNELS.memo) == 0
    tp.einsum("ij,j->i", csr(9, 9), RNG.random(9))
    assert len(planned) == 2
