"""Do the seconds that whole graphs are expected to take hold, and do choices by them pay?

Twelve fused functions. `expected` is what `explain()` says of the kernels that run by default, over
the measured seconds; `orchestrated` is the speed of `tp.fuse(f, optimize="orchestrate")` over that
of the default, `offloaded` that of `backends=("blas",)`.

    python -m benchmarks.graph_prices     a row for each function, then medians and worst ones
    python -m benchmarks.graph_prices graph_attention softmax_attention

"=" marks the kernels of the default, whose times differ by where the memory of results lies.
"""

# ruff: noqa: N803, N806 - the names of the field
from __future__ import annotations

import argparse
import re
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from benchmarks.measure import Record
from benchmarks.memory_bound_workloads import (
    batch_norm,
    cross_entropy,
    layer_norm,
    masked_softmax,
)
from benchmarks.sampled import graph_attention

EPSILON = np.float32(1e-5)
ROUNDS, SECONDS = 30, 3.0
"""Calls of each program at least, in turns, and seconds that all of them may take."""
EXPECTED = re.compile(r"^chosen .*?expected ([0-9.e+-]+) s", re.MULTILINE)
BACKENDS = ("blas",)


def mlp_block(X: Any, g: Any, b: Any, W: Any, c: Any, V: Any, d: Any) -> Any:
    m = X.mean(1, keepdims=True)
    Z = (X - m) / np.sqrt(((X - m) ** 2).mean(1, keepdims=True) + EPSILON) * g + b
    return np.maximum(Z @ W + c, 0) @ V + d + X


def sinkhorn(C: Any, a: Any, b: Any) -> Any:
    K = np.exp(-C / np.float32(0.1))
    u = np.ones_like(a)
    for _ in range(8):
        v = b / (K.T @ u)
        u = a / (K @ v)
    return (u[:, None] * K * v * C).sum()


def diffusion(U: Any, F: Any, h: Any) -> Any:
    D = 1 / (1 + U * U)
    E = (D[1:, :] + D[:-1, :]) / 2 * (U[1:, :] - U[:-1, :]) / h
    G = (D[:, 1:] + D[:, :-1]) / 2 * (U[:, 1:] - U[:, :-1]) / h
    across, along = (E[1:, 1:-1] - E[:-1, 1:-1]) / h, (G[1:-1, 1:] - G[1:-1, :-1]) / h
    return across + along - F[1:-1, 1:-1]


def softmax_attention(Q: Any, K: Any, V: Any) -> Any:
    S = Q @ K.T / np.sqrt(np.float32(Q.shape[-1]))
    P = np.exp(S - S.max(-1, keepdims=True))
    return P / P.sum(-1, keepdims=True) @ V


def gcn_layer(A: Any, X: Any, W: Any, b: Any) -> Any:
    return np.maximum(A @ (X @ W) + b, 0)


def k_means_step(X: Any, C: Any) -> Any:
    """The distances to all centres, softly assigned, and the centres that follow."""
    D = (X * X).sum(1)[:, None] - 2 * X @ C.T + (C * C).sum(1)
    R = np.exp(D.min(1, keepdims=True) - D)
    R = R / R.sum(1, keepdims=True)
    return (R.T @ X) / R.sum(0)[:, None]


def page_rank_step(A: Any, r: Any, d: Any) -> Any:
    """A step of the power method with what dangling nodes have, and how far it went."""
    degrees = A.sum(1)
    share = np.where(degrees > 0, r / np.where(degrees > 0, degrees, 1), 0)
    lost = np.where(degrees > 0, 0, r).sum()
    new = d * (A.T @ share + lost / r.shape[0]) + (1 - d) / r.shape[0]
    return new, np.abs(new - r).sum()


def _normal(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape, dtype=np.float32)


def _graph(n: int, degree: int, dtype: str = "float64") -> Any:
    rng = np.random.default_rng(n)
    A = sp.random_array((n, n), density=degree / n, format="csr", rng=rng)
    return sp.csr_array(A + 0.1 * sp.eye_array(n)).astype(dtype)


def _attention_operands() -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    W, a, b, X = (rng.random(s) - 0.5 for s in ((16, 16), 16, 16, (20_000, 16)))
    return W, a, b, X, _graph(20_000, 10)


def _mask(side: int) -> Any:
    return np.random.default_rng(1).random((side, side)) < 0.7


@dataclass(frozen=True)
class Workload:
    """A function of arrays with the operands of a call."""

    function: Callable[..., Any]
    operands: Callable[[], tuple[Any, ...]]


WORKLOADS: Mapping[str, Workload] = MappingProxyType({
    one.function.__name__: one
    for one in (
        Workload(mlp_block, lambda: (
            _normal(1024, 128), _normal(128), _normal(128), _normal(128, 512) * np.float32(0.1),
            _normal(512), _normal(512, 128) * np.float32(0.1), _normal(128),
        )),
        Workload(sinkhorn, lambda: (
            np.abs(_normal(400, 500)), np.full(400, 1 / 400, np.float32),
            np.full(500, 1 / 500, np.float32),
        )),
        Workload(diffusion, lambda: (_normal(500, 500), _normal(500, 501)[:, 1:],
                                     np.float32(0.1))),
        Workload(graph_attention, _attention_operands),
        Workload(softmax_attention, lambda: (_normal(512, 64), _normal(512, 65)[:, 1:].copy(),
                                             _normal(512, 66)[:, 2:].copy())),
        Workload(layer_norm, lambda: (_normal(2048, 1024), _normal(1024), _normal(1024))),
        Workload(gcn_layer, lambda: (_graph(20_000, 10, "float32"), _normal(20_000, 64),
                                     _normal(64, 32), _normal(32))),
        Workload(masked_softmax, lambda: (_normal(1024, 1024), _mask(1024))),
        Workload(k_means_step, lambda: (_normal(20_000, 32), _normal(64, 32))),
        Workload(page_rank_step, lambda: (_graph(50_000, 8), np.full(50_000, 2e-5), 0.85)),
        Workload(batch_norm, lambda: (_normal(16, 32, 56, 56), _normal(32), _normal(32))),
        Workload(cross_entropy, lambda: (_normal(2048, 1000),
                                         np.random.default_rng(2).integers(0, 1000, 2048))),
    )
})  # fmt: skip


@dataclass(frozen=True)
class Figures:
    """The seconds of a function by default, and those of the choices beside it.

    expected  by default, as `explain()` has it; each time is the least of those measured in turns
    same      whether the choices are the kernels of the default
    """

    expected: float
    default: float
    orchestrated: float
    offloaded: float
    same: tuple[bool, bool] = (False, False)

    @property
    def off(self) -> float:
        """How many times the longer of expected and measured is the shorter one."""
        return max(self.expected / self.default, self.default / self.expected)


def figures(workload: Workload) -> Figures:
    """Measure a workload: time of one thread, all programs in turns."""
    operands = workload.operands()
    programs = [
        tp.fuse(workload.function),
        tp.fuse(workload.function, optimize="orchestrate"),
        tp.fuse(workload.function, backends=BACKENDS),
    ]
    for program in programs:
        program(*operands)
    match = EXPECTED.search(programs[0].graph(*operands).explain())
    expected = float(match[1]) if match is not None else float("nan")
    least = [float("inf")] * len(programs)
    start, rounds = time.perf_counter(), 0
    while rounds < ROUNDS or time.perf_counter() - start < SECONDS:
        for place, program in enumerate(programs):
            begun = time.thread_time()
            program(*operands)
            least[place] = min(least[place], time.thread_time() - begun)
        rounds += 1
    default, *others = (program.graph(*operands).call for program in programs)
    same = [kernels_of(call, operands) == kernels_of(default, operands) for call in others]
    return Figures(expected, *least, (same[0], same[1]))


def kernels_of(call: Any, operands: tuple[Any, ...]) -> list[tuple[str, ...]]:
    """Return the names of what each step of a call computes."""
    return [tuple(sorted(n.name for n in step.nodes)) for step in call.program_of(operands).steps]


def measured(names: tuple[str, ...] = tuple(WORKLOADS)) -> Iterator[tuple[str, Figures]]:
    """Yield the figures of each workload."""
    for name in names:
        yield name, figures(WORKLOADS[name])


def run() -> Iterator[Record]:
    """Yield a record for each figure of each workload."""
    for name, one in measured():
        for what in ("expected", "default", "orchestrated", "offloaded"):
            ms = 1e3 * getattr(one, what)
            yield Record("graph_prices", name, what, "ms", ms, ms, ROUNDS)


def main() -> None:
    """Print a row for each workload, then the medians and the worst ones."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.graph_prices", description=__doc__)
    parser.add_argument("names", nargs="*", default=list(WORKLOADS))
    off: list[float] = []
    others: list[float] = []
    print(f"{'':20} {'ms':>8} {'expected':>9} {'orchestrated':>13} {'offloaded':>10}")
    for name, one in measured(tuple(parser.parse_args().names)):
        speeds = one.default / one.orchestrated, one.default / one.offloaded
        marks = ["=" if same else " " for same in one.same]
        print(
            f"{name:20} {1e3 * one.default:8.3f} {one.expected / one.default:9.2f} "
            f"{speeds[0]:12.2f}{marks[0]} {speeds[1]:9.2f}{marks[1]}",
            flush=True,
        )
        off.append(one.off)
        others += [speed for speed, same in zip(speeds, one.same, strict=True) if not same]
    print(f"off by (median) {statistics.median(off):.2f}, at worst {max(off):.2f}")
    print(f"other kernels than by default: at worst {min(others, default=1.0):.2f}")


if __name__ == "__main__":
    main()
