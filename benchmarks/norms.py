"""What is the gradient of a norm or a softmax worth without the sums that cancel?

Of layer and batch norms by `tp.nn`, of a softmax written with its maximum and of cross entropy by
`tp.nn`, float32, larger than the caches: ours, ours without the rules for sums that cancel
(`reduction elimination`), with operators apart (`decomposition`), with each primitive by itself,
NumPy by hand, and torch where it is installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

import taco_py as tp
from benchmarks.measure import OURS, Contest, Record, in_turns, record
from taco_py.graph.passes import without

SIZES = ((8192, 1024), (65536, 128))
LEFT_OUT = ("reduction elimination", "decomposition")
EPSILON = 1e-5
TOLERANCE = 1e-4
"""Of the largest element."""


def run() -> Iterator[Record]:
    for contest in contests():
        notes = _checked(contest)
        for name, seconds in in_turns(contest.contenders).items():
            samples = [1e3 * each for each in seconds]
            yield record("norms", contest.input, name, samples, "ms", notes[name])


def _checked(contest: Contest) -> dict[str, str]:
    """A note where a result differs from the first by more than sums of float32 do."""
    (_, first), *_ = contest.contenders.items()
    expected = first()
    most = TOLERANCE * abs(expected).max()
    wrong = {name: abs(way() - expected).max() for name, way in contest.contenders.items()}
    return {name: "" if own <= most else f"WRONG by {own:.1e}" for name, own in wrong.items()}


def layer_norm(x: Any, g: Any, b: Any, w: Any) -> Any:
    return (tp.nn.layer_norm(x, g, b) * w).sum()


def batch_norm(x: Any, g: Any, b: Any, w: Any) -> Any:
    return (tp.nn.batch_norm(x, g, b) * w).sum()


def softmax(x: Any, w: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return (e / e.sum(-1, keepdims=True) * w).sum()


def cross_entropy(x: Any, y: Any) -> Any:
    return tp.nn.cross_entropy(x, y)


def of_norm(axis: int) -> Callable[..., Any]:
    """The gradient of a norm by x, written out for NumPy."""

    def gradient(x: Any, g: Any, b: Any, w: Any) -> Any:
        apart = x - x.mean(axis, keepdims=True)
        deviation = np.sqrt((apart * apart).mean(axis, keepdims=True) + x.dtype.type(EPSILON))
        unit, d = apart / deviation, w * g
        means = d.mean(axis, keepdims=True) + unit * (d * unit).mean(axis, keepdims=True)
        return (d - means) / deviation

    return gradient


def of_softmax(x: Any, w: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    e /= e.sum(-1, keepdims=True)
    return e * (w - (e * w).sum(-1, keepdims=True))


def of_cross_entropy(x: Any, y: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    e /= e.sum(-1, keepdims=True)
    e[np.arange(len(y)), y] -= 1
    return e / x.dtype.type(len(y))


def contests() -> Iterator[Contest]:
    for rows, columns in SIZES:
        rng = np.random.default_rng(0)
        x, w = (rng.normal(size=(rows, columns)).astype(np.float32) for _ in range(2))
        g, b = (rng.random(columns).astype(np.float32) for _ in range(2))
        y = rng.integers(0, columns, rows)
        for loss, by_hand, args in (
            (layer_norm, of_norm(-1), (x, g, b, w)),
            (batch_norm, of_norm(0), (x, g, b, w)),
            (softmax, of_softmax, (x, w)),
            (cross_entropy, of_cross_entropy, (x, y)),
        ):
            made = _contenders(loss, by_hand, args)
            yield Contest(f"{loss.__name__}, {rows} by {columns}", made)


def _contenders(
    loss: Callable[..., Any], by_hand: Callable[..., Any], args: tuple[Any, ...]
) -> dict[str, Callable[[], Any]]:
    """The ways to the gradient by x."""
    gradient = tp.grad(loss, "x")
    apart = tp.grad(loss, "x", optimize="none")
    ways = {
        OURS: gradient,
        **{f"{OURS}, no {name.partition(' ')[0]}": without(gradient, name) for name in LEFT_OUT},
        f"{OURS}, apart": apart,
    }
    found: dict[str, Callable[[], Any]] = {"numpy": lambda: by_hand(*args)}
    found |= {name: lambda way=way: way(*args) for name, way in ways.items()}  # type: ignore[misc]
    if find_spec("torch") is not None:
        found["torch"] = _in_torch(loss.__name__, args)
    return found


def _in_torch(name: str, args: tuple[Any, ...]) -> Callable[[], Any]:
    """The gradient by x as autograd has it, of as many threads."""
    import torch
    from torch.nn import functional

    torch.set_num_threads(tp.get_threads())
    losses = {
        "layer_norm": lambda x, g, b, w: (
            functional.layer_norm(x, x.shape[1:], g, b, EPSILON) * w
        ).sum(),
        "batch_norm": lambda x, g, b, w: (
            functional.batch_norm(x, None, None, g, b, True, 0.1, EPSILON) * w
        ).sum(),
        "softmax": lambda x, w: (functional.softmax(x, -1) * w).sum(),
        "cross_entropy": functional.cross_entropy,
    }
    tensors = [torch.from_numpy(each) for each in args]
    tensors[0].requires_grad_()

    def gradient() -> Any:
        (found,) = torch.autograd.grad(losses[name](*tensors), tensors[0])
        return found.numpy()

    return gradient
