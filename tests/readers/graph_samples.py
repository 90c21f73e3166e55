"""Functions whose graphs are saved: every kind of operator, sizes, constants, gradients, steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from taco_py.graph import TracedGraph

rng = np.random.default_rng(3)
x, y, v = rng.random((4, 5)), rng.random((4, 5)), rng.random(5)
S = sp.random_array((4, 4), density=0.5, format="csr", rng=rng) + sp.eye_array(4)
S = sp.csr_array(S)
W = rng.random((5, 3))
places = np.array([2, 0, 1, 2])


def softmax_of(x: Any, n: Any) -> Any:
    e = np.exp(x / np.sqrt(x.shape[-1]) - x.max(-1, keepdims=True))
    return (e / e.sum(-1, keepdims=True)) * n + (x.shape[0] - x.shape[1]) ** 2


def moved(x: Any, v: Any) -> Any:
    return {
        "a": np.concatenate([x[1:], x[:1]]).T.reshape(-1), "b": (x[::2, 1:3] + 1j, v[:, None]),
        "c": [np.cumsum(x, 1), np.argmax(x), np.sort(v), np.where(x > 0.5, x, 0.0)], "d": "text",
    }  # fmt: skip


def sparse(S: Any, x: Any) -> Any:
    return (S @ x).sum(0), S * 2.0, S.T @ np.tanh(x)


def gathered(x: Any) -> Any:
    return x[places].sum(), np.take(x, [0, 1], 0), np.einsum("ij,kj->ik", x, x)


def solved(x: Any) -> Any:
    square = x @ x.T + np.eye(4)
    return np.linalg.solve(square, x), np.median(x, axis=1), np.pad(x, 1), np.fft.rfft(x)


def attention(x: Any, W: Any) -> Any:
    return tp.nn.softmax(x @ W) @ W.T


def texts(x: Any, v: Any) -> Any:
    return tp.evaluate("R[i] = sum(j, A[i,j] * b[j])", A=x, b=v)


FUNCTIONS: Mapping[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "softmax": (softmax_of, (x, 2.0)), "moved": (moved, (x, v)), "sparse": (sparse, (S, x)),
    "gathered": (gathered, (x,)), "solved": (solved, (x,)), "attention": (attention, (x, W)),
    "texts": (texts, (x, v)), "constant": (lambda x: x @ W + S.sum() + x.var(), (x,)),
    "sparse_constant": (lambda x: S @ x, (x,)), "condition": (
        lambda x: x + 1 if x.shape[0] < x.shape[1] else x, (x,)),
    "containers": (lambda p, q: (p["a"] * p["b"]).sum(0) @ q[0], ({"a": x, "b": y}, (v,))),
}  # fmt: skip

LOSSES: Mapping[str, tuple[Callable[..., Any], Any, tuple[Any, ...]]] = {
    "cube": (lambda x: (x**3).sum(), "x", (v,)),
    "two": (lambda x, y: (x * y).sum(), ("x", "y"), (x, y)),
    "sparse": (lambda S, x: ((S @ x) ** 2).sum(), ("S", "x"), (S, x)),
    "sparse_constant": (lambda x: ((S @ x) ** 2).sum(), "x", (x,)),
    "constant": (lambda x: np.tanh(x @ W).sum() / x.shape[0], "x", (x,)),
    "gathered": (lambda x: (x[places] ** 2).sum() + x[1:, :2].sum(), "x", (x,)),
    "attention": (lambda x, W: (attention(x, W) ** 2).mean(), ("W", "x"), (x, W)),
    "containers": (lambda p: (p["a"] * p["b"]).sum(), "p", ({"a": x, "b": y},)),
    "extremum": (lambda x: np.maximum(x, 0.5).max(0).sum(), "x", (x,)),
}
"""Functions of one number, names of arguments, and operands."""


def graph_of_step(optimizer: str, value: bool = True) -> tuple[TracedGraph, tuple[Any, ...]]:
    """The graph of a step of training, and its operands."""
    step = tp.train_step(
        lambda W, b, x: (np.tanh(x @ W + b) ** 2).mean(), optimizer=optimizer, value=value
    )
    state = step.begin(W=W.copy(), b=np.zeros(3))
    graph = step.graph(state, x=x)
    return graph, graph.operands


def saved_graphs() -> dict[str, TracedGraph]:
    """A graph of each kind."""
    found = {name: tp.fuse(f).graph(*operands) for name, (f, operands) in FUNCTIONS.items()}
    for name, (f, wrt, operands) in LOSSES.items():
        found[f"grad {name}"] = tp.grad(f, wrt).graph(*operands)
        found[f"value {name}"] = tp.value_and_grad(f, wrt).graph(*operands)
    for optimizer in ("sgd", "momentum", "adam"):
        found[f"step {optimizer}"] = graph_of_step(optimizer)[0]
    found["step without value"] = graph_of_step("sgd", value=False)[0]
    with tp.lazy() as later:
        made = np.exp(later(x)) @ W
    found["lazy"] = made.graph()
    return found
