"""Texts as functions of torch's tensors, against torch's own operators."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp

torch = pytest.importorskip("torch")
A = sp.random_array((6, 5), density=0.5, format="csr", rng=np.random.default_rng(0))


def test_gradients_are_those_of_torch() -> None:
    layer = tp.torch.function("H[i,k] = max(A[i,j] * X[j,k] + b[k], 0)", A=A)
    X = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    b = torch.randn(3, dtype=torch.float64, requires_grad=True)
    for _ in range(2):
        X.grad = b.grad = None
        H = layer(X=X, b=b)
        (H**2).sum().backward()
        ours = X.grad.clone(), b.grad.clone()
        X.grad = b.grad = None
        expected = torch.relu(torch.from_numpy(A.toarray()) @ X + b)
        (expected**2).sum().backward()
        torch.testing.assert_close(H, expected)
        torch.testing.assert_close(ours, (X.grad, b.grad))


def test_torch_checks_the_gradients() -> None:
    layer = tp.torch.function("y[i] = A[i,j] * exp(x[j]) * z[i]", A=A)
    x = torch.randn(5, dtype=torch.float64, requires_grad=True)
    z = torch.randn(6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, z: layer(x=x, z=z), (x, z))


def test_sparse_tensors_are_refused() -> None:
    layer = tp.torch.function("y[i] = A[i,j] * x[j]")
    with pytest.raises(tp.OperandTypeError, match="dense tensors of torch on the CPU, found A"):
        layer(A=torch.eye(3).to_sparse(), x=torch.ones(3))


def test_second_derivatives_are_refused() -> None:
    layer = tp.torch.function("y[i] = A[i,j] * x[j] * x[j]", A=A)
    x = torch.ones(5, dtype=torch.float64, requires_grad=True)
    loss = layer(x=x).sum() + (x**2).sum()
    (first,) = torch.autograd.grad(loss, x, create_graph=True)
    with pytest.raises(tp.DerivativeError, match="one derivative of a text in torch, found a sec"):
        first.sum().backward()
