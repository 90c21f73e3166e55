"""Programs of graphs and of learning against scipy.sparse.csgraph and against NumPy by hand."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse import csgraph

from benchmarks import graph_programs as programs
from benchmarks.inputs import shared_loader
from taco_py.tool.inputs import rmat
from tests.pages import DOCS, blocks

REAL = ("karate", "cora_adj", "pubmed_adj")
SMALL = ("random", "rmat", "apart", "karate")


def directed(name: str) -> Any:
    """A graph with weights from 1 to 4; skips where a real one is not at hand."""
    rng = np.random.default_rng(7)
    if name == "random":
        A = sp.random_array((90, 90), density=0.03, format="csr", rng=rng)
    elif name == "rmat":
        A = rmat(7, 3)
    elif name == "apart":  # many components, some of them single nodes
        A = sp.random_array((80, 80), density=0.008, format="csr", rng=rng)
    else:
        loader = shared_loader()
        if loader is None:
            pytest.skip("no folder shared/data")
        A = loader.matrix(name)
    A = sp.csr_array(A)
    A.sum_duplicates()
    A.data = rng.integers(1, 5, A.nnz).astype(float)
    return A


def undirected(name: str) -> Any:
    """The same graph with its edges both ways, of weight 1, without loops."""
    A = directed(name)
    U = sp.csr_array(((A + A.T) > 0).astype(float))
    U.setdiag(0)
    U.eliminate_zeros()
    return U


everywhere = pytest.mark.parametrize("name", (*SMALL[:3], *REAL))
small = pytest.mark.parametrize("name", SMALL)


@pytest.mark.rotating(3)
@everywhere
@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_distances_from_a_node(name: str, layout: str) -> None:
    A = directed(name)
    source = int(np.argmax(np.diff(A.indptr)))
    steps = csgraph.dijkstra(A, unweighted=True, indices=source)
    found = programs.bfs_levels(A.asformat(layout), source)
    np.testing.assert_array_equal(found, np.where(np.isinf(steps), -1, steps))
    found = programs.distances(A.asformat(layout), source)
    np.testing.assert_allclose(found, csgraph.dijkstra(A, indices=source))


def test_distances_over_edges_below_zero() -> None:
    A = sp.csr_array(np.array([[0, 4.0, 1.0, 0], [0, 0, 0, 1.0], [0, -3.0, 0, 5.0], [0] * 4]))
    np.testing.assert_array_equal(programs.distances(A, 0), csgraph.bellman_ford(A, indices=0))


@everywhere
@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_pagerank(name: str, layout: str) -> None:
    """It solves p = 0.85 (P p + dangling / n) + 0.15 / n."""
    A = directed(name)
    n, out = A.shape[0], A.sum(axis=1)
    found = programs.pagerank(A.asformat(layout), tolerance=1e-15)
    assert found.sum() == pytest.approx(1)
    share = np.divide(1, out, out=np.zeros(n), where=out > 0)
    wanted = 0.85 * (A.T @ (share * found) + found[out == 0].sum() / n) + 0.15 / n
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@everywhere
@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_triangles(name: str, layout: str) -> None:
    U = undirected(name)
    assert programs.triangles(U.asformat(layout)) == round((U @ U).multiply(U).sum() / 6)


@small
@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_k_truss(name: str, k: int) -> None:
    """Edges are taken away one at a time, in plain Python."""
    U = undirected(name)
    near = {i: set(U.indices[U.indptr[i] : U.indptr[i + 1]].tolist()) for i in range(U.shape[0])}
    weak = True
    while weak:
        weak = [(i, j) for i in near for j in near[i] if len(near[i] & near[j]) < k - 2]
        for i, j in weak:
            near[i].discard(j)
            near[j].discard(i)
    found = programs.k_truss(U, k).tocoo()
    assert set(zip(*map(np.ndarray.tolist, found.coords), strict=True)) == {
        (i, j) for i in near for j in near[i]
    }


@everywhere
@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_components(name: str, layout: str) -> None:
    U = undirected(name)
    number, wanted = csgraph.connected_components(U)
    found = programs.components(U.asformat(layout))
    assert len(np.unique(found)) == number
    assert len(set(zip(found.tolist(), wanted.tolist(), strict=True))) == number


@small
def test_labels_spread(name: str) -> None:
    U = undirected(name)
    n = U.shape[0]
    seeds = np.full(n, -1)
    seeds[:6] = [0, 1, 2, 0, 1, 2]
    Y = (seeds[:, None] == np.arange(3)).astype(float)
    F, degree = Y, np.maximum(U.sum(axis=1), 1)
    for _ in range(5):
        F = Y + (seeds < 0)[:, None] * (U @ F) / degree[:, None]
    found = programs.spread_labels(U, seeds, 3, rounds=5)
    scores = np.sort(F, axis=1)
    clear = scores[:, -1] - scores[:, -2] > 1e-9  # ties may be broken either way
    np.testing.assert_array_equal(found[clear], F.argmax(axis=1)[clear])
    np.testing.assert_array_equal(found[:6], seeds[:6])


@small
def test_jaccard(name: str) -> None:
    U = undirected(name)
    X = U.toarray()
    common, degree = X @ X, X.sum(axis=1)
    wanted = X * common / np.where(X > 0, degree[:, None] + degree - common, 1)
    np.testing.assert_allclose(programs.jaccard(U).toarray(), wanted)


# ---------------------------------------------------------------- learning


@everywhere
def test_gcn_layer(name: str) -> None:
    rng = np.random.default_rng(0)
    A = directed(name)
    X, W, b = rng.standard_normal((A.shape[0], 8)), rng.standard_normal((8, 4)), rng.random(4) - 1
    found = programs.gcn_layer(A, X, W, b)
    np.testing.assert_allclose(found, np.maximum(A @ X @ W + b, 0), atol=1e-12)


def softmax(S: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Of the rows of a matrix that is -inf where it has no entry; 0 in rows without one."""
    top = S.max(axis=1, keepdims=True)
    e = np.exp(S - np.where(np.isinf(top), 0, top))
    z = e.sum(axis=1, keepdims=True)
    return e / np.where(z == 0, 1, z)


def scored(A: Any, scores: Any) -> np.ndarray[Any, Any]:
    return np.where(A.toarray() != 0, scores, -np.inf)


@small
def test_softmax_attention_and_gat(name: str) -> None:
    rng = np.random.default_rng(0)
    A = directed(name)
    n = A.shape[0]
    P = programs.sparse_softmax(A)
    np.testing.assert_allclose(P.to_numpy(), softmax(scored(A, A.toarray())), atol=1e-14)
    Q, K, V, W = (rng.standard_normal(shape) for shape in ((n, 6), (n, 6), (n, 5), (6, 4)))
    wanted = softmax(scored(A, Q @ K.T / np.sqrt(6))) @ V
    np.testing.assert_allclose(programs.masked_attention(A, Q, K, V), wanted, atol=1e-12)
    left, right = rng.standard_normal((2, 4))
    H = Q @ W
    S = (H @ left)[:, None] + H @ right
    wanted = softmax(scored(A, np.where(S > 0, S, 0.2 * S))) @ H
    np.testing.assert_allclose(programs.gat_layer(A, Q, W, left, right), wanted, atol=1e-12)


def test_tf_idf_and_cosine_similarity() -> None:
    rng = np.random.default_rng(1)
    counts = sp.csr_array(np.where(rng.random((30, 50)) < 0.1, rng.integers(1, 5, (30, 50)), 0))
    C = counts.toarray()
    T = programs.tf_idf(counts)
    wanted = C * (np.log((1 + 30) / (1 + (C > 0).sum(axis=0))) + 1)
    np.testing.assert_allclose(T.toarray(), wanted)
    norms = np.linalg.norm(wanted, axis=1)
    norms[norms == 0] = 1
    similar = programs.cosine_similarity(T)
    np.testing.assert_allclose(similar.toarray(), wanted @ wanted.T / np.outer(norms, norms))


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_logistic_gradient_and_standardisation(layout: str) -> None:
    rng = np.random.default_rng(2)
    X = sp.random_array((60, 20), density=0.2, format=layout, rng=rng)
    D = X.toarray()
    y, w, V = rng.integers(0, 2, 60).astype(float), rng.standard_normal(20), rng.random((20, 3))
    wanted = D.T @ (1 / (1 + np.exp(-D @ w)) - y) / 60
    np.testing.assert_allclose(programs.logistic_gradient(X, y, w), wanted, atol=1e-14)
    wanted = (D - D.mean(axis=0)) / D.std(axis=0) @ V
    np.testing.assert_allclose(programs.standardised_product(X, V), wanted, atol=1e-10)


def test_the_page_has_the_programs() -> None:
    page = "\n".join(blocks(DOCS / "examples.md"))
    mine = [
        value for value in vars(programs).values()
        if inspect.isfunction(value) and value.__module__ == programs.__name__
    ]  # fmt: skip
    assert mine
    assert not [each.__name__ for each in mine if inspect.getsource(each) not in page]
