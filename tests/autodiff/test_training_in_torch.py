"""Losses of training, step by step, against torch's autograd and optimisers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from tests.autodiff.training_cases import CASES

torch = pytest.importorskip("torch")
functional = pytest.importorskip("torch.nn.functional")
STEPS = 25


def graph_convolution(
    W0: Any, W1: Any, A: Any, X: Any, key: int, train: Any, y: Any, decay: Any
) -> Any:
    H = torch.relu(A @ (dropped(X, 2 * key) @ W0))
    H = dropped(H, 2 * key + 1)
    return functional.cross_entropy((A @ (H @ W1))[train], y) + decay / 2 * (W0**2).sum()


def dropped(x: Any, key: int) -> Any:
    """By the same factors, as constants."""
    return x * torch.from_numpy(tp.nn.dropout(np.ones(tuple(x.shape)), 0.5, key))


def perceptron(W1: Any, b1: Any, W2: Any, b2: Any, W3: Any, b3: Any, X: Any, y: Any) -> Any:
    H = torch.relu(torch.relu(X @ W1 + b1) @ W2 + b2)
    return functional.cross_entropy(H @ W3 + b3, y)


def ratings(U: Any, V: Any, b: Any, c: Any, M: Any, R: Any, decay: Any) -> Any:
    E = M * (U @ V.T + b[:, None] + c) - R
    return ((E**2).sum() + decay * sum((each**2).sum() for each in (U, V, b, c))) / M.sum()


def tensor_factors(A: Any, B: Any, C: Any, M: Any, T: Any) -> Any:
    return ((M * torch.einsum("ir,jr,kr->ijk", A, B, C) - T) ** 2).sum() / (T**2).sum()


def documents(W: Any, b: Any, X: Any, y: Any, decay: Any) -> Any:
    return functional.cross_entropy(X @ W + b, y) + decay / 2 * (W**2).sum()


LOSSES: Mapping[str, Callable[..., Any]] = {
    "graph convolution": graph_convolution, "perceptron": perceptron, "ratings": ratings,
    "tensor factors": tensor_factors, "documents": documents,
}  # fmt: skip


def optimizer_of(name: str, parameters: Any) -> Any:
    """The optimiser of torch with the settings below."""
    if name == "adam":
        return torch.optim.Adam(parameters, lr=0.02, weight_decay=0.01)
    return torch.optim.SGD(
        parameters, lr=0.02, weight_decay=0.01, momentum=0.9 if name == "momentum" else 0.0
    )


def of_torch(value: Any) -> Any:
    """A tensor of torch for an operand, dense."""
    if isinstance(value, float | int):
        return value
    if isinstance(value, tp.Tensor):
        value = value.to_numpy()
    dense = value.toarray() if sp.issparse(value) else value
    return torch.from_numpy(np.ascontiguousarray(dense))


def losses_of_torch(name: str, optimizer: str, parameters: Any, data: Any) -> list[float]:
    own = {key: of_torch(each.copy()).requires_grad_() for key, each in parameters.items()}
    given = {key: of_torch(each) for key, each in data.items()}
    chosen, values = optimizer_of(optimizer, [*own.values()]), []
    for _ in range(STEPS):
        chosen.zero_grad()
        value = LOSSES[name](**own, **given)
        value.backward()
        chosen.step()
        values.append(value.item())
    return values


@pytest.mark.rotating(3)
@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam"])
@pytest.mark.parametrize("name", LOSSES)
def test_losses_are_those_of_torch(name: str, optimizer: str) -> None:
    loss, parameters, data = CASES[name](np.random.default_rng(0))
    step = tp.train_step(loss, optimizer=optimizer, rate=0.02, decay=0.01)
    state, values = step.begin(parameters), []
    for _ in range(STEPS):
        value, state = step(state, **data)
        values.append(float(value))
    expected = losses_of_torch(name, optimizer, parameters, data)
    np.testing.assert_allclose(values, expected, rtol=1e-9, atol=0)
    assert values[-1] < values[0]


def test_there_is_a_loss_for_each_case() -> None:
    assert [*LOSSES] == [*CASES]
