"""Reductions, products and shapes of Tensors are NumPy's."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from tests.arrays.operands import OPERANDS, Array, agree, drawn, elements, name_of

MODES = ("sum", "prod", "mean", "var", "std", "min", "max", "any", "all")
A, a = drawn("ds", (4, 5))
B, b = drawn("ss", (5, 3), seed=1)
C, c = drawn("dss", (2, 3, 4), seed=2)


@pytest.mark.rotating(3)
@pytest.mark.parametrize("place", range(6), ids=lambda place: name_of(OPERANDS[place]))
def test_reductions(place: int) -> None:
    """Each operation over each mode of some operand."""
    t, x = OPERANDS[place]
    places = ((0, -1), (1,), (None, 0), ((0, 2), -2), (None,), (None, 1))[place]
    for name in MODES:
        for axis in places:
            options: Any = {"axis": axis, "keepdims": axis == -1}
            agree(lambda: getattr(t, name)(**options), lambda: getattr(x, name)(**options))  # noqa: B023
    for name in ("argmin", "argmax"):
        for axis in (None, -1):
            agree(lambda: getattr(t, name)(axis=axis), lambda: getattr(x, name)(axis=axis))  # noqa: B023


def test_reductions_of_no_elements_and_over_no_modes() -> None:
    t, x = drawn("ds", (3, 0))
    agree(lambda: t.sum(1), lambda: x.sum(1))
    agree(lambda: t.prod(1), lambda: x.prod(1))
    agree(lambda: A.sum(()), lambda: a.sum(()))
    agree(lambda: A.var(0, ddof=1), lambda: a.var(0, ddof=1))
    with pytest.raises(tp.DimensionError, match="axis from -2 to 1"):
        A.sum(2)
    with pytest.raises(tp.DimensionError, match="once in axis"):
        A.sum((0, -2))


def test_a_reduction_of_a_sparse_tensor_is_sparse_with_its_fill_value() -> None:
    t = tp.Tensor.from_coo([[0, 1]], [5.0], (10**6, 10**6), axis=1, fill_value=0)
    assert t.sum(0).nnz == 1 and t.max(1).nnz == 1
    assert t.argmax() == 1


def test_products() -> None:
    v = np.arange(5.0)
    agree(lambda: A @ B, lambda: a @ b)
    agree(lambda: A @ v, lambda: a @ v)
    agree(lambda: np.arange(4.0) @ A, lambda: np.arange(4.0) @ a)
    agree(lambda: A @ sp.csr_array(b), lambda: a @ b)
    agree(lambda: C @ C.mT, lambda: c @ np.swapaxes(c, 1, 2))
    agree(lambda: C[:1] @ C.mT, lambda: c[:1] @ np.swapaxes(c, 1, 2))
    agree(lambda: np.tensordot(A, B, 1), lambda: np.tensordot(a, b, 1))
    agree(
        lambda: np.tensordot(C, C, ((0, 1), (0, 1))), lambda: np.tensordot(c, c, ((0, 1), (0, 1)))
    )
    agree(lambda: A.dot(B), lambda: a.dot(b))
    agree(lambda: np.einsum("ij,jk->ki", A, B), lambda: np.einsum("ij,jk->ki", a, b))
    assert not (A @ B).format.is_dense
    for call in (lambda: A @ A, lambda: A @ 2, lambda: np.tensordot(A, B, 2)):
        with pytest.raises(tp.DimensionError):
            call()


@pytest.mark.parametrize("operand", OPERANDS, ids=name_of)
def test_shapes(operand: tuple[tp.Tensor, Array]) -> None:
    t, x = operand
    if x.size:
        agree(
            lambda: t.reshape(-1, 1, 2) if x.size % 2 == 0 else t.ravel(),
            lambda: x.reshape(-1, 1, 2) if x.size % 2 == 0 else x.ravel(),
        )
    agree(lambda: t.T, lambda: x.T)
    agree(lambda: np.moveaxis(t, 0, -1), lambda: np.moveaxis(x, 0, -1))
    agree(lambda: np.expand_dims(t, (0, 2)), lambda: np.expand_dims(x, (0, 2)))
    agree(t.squeeze, x.squeeze)
    agree(lambda: np.concatenate([t, t], axis=-1), lambda: np.concatenate([x, x], axis=-1))
    agree(lambda: np.concatenate([t, x], axis=None), lambda: np.concatenate([x, x], axis=None))
    agree(lambda: np.stack([t, t], axis=1), lambda: np.stack([x, x], axis=1))
    agree(lambda: np.stack(t.nonzero()), lambda: np.stack(x.nonzero()))
    agree(lambda: t.to_dense(), lambda: x)
    assert (len(t), t.size) == (len(x), x.size)
    for other in (pickle.loads(pickle.dumps(t)), copy.deepcopy(t), t.copy()):
        agree(lambda: other, lambda: x)  # noqa: B023


def test_shapes_that_do_not_fit() -> None:
    for call in (
        lambda: A.reshape(3, 3),
        lambda: A.reshape(-1, -1),
        lambda: A.transpose(0, 0),
        lambda: A.squeeze(0),
        lambda: np.concatenate([A, B]),
        lambda: np.stack([A, B]),
    ):
        with pytest.raises(tp.DimensionError):
            call()
    with pytest.raises(tp.FormatError, match="one fill value"):
        np.concatenate([A, A + 1])


def test_transposing_shares_arrays() -> None:
    assert np.shares_memory(A.T.data.values, A.data.values)
    assert str(A.T.format) == "ds:1,0"


def test_the_namespace_of_the_standard() -> None:
    xp = A.__array_namespace__("2024.12")
    agree(lambda: xp.sum(xp.exp(A), axis=0), lambda: np.exp(a).sum(0))
    agree(lambda: xp.matmul(A, B), lambda: a @ b)
    agree(lambda: xp.concat([A, xp.ones_like(A) * 0]), lambda: np.concatenate([a, 0 * a]))
    agree(lambda: xp.eye(3, 4, k=1), lambda: np.eye(3, 4, k=1))
    agree(lambda: xp.eye(4, 3, k=-2), lambda: np.eye(4, 3, k=-2))
    agree(lambda: xp.full((2, 3), 7), lambda: np.full((2, 3), 7))
    agree(lambda: xp.broadcast_to(A[:1], (2, 4, 5)), lambda: np.broadcast_to(a[:1], (2, 4, 5)))
    agree(lambda: xp.roll(A, (1, -2), axis=(0, 1)), lambda: np.roll(a, (1, -2), axis=(0, 1)))
    agree(lambda: xp.roll(A, 3), lambda: np.roll(a, 3))
    agree(lambda: xp.flip(A, axis=1), lambda: np.flip(a, axis=1))
    agree(lambda: xp.take(A, xp.asarray([2, 0]), axis=1), lambda: a[:, [2, 0]])
    agree(lambda: xp.vecdot(A, A), lambda: np.vecdot(a, a))
    agree(lambda: xp.pow(A, 2), lambda: a**2)
    agree(lambda: xp.arange(2, 8, 3), lambda: np.arange(2, 8, 3))
    assert xp.sum(A).shape == () and isinstance(xp.sum(A), tp.Tensor)
    assert xp.zeros((10**6, 10**6)).nnz == 0 and xp.ones((10**6, 10**6)).nnz == 0
    assert xp.result_type(A, xp.int8) == np.float64
    assert [elements(each).tolist() for each in xp.unstack(A)] == a.tolist()
    with pytest.raises(tp.OperandError):
        A.__array_namespace__("1999.01")


def test_a_picture_for_notebooks() -> None:
    shown = (A + 1)._repr_html_()
    assert "fill value" in shown and "<svg" in shown and shown.count("<rect") == A.nnz + 1
    assert "<svg" not in tp.tensor(1.0)._repr_html_()
    large = tp.Tensor.from_coo([[0, 5, 9]], [1.0], (10**3, 10**6, 10**6), axis=1)
    assert large._repr_html_().count("<rect") == 2


def test_products_with_what_is_no_array_are_refused() -> None:
    foreign: Any = type("Foreign", (), {"shape": A.shape, "ndim": A.ndim})()
    nothing: Any = object()
    for call in (
        lambda: A.dot(foreign),
        lambda: np.tensordot(foreign, A, 1),
        lambda: np.tensordot(A, nothing, 1),
    ):
        with pytest.raises(tp.OperandTypeError, match="Expected an array to multiply"):
            call()
