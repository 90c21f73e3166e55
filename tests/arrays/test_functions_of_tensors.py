"""Sorting, sets, scans, repetitions and diagonals of Tensors are NumPy's, and stay sparse."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

import taco_py as tp
from tests.arrays.operands import OPERANDS, Array, agree, drawn, elements, name_of

FORMATS = ("dd", "ds", "ss", "ss:1,0", "uc", "sd")
Operation = Callable[[Any], Any]
ALONG: dict[str, Callable[[Any, int | None], Any]] = {
    "sort": lambda x, axis: np.sort(x, axis),
    "cumsum": lambda x, axis: np.cumsum(x, axis),
    "cumprod": lambda x, axis: np.cumprod(x, axis),
    "argmin": lambda x, axis: np.argmin(x, axis),
    "argmax": lambda x, axis: np.argmax(x, axis),
    "repeat": lambda x, axis: np.repeat(x, 2, axis),
    "roll": lambda x, axis: np.roll(x, 3, axis),
    "flip": lambda x, axis: np.flip(x, axis),
    "take": lambda x, axis: np.take(x, [1, 0, 1], axis),
}
"""Functions along a mode, of arrays and Tensors alike."""

WHOLE: dict[str, Operation] = {
    "tile": lambda x: np.tile(x, (2, 1, 3)),
    "tril": lambda x: np.tril(x, 1),
    "triu": lambda x: np.triu(x, -1),
    "diagonal": lambda x: np.diagonal(x, 1),
    "trace": lambda x: np.trace(x, -1),
    "broadcast_to": lambda x: np.broadcast_to(x[:1], (2, *x.shape)),
    "take_along_axis": lambda x: np.take_along_axis(x, np.array([[2, 0, 2]]), 1),
    "unique": lambda x: np.unique(x),
    "values": lambda x: np.stack(np.unique(x, return_counts=True)),
    "first": lambda x: np.stack(np.unique(x, return_index=True)),
    "inverse": lambda x: np.unique(x, return_inverse=True)[1],
    "searchsorted": lambda x: np.searchsorted(np.array([-1, 0, 2, 2, 3]), x),
}
"""Functions of matrices."""

numbers = st.sampled_from([-2, -1, 0, 0, 0, 1, 3])


@st.composite
def matrices(draw: st.DrawFn, fills: tuple[int, ...] = (0,)) -> tuple[tp.Tensor, Array]:
    """A matrix of any format, stored zeros among its entries, and its elements."""
    shape = (draw(st.integers(2, 4)), draw(st.integers(3, 5)))
    array = np.array(draw(st.lists(numbers, min_size=20, max_size=20))[: shape[0] * shape[1]])
    array = array.reshape(shape).astype(draw(st.sampled_from([np.int64, np.int8, np.float64])))
    fill = draw(st.sampled_from(fills))
    return tp.Tensor.from_numpy(array, draw(st.sampled_from(FORMATS)), fill_value=fill), array


@settings(max_examples=150, deadline=None)
@given(matrices(fills=(0, 0, 1, 3)), st.sampled_from(sorted(ALONG)), st.sampled_from([0, 1, None]))
def test_functions_along_modes(
    operand: tuple[tp.Tensor, Array], name: str, axis: int | None
) -> None:
    t, x = operand
    operate = ALONG[name]
    fill = int(t.fill_value)
    scanned = {"cumsum": (0,), "cumprod": (0, 1)}
    if not t.format.is_dense and fill not in scanned.get(name, (fill,)):
        with pytest.raises(tp.FormatError, match="to_dense"):
            operate(t, axis)
        return
    found = agree(lambda: operate(t, axis), lambda: operate(x, axis))
    if isinstance(found, tp.Tensor) and found.shape:
        assert found.format.is_dense == t.format.is_dense


@settings(max_examples=100, deadline=None)
@given(matrices(), st.sampled_from(sorted(WHOLE)))
def test_functions_of_matrices(operand: tuple[tp.Tensor, Array], name: str) -> None:
    t, x = operand
    operate = WHOLE[name]
    found = operate(t)
    wanted = np.asarray(operate(x))
    np.testing.assert_allclose(elements(found), wanted, rtol=1e-6)
    if isinstance(found, tp.Tensor):
        assert found.dtype == wanted.dtype


@pytest.mark.parametrize("operand", OPERANDS[:-1], ids=name_of)
def test_orders_with_nan_and_infinity(operand: tuple[tp.Tensor, Array]) -> None:
    t, x = operand
    if x.dtype.kind != "f" or not x.size:
        return
    x = np.where(x == 3, np.nan, np.where(x == 4, -np.inf, x)).astype(x.dtype)
    for fill in (t.fill_value, np.nan):
        y = np.where(x == t.fill_value, fill, x)
        u = tp.Tensor.from_numpy(y, t.format, fill_value=fill)
        for name in ("sort", "argmin", "argmax"):
            for axis in (0, -1, None):
                agree(lambda: ALONG[name](u, axis), lambda: ALONG[name](y, axis))  # noqa: B023
        agree(lambda: np.unique(u), lambda: np.unique(y))  # noqa: B023


def test_functions_that_are_kernels() -> None:
    t, x = drawn("ss", (4, 5), seed=4)
    agree(lambda: np.diff(t, axis=0), lambda: np.diff(x, axis=0))
    agree(lambda: np.diff(t, 2), lambda: np.diff(x, 2))
    agree(lambda: np.diff(t > 1), lambda: np.diff(x > 1))
    agree(lambda: np.ptp(t, 0), lambda: np.ptp(x, 0))
    agree(lambda: np.logaddexp(t, 1.5), lambda: np.logaddexp(x, 1.5))
    agree(lambda: np.signbit(-t), lambda: np.signbit(-x) & (x != 0))
    agree(lambda: np.trace(t, 1), lambda: np.trace(x, 1))


def test_long_lines_and_short_ones_are_scanned_alike() -> None:
    rng = np.random.default_rng(0)
    x = np.where(rng.random((40, 300)) < 0.02, rng.integers(-3, 4, (40, 300)), 0)
    x[7] = rng.integers(-3, 4, 300)
    t = tp.tensor(sp.csr_array(x))
    for axis in (0, 1):
        agree(lambda: t.cumsum(axis), lambda: x.cumsum(axis))  # noqa: B023
    x[7] = 1
    agree(lambda: tp.tensor(sp.csr_array(x)).cumprod(1), lambda: x.cumprod(1))


def test_vast_tensors_are_never_made_dense() -> None:
    vast = 10**9
    t = tp.Tensor.from_coo([[3, 5], [10**6 - 1, 7]], [2.0, -4.0], (10**6, vast), axis=1)
    assert (np.sort(t, 1).nnz, np.roll(t, 5, 1).nnz, np.flip(t, 0).nnz) == (2, 2, 2)
    assert np.sort(t, 1)[3, vast - 1] == 2 and np.sort(t, 1)[10**6 - 1, 0] == -4
    assert np.argmax(t, 1)[3] == 5 and np.argmin(t, 1).nnz == 1 and t.argmax(0).nnz == 1
    assert np.argmax(t, 1)[10**6 - 1] == 0
    assert np.unique(t).to_numpy().tolist() == [-4, 0, 2]
    assert np.repeat(t, 3, axis=0).nnz == 6 and np.tril(t).nnz == 1 and t.diagonal().nnz == 0
    assert t.cumprod(1).nnz == 0
    with pytest.raises(tp.OutOfMemoryError):
        t.cumsum(1).cumsum(0).cumsum(1)
    with pytest.raises(tp.FormatError, match="to_dense"):
        np.argsort(t)


def test_scipy_on_the_left_leaves_operators_to_the_tensor() -> None:
    t, x = drawn("ss", (4, 4), seed=3)
    for make in (sp.csr_array, sp.dia_array):
        a = make(np.eye(4) * 2)
        y = a.toarray()
        agree(lambda: a @ t, lambda: y @ x)  # noqa: B023
        agree(lambda: a * t, lambda: y * x)  # noqa: B023
        agree(lambda: a + t, lambda: y + x)  # noqa: B023
        agree(lambda: a - t, lambda: y - x)  # noqa: B023
        agree(lambda: a == t, lambda: y == x)  # noqa: B023
        agree(lambda: a < t, lambda: y < x)  # noqa: B023
    with pytest.raises(tp.OperandTypeError, match="not made dense"):
        np.asarray(t)


def test_methods_leave_the_tensor_as_it_is() -> None:
    t, x = drawn("ds", (3, 4))
    before = t.to_numpy().copy()
    u = t
    u += 1
    assert u is not t
    agree(t.sort, lambda: np.sort(x))
    agree(t.unique, lambda: np.unique(x))
    agree(lambda: t.swapaxes(0, 1), lambda: x.swapaxes(0, 1))
    agree(lambda: t.to_dense().argsort(), lambda: x.argsort(kind="stable"))
    agree(lambda: t.take([1, 0], 1), lambda: x.take([1, 0], 1))
    agree(lambda: t.repeat([1, 2, 0], 0), lambda: x.repeat([1, 2, 0], 0))
    np.testing.assert_array_equal(t.to_numpy(), before)
    with pytest.raises(TypeError):
        t[0, 0] = 1  # type: ignore[index]
    assert [3, 4][tp.tensor(np.int64(1))] == 4 and t.device == "cpu" and t.to_device("cpu") is t
    for call in (lambda: [3, 4][tp.tensor(1.0)], lambda: t.to_device("gpu")):
        with pytest.raises(tp.TacoError):
            call()
    agree(lambda: t[np.True_], lambda: x[np.True_])
    agree(lambda: t[False], lambda: x[False])


def test_names_and_options_of_numpy() -> None:
    t, x = drawn("ds", (3, 4), np.float64, seed=8)
    agree(lambda: t.reshape(2, 6, order="F"), lambda: x.reshape(2, 6, order="F"))
    agree(lambda: t.reshape((2, -1), order="F"), lambda: x.reshape((2, -1), order="F"))
    agree(lambda: t[sp.csr_array(x > 1)], lambda: x[x > 1])
    agree(lambda: round(t * 1.3), lambda: np.round(x * 1.3))
    none = t[:0, :1].to_format("ss")
    agree(lambda: none < np.ones(1), lambda: x[:0, :1] < np.ones(1))
    assert np.iscomplexobj(t * 1j) and np.isrealobj(t)
    assert t.astype(np.float64, copy=False) is t
    assert not np.shares_memory(t.reshape(3, 4, copy=True).data.values, t.data.values)
    for each in (t, t.to_dense()):
        file = BytesIO()
        np.save(file, each)
        file.seek(0)
        back = np.load(file, allow_pickle=True)
        agree(lambda: back if back.ndim else back.item(), lambda: x)  # noqa: B023
    for order in (None, 1, np.inf, -1):
        agree(lambda: np.linalg.norm(t, order), lambda: np.linalg.norm(x, order))  # noqa: B023
        agree(lambda: np.linalg.norm(t, order, 0), lambda: np.linalg.norm(x, order, 0))  # noqa: B023
