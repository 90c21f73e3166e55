"""How fast are products over semirings and under masks on graphs, against SuiteSparse:GraphBLAS and
NumPy by hand, on one and two threads? Graphs are Tensors here and Matrices there, which know that
they have no duplicates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from benchmarks.inputs import matrices
from benchmarks.measure import OURS, REFERENCE, Record, in_turns, record
from benchmarks.peers import library

GRAPHS = ("cnr-2000", "rmat (scale 16)", "musae-github")
THREADS = (1, 2)
SHARE = 100  # one in so many vertices is in a frontier


@dataclass(frozen=True, slots=True)
class Task:
    """A product: by us, and by others, each with what makes an array of its result."""

    name: str
    ours: Callable[[int], Any]
    by_hand: Callable[[], Any]
    graphblas: Callable[[Any], Callable[[], Any]]


def run() -> Iterator[Record]:
    for name, graph in matrices():
        if name in GRAPHS:
            for task in tasks(graph):
                for threads in THREADS:
                    yield from contest(f"{name} {task.name}, {threads} threads", task, threads)


def contest(name: str, task: Task, threads: int) -> Iterator[Record]:
    """Check the results against those by hand, then time all in turns."""
    contenders = {REFERENCE: task.by_hand, OURS: partial(task.ours, threads)}
    graphblas = library("graphblas")
    if graphblas is not None:
        graphblas.ss.config["nthreads"] = threads
        contenders["GraphBLAS"] = task.graphblas(graphblas)
    expected = total(task.by_hand())
    for contender, seconds in in_turns(contenders).items():
        wrong = not np.isclose(total(contenders[contender]()), expected)
        times = [1e3 * t for t in seconds]
        yield record("semirings", name, contender, times, "ms", "WRONG" if wrong else "")


def total(result: Any) -> float:
    """The sum of all finite elements, which tells results apart."""
    if hasattr(result, "to_coo"):
        result = result.to_coo()[-1]
    elif isinstance(result, tp.Tensor):
        result = result.to_numpy() if result.order == 1 else result.to_scipy().data
    elif sp.issparse(result):
        result = result.data
    values = np.asarray(result, float)
    return float(values[np.isfinite(values)].sum())


def tasks(graph: Any) -> Iterator[Task]:
    """The products on one graph."""
    size = graph.shape[0]
    random = np.random.default_rng(0)
    weights = sp.csr_array((random.random(graph.nnz), graph.indices, graph.indptr), graph.shape)
    distances = random.random(size)
    some = np.sort(random.choice(size, size // SHARE, replace=False))
    front = sp.coo_array((distances[some], (some,)), (size,))
    seen = sp.coo_array((np.ones(size // 2), (np.arange(0, size - 1, 2)[: size // 2],)), (size,))
    unseen = seen.toarray() == 0  # GraphBLAS keeps so full a vector as a bitmap
    lower = sp.csr_array(sp.tril(graph + graph.T, -1))
    lower.data[:] = 1.0
    own, own_front, own_lower = map(tp.tensor, (weights, front, lower))
    yield Task(
        "min-plus SpMV",
        lambda t: tp.einsum("ij,j->i", own, distances, semiring="min_plus", threads=t),
        partial(min_plus, weights, distances),
        lambda gb: partial(graphblas_rows, gb, *of_graphblas(gb, weights, distances)),
    )
    yield Task(
        "min-plus SpMSpV",
        lambda t: tp.einsum("i,ij->j", own_front, own, semiring="min_plus", threads=t),
        partial(min_plus_rows, weights, some, distances),
        lambda gb: partial(graphblas_columns, gb, *of_graphblas(gb, weights, front), "min_plus"),
    )
    yield Task(
        "breadth-first step",
        lambda t: tp.einsum("i,ij->j", own_front, own, semiring="any_pair", mask=unseen, threads=t),
        partial(reached, weights, some, seen),
        lambda gb: partial(step, gb, *of_graphblas(gb, weights, front), *of_graphblas(gb, seen)),
    )
    yield Task(
        "triangles, plus-pair",
        lambda t: tp.einsum(
            "ik,kj->ij", own_lower, own_lower, mask=own_lower, semiring="plus_pair", threads=t
        ),
        lambda: (lower @ lower).multiply(lower),
        lambda gb: partial(masked, gb, *of_graphblas(gb, lower), gb.semiring.plus_pair),
    )
    yield Task(
        "masked product",
        lambda t: tp.einsum("ik,kj->ij", own_lower, own_lower, mask=own_lower, threads=t),
        lambda: (lower @ lower).multiply(lower),
        lambda gb: partial(masked, gb, *of_graphblas(gb, lower), gb.semiring.plus_times),
    )


# ---------------------------------------------------------------- NumPy by hand


def min_plus(weights: Any, distances: Any) -> Any:
    sums = weights.data + distances[weights.indices]
    found = np.full(weights.shape[0], np.inf)
    rows = np.flatnonzero(np.diff(weights.indptr))
    found[rows] = np.minimum.reduceat(sums, weights.indptr[rows])
    return found


def edges(weights: Any, some: Any) -> Any:
    """The edges of some vertices: from the how-manieth of these, to which, and their places."""
    counts = weights.indptr[some + 1] - weights.indptr[some]
    source = np.repeat(np.arange(len(some)), counts)
    starts = np.repeat(weights.indptr[some] - np.cumsum(counts) + counts, counts)
    places = starts + np.arange(counts.sum())
    return source, weights.indices[places], places


def min_plus_rows(weights: Any, some: Any, distances: Any) -> Any:
    source, target, places = edges(weights, some)
    found = np.full(weights.shape[1], np.inf)
    np.minimum.at(found, target, weights.data[places] + distances[some][source])
    return found


def reached(weights: Any, some: Any, seen: Any) -> Any:
    found = np.zeros(weights.shape[1], bool)
    found[edges(weights, some)[1]] = True
    found[seen.coords[0]] = False
    return found


# ---------------------------------------------------------------- GraphBLAS


def of_graphblas(gb: Any, *operands: Any) -> tuple[Any, ...]:
    """Operands as those of GraphBLAS."""
    return tuple(
        gb.io.from_scipy_sparse(each)
        if sp.issparse(each) and each.ndim == 2
        else gb.Vector.from_coo(each.coords[0], each.data, size=each.shape[0])
        if sp.issparse(each)
        else gb.Vector.from_dense(each)
        for each in operands
    )


def graphblas_rows(gb: Any, matrix: Any, vector: Any) -> Any:
    return matrix.mxv(vector, gb.semiring.min_plus).new()


def graphblas_columns(gb: Any, matrix: Any, vector: Any, name: str) -> Any:
    return vector.vxm(matrix, getattr(gb.semiring, name)).new()


def step(gb: Any, matrix: Any, vector: Any, seen: Any) -> Any:
    return vector.vxm(matrix, gb.semiring.any_pair[bool]).new(mask=~seen.S)


def masked(gb: Any, matrix: Any, semiring: Any) -> Any:
    return matrix.mxm(matrix, semiring).new(mask=matrix.S)
