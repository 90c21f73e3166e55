"""Operators and functions of elements over Tensors, arrays and numbers are NumPy's."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

import taco_py as tp
from tests.arrays.operands import OPERANDS, Array, agree, drawn, name_of

BINARY = (
    operator.add, operator.sub, operator.mul, operator.pow, operator.lt, operator.le, operator.gt,
    operator.ge, operator.eq, operator.ne, operator.truediv, operator.floordiv, operator.mod,
    operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift,
)  # fmt: skip
DIVIDE = (operator.truediv, operator.floordiv, operator.mod)

A, a = drawn("ds", (4, 5), seed=1)
B, b = drawn("ss", (4, 5), seed=2)
F, f = drawn("ss", (4, 5), np.float64, 2, seed=3)
N, n = drawn("ds", (4, 5), np.int32, seed=4)
M, m = drawn("ss", (4, 5), np.int8, seed=5)
ROW, row = drawn("ss", (1, 5), seed=6)
PAIRS: tuple[tuple[tuple[Any, Any], tuple[Any, Any]], ...] = (
    ((A, a), (B, b)),
    ((A, a), (F, f)),
    ((N, n), (M, m)),
    ((A, a), (ROW, row)),
    ((A, a), (3.0, 3.0)),
    ((2, 2), (F, f)),
    ((N, n), (np.int64(3), np.int64(3))),
    ((A, a), (sp.csr_array(b), b)),
    ((b, b), (A, a)),
    ((N, n), (m, m)),
)


@pytest.mark.rotating(2)
@pytest.mark.parametrize("operate", BINARY, ids=lambda each: each.__name__)
def test_operators_of_two(operate: Callable[[Any, Any], Any]) -> None:
    """But for one rule: what is absent is 0 over anything, and 0 / 0 is NaN in NumPy."""
    for (left, x), (right, y) in PAIRS:
        if operate in (operator.pow, *DIVIDE) and np.asarray(x).dtype.kind == "i":
            y = np.abs(y) + 1
            right = tp.tensor(y, format="ss") if isinstance(right, tp.Tensor) else y
        if operate in DIVIDE and not np.isscalar(y):
            y = np.where(y == 0, 1, y).astype(y.dtype)
            right = tp.tensor(y, format="ds") if isinstance(right, tp.Tensor) else y
        if operate is operator.pow and np.asarray(x).dtype.kind == "i":
            continue  # the exponents of integers that NumPy takes are tried below
        agree(lambda: operate(left, right), lambda: operate(x, y))  # noqa: B023


def test_what_is_absent_is_zero_over_anything() -> None:
    t = tp.tensor(np.array([0.0, 2.0]), format="s")
    np.testing.assert_array_equal((t / 0).to_numpy(), [0, np.inf])
    np.testing.assert_array_equal((t * np.inf).to_numpy(), [0, np.inf])
    np.testing.assert_array_equal((t / np.zeros(2)).to_numpy(), [0, np.inf])
    assert (1 / t).fill_value == np.inf


@pytest.mark.parametrize("operand", OPERANDS, ids=name_of)
def test_operators_and_functions_of_one(operand: tuple[tp.Tensor, Array]) -> None:
    t, x = operand
    real = x.dtype.kind != "c"
    for one in (operator.neg, operator.pos, abs, lambda each: each**2, np.sqrt, np.sin, np.isnan):
        agree(lambda: one(t), lambda: one(x))  # noqa: B023
    if real:
        agree(lambda: t.clip(0, 2), lambda: x.clip(0, 2))
        agree(lambda: t.clip(1), lambda: x.clip(1))
        agree(lambda: np.exp(t.astype(np.float64)), lambda: np.exp(x.astype(np.float64)))
        agree(lambda: (t * 1.26).round(1), lambda: (x * 1.26).round(1))
    for part in ("real", "imag"):
        agree(lambda: getattr(t, part), lambda: getattr(x, part))  # noqa: B023
    agree(t.conj, x.conj)
    agree(lambda: t != 0, lambda: x != 0)


def test_the_pattern_is_kept_beside_a_number_and_the_fill_value_follows() -> None:
    found = A + 1
    assert (found.nnz, found.fill_value, found.format) == (A.nnz, 1.0, A.format)
    assert found.data.levels is A.data.levels
    assert np.exp(A).fill_value == 1 and (A == 0).fill_value
    assert (~(A > 1)).fill_value and (A < 1).nnz == A.nnz


def test_numbers_are_operands_so_that_one_kernel_serves_them() -> None:
    from taco_py.data.kernels import KERNELS

    A * 1.5
    before = KERNELS.status
    for number in (2.5, 3.5, 4.5):
        np.testing.assert_array_equal((A * number).to_numpy(), a * number)
    assert before == KERNELS.status


def test_operators_take_the_short_way_of_evaluate() -> None:
    from taco_py.api.evaluate import call_fast_path

    sums, columns = A + B, A.sum(0)
    found = call_fast_path("R[i0,i1] = a0[i0,i1] + a1[i0,i1]", ("a0", "a1"), A, B)
    np.testing.assert_array_equal(found.to_numpy(), sums.to_numpy())
    found = call_fast_path("R[i1] = sum(i0, a0[i0,i1])", ("a0",), A)
    np.testing.assert_array_equal(found.to_numpy(), columns.to_numpy())


def test_a_sparse_tensor_becomes_dense_only_beside_a_dense_one_of_the_shape() -> None:
    assert (A + b).format.is_dense
    assert not (A * b[0]).format.is_dense
    with pytest.raises(tp.FormatError, match="would be dense") as caught:
        A + b[0]
    assert "to_dense()" in str(caught.value)
    agree(lambda: A.to_dense() + b[0], lambda: a + b[0])
    column = tp.tensor(a[:, :1], format="ss")
    assert not agree(lambda: column + ROW, lambda: a[:, :1] + row).format.is_dense


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_shapes_stretch_as_in_numpy(data: st.DataObject) -> None:
    """A few shapes alone, for each mix of them is a kernel."""
    shape = (2, 1, 3)
    ones = data.draw(st.lists(st.booleans(), min_size=len(shape), max_size=len(shape)))
    other = tuple(1 if one else size for one, size in zip(ones, shape, strict=True))
    other = other[data.draw(st.integers(0, len(shape) - 1)) :]
    t, x = drawn("s" * len(shape), shape, seed=7)
    u, y = drawn("s" * len(other), other, seed=8)
    agree(lambda: t * u, lambda: x * y)


def test_shapes_that_do_not_stretch() -> None:
    with pytest.raises(tp.DimensionError, match=r"\(4, 5\) and \(3,\)"):
        A + tp.tensor(np.ones(3), format="s")


def test_other_objects_are_left_to_python() -> None:
    with pytest.raises(TypeError):
        A + "text"
    assert A != "text" and not A == "text"  # noqa: SIM201
    assert {A: 1}[A] == 1


def test_functions_of_numpy() -> None:
    agree(lambda: np.add(A, B), lambda: np.add(a, b))
    agree(lambda: np.maximum(A, 1), lambda: np.maximum(a, 1))
    agree(lambda: np.where(A > 1, A, B), lambda: np.where(a > 1, a, b))
    agree(lambda: np.where(A > 1, A, 0), lambda: np.where(a > 1, a, 0))
    assert not np.where(A > 1, A, np.float32(2)).format.is_dense
    assert np.array_equal(A, A) and not np.array_equal(A, B)
    agree(lambda: np.hypot(A, B), lambda: np.hypot(a, b))
    agree(lambda: np.add(A, N, dtype=np.float64), lambda: np.add(a, n, dtype=np.float64))
    for call in (
        lambda: np.add(A, B, out=a.copy()),
        lambda: np.add.reduce(A),
        lambda: np.spacing(A),
        lambda: np.linalg.inv(A),
        lambda: np.sum(A, initial=3),
        lambda: np.asarray(A),
    ):
        with pytest.raises(tp.OperandTypeError):
            call()


def test_truth_and_numbers() -> None:
    one = tp.tensor(np.array([[3.0]]), format="ss")
    assert bool(one) and float(one) == 3 and int(one) == 3 and complex(one) == 3 and one.item() == 3
    with pytest.raises(tp.DimensionError, match="one element"):
        bool(A)
    assert tp.tensor(2.0) + 1 == 3 and tp.tensor(2.0) + tp.tensor(3.0) == 5
    assert (A + tp.tensor(2.0)).fill_value == 2
    assert (A * 1j).conj().fill_value == 0 and not (A * 1j).conj().data.fill
