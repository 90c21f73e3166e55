"""Operators and NumPy's functions of a Tensor are refused in our words."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp

A = sp.csr_array(np.eye(3))
T = tp.tensor(A)
X = np.ones(3)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: T @ X, 'tp.einsum("ij,j->i", T, x)'),
        (lambda: X @ T, "T.to_scipy() @ x"),
        (lambda: T @ A, "T.to_scipy() @ x"),
        (lambda: A @ T, "call .to_scipy()"),
        (lambda: T + T, "A[i,j] + B[i,j]"),
        (lambda: A + T, "A[i,j] + B[i,j]"),
        (lambda: 2 * T, "A[i,j] * B[i,j]"),
        (lambda: X * T, "A[i,j] * B[i,j]"),
        (lambda: np.float64(2) / T, "A[i,j] / B[i,j]"),
        (lambda: T - 1, "A[i,j] - B[i,j]"),
        (lambda: operator.iadd(T, T), "A[i,j] + B[i,j]"),
        (lambda: T**2, "A[i,j]**2"),
        (lambda: -T, "-A[i,j]"),
        (lambda: abs(T), "T.to_coo()"),
        (lambda: T > 1, "compare arrays"),
        (lambda: T[0], "take elements of an array"),
        (lambda: np.exp(T), "T.to_coo()"),
        (lambda: np.add(T, T), "A[i,j] + B[i,j]"),
        (lambda: np.sum(T), 'tp.einsum("ij,j->i", T, x)'),
        (lambda: np.dot(T, X), 'tp.einsum("ij,j->i", T, x)'),
        (lambda: np.where(T, 1, 0), "T.to_coo()"),
    ],
)
def test_the_message_says_what_to_write(call: Callable[[], Any], says: str) -> None:
    with pytest.raises(TypeError) as caught:
        call()
    assert isinstance(caught.value, tp.TacoError)
    assert "found a Tensor" in str(caught.value) and says in str(caught.value)


def test_the_remedy_for_functions_works() -> None:
    c, v = T.to_coo()
    found = tp.Tensor.from_coo(c, np.sqrt(v), T.shape, axis=1)
    np.testing.assert_array_equal(found.to_numpy(), np.eye(3))


def test_tensors_are_equal_to_themselves_alone_and_can_be_keys() -> None:
    other = tp.tensor(A)
    assert other != T
    assert {T: 1}[T] == 1
