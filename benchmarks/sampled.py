"""What do functions of products take that sparse matrices sample, and their gradients?

Graph attention (a step of training by gradient descent), masked attention, a row-normalised
adjacency that is learned, sigmoid gates on edges, and the likelihood of a matrix factorisation over
observed entries, of 10 000 to 100 000 nodes with 10 entries a row: milliseconds in two threads, the
bytes that the plan takes at most, and how far memory grew. Beside them torch, where it is
installed, by gathers over the edges: no array of n by n elements there either. Times should grow
with n. `python -m benchmarks.sampled 20000` does it for another number of nodes.
"""

# ruff: noqa: N803, N806 - the names of the field
from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from benchmarks.measure import OURS, Compute, Record, in_threads, in_turns, record
from taco_py.graph.run.graph_program import KernelRun

THREADS, SECONDS, ENTRIES, WIDTH, RATE = 2, 10.0, 10, 16, 1e-3
NODES = (10_000, 100_000)
TOLERANCE = 1e-8


def graph_attention(W: Any, a: Any, b: Any, X: Any, M: Any) -> Any:
    """A layer of Veličković et al. (2018), with leaky ReLU and a softmax over neighbours."""
    H = X @ W
    E = (H @ a)[:, None] + (H @ b)[None, :]
    S = np.where(M, np.where(E > 0, E, 0.2 * E), -np.inf)
    P = np.exp(S - S.max(-1, keepdims=True))
    P = P / P.sum(-1, keepdims=True)
    return ((P @ H) ** 2).mean()


def masked_attention(Q: Any, K: Any, V: Any, M: Any) -> Any:
    S = np.where(M, Q @ K.T / np.sqrt(Q.shape[-1]), -np.inf)
    P = np.exp(S - S.max(-1, keepdims=True))
    P = P / P.sum(-1, keepdims=True)
    return ((P @ V) ** 2).sum()


def row_normalised(M: Any, X: Any) -> Any:
    return (((M / M.sum(1)[:, None]) @ X) ** 2).sum()


def symmetric(M: Any, X: Any) -> Any:
    d = 1 / np.sqrt(M.sum(1) + 1)
    return (((d[:, None] * M * d) @ X) ** 2).sum()


def gates(M: Any, Q: Any, K: Any) -> Any:
    return ((M * (1 / (1 + np.exp(-(Q @ K.T))))) ** 2).sum()


def likelihood(U: Any, V: Any, M: Any) -> Any:
    return np.where(M, (M - U @ V.T) ** 2, 0).sum() + 0.1 * ((U**2).sum() + (V**2).sum())


@dataclass(frozen=True)
class Case:
    """A loss with its arguments, those of them by which gradients are taken, and torch's loss of
    rows and columns of the entries and their values."""

    loss: Callable[..., Any]
    operands: Mapping[str, Any]
    wrt: tuple[str, ...]
    in_torch: Callable[..., Any] | None = None


def cases(n: int, rng: np.random.Generator) -> Iterator[Case]:
    drawn = sp.random_array((n, n), density=ENTRIES / n, format="csr", rng=rng)
    M = sp.csr_array(drawn + 0.1 * sp.eye_array(n))
    Q, K, V = (rng.random((n, WIDTH)) - 0.5 for _ in range(3))
    W, a, b = (rng.random(s) - 0.5 for s in ((WIDTH, WIDTH), WIDTH, WIDTH))
    attention = {"W": W, "a": a, "b": b, "X": Q, "M": M}
    yield Case(graph_attention, attention, ("W", "a", "b"), gat_in_torch)
    yield Case(masked_attention, {"Q": Q, "K": K, "V": V, "M": M}, ("Q", "K", "V"), attend_in_torch)
    yield Case(row_normalised, {"M": M, "X": Q}, ("M", "X"), rows_in_torch)
    yield Case(symmetric, {"M": M, "X": Q}, ("M", "X"))
    yield Case(gates, {"M": M, "Q": Q, "K": K}, ("M", "Q", "K"), gates_in_torch)
    yield Case(likelihood, {"U": Q, "V": K, "M": M}, ("U", "V", "M"), likelihood_in_torch)


# ---------------------------------------------------------------- torch, by gathers


def softmax_of_rows(torch: Any, e: Any, row: Any, n: int) -> Any:
    top = torch.full((n,), -torch.inf, dtype=e.dtype).scatter_reduce(0, row, e, "amax")
    p = torch.exp(e - top[row])
    return p / torch.zeros(n, dtype=e.dtype).index_add(0, row, p)[row]


def gat_in_torch(torch: Any, W: Any, a: Any, b: Any, X: Any, row: Any, col: Any, M: Any) -> Any:
    H = X @ W
    e = torch.nn.functional.leaky_relu((H @ a)[row] + (H @ b)[col], 0.2)
    p = softmax_of_rows(torch, e, row, len(X))
    return (torch.zeros_like(H).index_add(0, row, p[:, None] * H[col]) ** 2).mean()


def attend_in_torch(torch: Any, Q: Any, K: Any, V: Any, row: Any, col: Any, M: Any) -> Any:
    p = softmax_of_rows(torch, (Q[row] * K[col]).sum(-1) / Q.shape[-1] ** 0.5, row, len(Q))
    return (torch.zeros_like(V).index_add(0, row, p[:, None] * V[col]) ** 2).sum()


def rows_in_torch(torch: Any, X: Any, row: Any, col: Any, M: Any) -> Any:
    p = M / torch.zeros(len(X), dtype=M.dtype).index_add(0, row, M)[row]
    return (torch.zeros_like(X).index_add(0, row, p[:, None] * X[col]) ** 2).sum()


def gates_in_torch(torch: Any, Q: Any, K: Any, row: Any, col: Any, M: Any) -> Any:
    return ((M * torch.sigmoid((Q[row] * K[col]).sum(-1))) ** 2).sum()


def likelihood_in_torch(torch: Any, U: Any, V: Any, row: Any, col: Any, M: Any) -> Any:
    errors = ((M - (U[row] * V[col]).sum(-1)) ** 2).sum()
    return errors + 0.1 * ((U**2).sum() + (V**2).sum())


def of_torch(case: Case, gradients: bool) -> Iterator[tuple[str, Compute]]:
    """Torch's way; none where it is not installed."""
    try:
        import torch
    except ImportError:
        return
    if case.in_torch is None:
        return
    torch.set_num_threads(THREADS)
    entries = case.operands["M"].tocoo()
    row, col = (torch.from_numpy(each.astype(np.int64)) for each in (entries.row, entries.col))
    arrays = {
        name: torch.from_numpy(entries.data if name == "M" else np.array(each))
        for name, each in case.operands.items()
    }
    loss = case.in_torch

    def forward() -> Any:
        with torch.no_grad():
            return loss(torch, **arrays, row=row, col=col)

    def backward() -> Any:
        own = {n: each.detach().requires_grad_(n in case.wrt) for n, each in arrays.items()}
        value = loss(torch, **own, row=row, col=col)
        value.backward()
        return value.detach(), *(own[name].grad for name in case.wrt)

    yield "torch by gathers", backward if gradients else forward


# ---------------------------------------------------------------- ours


def most_bytes(graph: Any) -> int:
    """The most bytes that the kernels of a graph with one step of them take at once."""
    call = graph.call
    values = call.program.begin(graph.operands)
    steps = [step for step in call.program.steps if isinstance(step, KernelRun)]
    return steps[0].peak(call.primitives, values)[0] if len(steps) == 1 else 0


def of_ours(case: Case, gradients: bool) -> tuple[Compute, Any]:
    function = tp.value_and_grad(case.loss, case.wrt) if gradients else tp.fuse(case.loss)

    def compute() -> Any:
        found = function(**case.operands)
        return (found[0], *found[1]) if gradients else found

    return compute, function.graph(**case.operands)


def run(nodes: tuple[int, ...] = NODES) -> Iterator[Record]:
    with in_threads(THREADS):
        for n in nodes:
            for case in cases(n, np.random.default_rng(0)):
                for gradients in (False, True):
                    yield from compared(case, n, gradients)
                if case.loss is graph_attention:
                    yield from steps(case, n)


def compared(case: Case, n: int, gradients: bool) -> Iterator[Record]:
    """The times of all contenders, in turns."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    compute, graph = of_ours(case, gradients)
    compute()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    contenders = {OURS: compute} | dict(of_torch(case, gradients))
    note = f"{most_bytes(graph) / 1e6:.1f} MB at most, grew by {grown:.0f} MB, load {load()}"
    title = f"{case.loss.__name__} {n} {'gradients' if gradients else 'value'}"
    notes = {OURS: note} | {name: wrong(compute(), other()) for name, other in contenders.items()
                            if name != OURS}  # fmt: skip
    for name, seconds in in_turns(contenders, SECONDS).items():
        yield record("sampled", title, name, [1e3 * t for t in seconds], "ms", notes[name])


def steps(case: Case, n: int) -> Iterator[Record]:
    """A step of training by gradient descent."""
    step = tp.train_step(case.loss, optimizer="sgd", rate=RATE)
    parameters = {name: case.operands[name] for name in case.wrt}
    data = {name: each for name, each in case.operands.items() if name not in case.wrt}
    states = [step.begin(parameters)]

    def ours() -> Any:
        value, states[0] = step(states[0], **data)
        return value

    contenders: dict[str, Compute] = {OURS: ours}
    for name, gradient in of_torch(case, True):
        import torch

        own = [torch.from_numpy(each.copy()) for each in parameters.values()]

        def theirs(gradient: Compute = gradient, own: Any = own) -> Any:
            value, *slopes = gradient()
            for parameter, slope in zip(own, slopes, strict=True):
                parameter.sub_(RATE * slope)
            return value

        contenders[name] = theirs
    for name, seconds in in_turns(contenders, SECONDS).items():
        title = f"{case.loss.__name__} {n} step of training"
        yield record("sampled", title, name, [1e3 * t for t in seconds], "ms", f"load {load()}")


def load() -> str:
    return f"{os.getloadavg()[0]:.1f}"


def wrong(ours: Any, theirs: Any) -> str:
    """Say whether results differ."""
    pairs = zip(ours, theirs, strict=True) if isinstance(ours, tuple) else ((ours, theirs),)
    for one, other in pairs:
        own = one.data if sp.issparse(one) else one
        expected = other.numpy()
        if not np.allclose(own, expected, rtol=TOLERANCE, atol=TOLERANCE * np.abs(expected).max()):
            return "WRONG"
    return ""


def main() -> None:
    """Print the table, for numbers of nodes if some are said."""
    from benchmarks.run import printed

    for _ in printed(run(tuple(map(int, sys.argv[1:])) or NODES)):
        pass


if __name__ == "__main__":
    main()
