"""How long do searches, shortest paths and ranks take, to the end, against scipy.sparse.csgraph?

Breadth-first levels, distances and PageRank (`graph_programs.py`) of directed graphs. csgraph has
`breadth_first_order`, whose order and predecessors are fewer than levels, and Dijkstra's distances;
PageRank is its loop with scipy's products by hand. networkx takes part where it is installed, of
graphs of few edges.
"""

# ruff: noqa: N803, N806

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from benchmarks.graph_programs import Array, bfs_levels, distances, pagerank
from benchmarks.inputs import shared_loader
from benchmarks.measure import OURS, REFERENCE, Contest, Record, in_turns, record
from taco_py.tool.inputs import rmat

REAL = ("cnr-2000", "gowalla")
TOLERANCE = 1e-10  # of the difference of two steps, for each node
LARGEST = 2_000_000  # edges of a graph of networkx, which takes about 300 bytes for each


def run() -> Iterator[Record]:
    for contest in contests():
        wanted = None
        for name, compute in contest.contenders.items():
            found = np.asarray(compute())
            wanted = found if wanted is None else wanted
            if not np.allclose(found, wanted, rtol=1e-3, atol=1e-12):
                raise ValueError(f"{contest.input}: {name} differs from {REFERENCE}")
        for name, seconds in in_turns(contest.contenders).items():
            yield record("graphs", contest.input, name, [1e3 * t for t in seconds], "ms")


def contests() -> Iterator[Contest]:
    for name, A in graphs():
        source = int(np.argmax(np.diff(A.indptr)))
        W = A.copy()
        W.data = np.random.default_rng(0).integers(1, 10, A.nnz).astype(float)
        peers = networkx_peers(A, W, source)
        for question, by_scipy, ours in (
            ("levels", partial(scipy_levels, A, source), partial(bfs_levels, A, source)),
            (
                "distances",
                lambda W=W, source=source: csgraph.dijkstra(W, indices=source),
                partial(distances, W, source),
            ),
            ("pagerank", partial(scipy_pagerank, A), partial(pagerank, A, tolerance=TOLERANCE)),
        ):
            theirs = {"networkx": peers[question]} if question in peers else {}
            yield Contest(f"{name}: {question}", {REFERENCE: by_scipy, OURS: ours, **theirs})


def graphs() -> Iterator[tuple[str, Any]]:
    """Directed graphs with weights 1: one made here, then real ones where they lie at hand."""
    yield "rmat (scale 15)", of_ones(rmat(15, 8))
    loader = shared_loader()
    for name in REAL if loader is not None else ():
        A = loader.matrix(name)
        if A.shape[0] != A.shape[1]:  # users and places: edges both ways
            A = sp.block_array([[None, A], [A.T, None]])
        yield name, of_ones(A)


def of_ones(A: Any) -> Any:
    A = sp.csr_array(A)
    A.sum_duplicates()
    indices, indptr = A.indices.astype(np.int32), A.indptr.astype(np.int32)
    return sp.csr_array((np.ones(A.nnz), indices, indptr), shape=A.shape)


def scipy_levels(A: Any, source: int) -> Array:
    """Levels, from where nodes and their predecessors stand in the order of the search."""
    order, before = csgraph.breadth_first_order(A, source)
    level, place = np.full(A.shape[0], -1), np.empty(A.shape[0], np.int64)
    place[order] = np.arange(order.size)
    above = place[before[order[1:]]]  # it ascends
    first, last, depth = 0, 1, 0
    while first < last:
        level[order[first:last]] = depth
        first, last, depth = last, 1 + int(np.searchsorted(above, last)), depth + 1
    return level


def scipy_pagerank(A: Any) -> Array:
    n, out = A.shape[0], A.sum(axis=1)
    share = np.divide(0.85, out, out=np.zeros(n), where=out != 0)
    turned, p = A.T, np.full(n, 1 / n)
    while True:
        q = turned @ (share * p)
        q += (1 - q.sum()) / n
        if np.abs(q - p).sum() < n * TOLERANCE:
            return q
        p = q


def networkx_peers(A: Any, W: Any, source: int) -> Mapping[str, Callable[[], Array]]:
    """networkx's functions by question; none for large graphs, or where it is not installed."""
    if A.nnz > LARGEST or find_spec("networkx") is None:
        return {}
    import networkx as nx

    n = A.shape[0]
    ones, weights = (nx.from_scipy_sparse_array(each, create_using=nx.DiGraph) for each in (A, W))

    def listed(found: Mapping[int, float], missing: float) -> Array:
        return np.array([found.get(node, missing) for node in range(n)])

    return {
        "levels": lambda: listed(nx.single_source_shortest_path_length(ones, source), -1),
        "distances": lambda: listed(nx.single_source_dijkstra_path_length(weights, source), np.inf),
        "pagerank": lambda: listed(nx.pagerank(ones, tol=TOLERANCE), 0),
    }
