"""Programs of graphs and of learning, as docs/examples.md has them, word for word."""

# ruff: noqa: N803, N806

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp

Array = np.ndarray[Any, Any]


def bfs_levels(A: Any, source: int) -> Array:
    A = tp.tensor(A)  # the same arrays, which are checked once, not at each step
    n = A.shape[0]
    level, unseen = np.full(n, -1), np.ones(n, bool)
    reached, depth = np.array([source]), 0
    while reached.size:
        level[reached], unseen[reached] = depth, False
        frontier = tp.Tensor.from_coo([reached], np.ones(reached.size, bool), (n,))
        step = tp.einsum("ij,i->j", A, frontier, semiring="any_pair", mask=unseen, format="d")
        reached, depth = np.flatnonzero(step), depth + 1
    return level


def distances(A: Any, source: int) -> Array:
    A = tp.tensor(A)
    n = A.shape[0]
    d = np.full(n, np.inf)
    d[source] = 0
    changed = np.array([source])
    while changed.size:
        e = tp.Tensor.from_coo([changed], d[changed], (n,))
        nearer = tp.evaluate("d[j] += e[i] * A[i,j]", A=A, d=d, e=e, semiring="min_plus")
        changed = np.flatnonzero(nearer < d)
        d = nearer
    return d


def pagerank(A: Any, damping: float = 0.85, tolerance: float = 1e-6) -> Array:
    n = A.shape[0]
    out = tp.evaluate("z[i] = sum(j, A[i,j])", A=A, format="d")
    share = np.divide(damping, out, out=np.zeros(n), where=out != 0)
    B = tp.tensor(sp.csr_array(sp.csr_array(A).T))  # by the nodes that edges lead to
    p = np.full(n, 1 / n)
    while True:
        q = tp.evaluate("q[j] = B[j,i] * (share[i] * p[i])", B=B, share=share, p=p)
        q += (1 - q.sum()) / n
        if tp.evaluate("s = abs(q[i] - p[i])", q=q, p=p) < n * tolerance:
            return q
        p = q


def triangles(A: Any) -> int:
    L = sp.csr_array(sp.tril(A, -1))
    return int(tp.einsum("ik,jk->ij", L, L, semiring="plus_pair", mask=L).sum())


def k_truss(A: Any, k: int) -> Any:
    while True:
        support = tp.einsum("ik,jk->ij", A, A, semiring="plus_pair", mask=A)
        strong = tp.evaluate("S[i,j] = A[i,j] * (T[i,j] >= k - 2)", A=A, T=support, k=k)
        strong.eliminate_zeros()
        if strong.nnz == A.nnz:
            return strong
        A = strong


def components(A: Any) -> Array:
    A = tp.tensor(A)
    label = np.arange(A.shape[0])
    while True:
        least = tp.evaluate("l[i] += A[i,j] * m[j]", A=A, l=label, m=label, semiring="min_second")
        least = least[least]  # the label of the label: long paths take few rounds
        if np.array_equal(least, label):
            return label
        label = least


def spread_labels(A: Any, seeds: Array, classes: int, rounds: int = 20) -> Array:
    A = tp.tensor(A)
    Y = (seeds[:, None] == np.arange(classes)).astype(float)
    F, known = Y, (seeds >= 0).astype(float)
    for _ in range(rounds):
        F = tp.evaluate(
            """
            z[i] = max(sum(j, A[i,j]), 1)
            F[i,c] = Y[i,c] + (1 - known[i]) * A[i,j] * G[j,c] / z[i]
            """,
            A=A, Y=Y, known=known, G=F,
        )  # fmt: skip
    return F.argmax(axis=1)


def jaccard(A: Any) -> Any:
    common = tp.einsum("ik,jk->ij", A, A, semiring="plus_pair", mask=A)
    return tp.evaluate(
        "z[i] = count(j, A[i,j]); J[i,j] = C[i,j] / (z[i] + z[j] - C[i,j])", A=A, C=common
    )


def gcn_layer(A: Any, X: Array, W: Array, b: Array) -> Array:
    return tp.evaluate("H[i,k] = max(A[i,j] * X[j,l] * W[l,k] + b[k], 0)", A=A, X=X, W=W, b=b)


def sparse_softmax(S: Any) -> Any:
    return tp.evaluate(
        """
        m[i] = max(j, S[i,j])
        e[i,j] = exp(S[i,j] - m[i])
        z[i] = sum(j, e[i,j])
        P[i,j] = e[i,j] / z[i]
        """,
        S=tp.tensor(S, fill_value=-np.inf),
    )


def gat_layer(A: Any, X: Array, W: Array, left: Array, right: Array) -> Array:
    H = X @ W
    scores = tp.evaluate("S[i,j] = l[i] + r[j]", l=H @ left, r=H @ right, mask=A)
    return tp.evaluate(
        """
        L[i,j] = where(S[i,j] > 0, S[i,j], 0.2 * S[i,j])
        m[i] = max(j, L[i,j])
        e[i,j] = exp(L[i,j] - m[i])
        z[i] = sum(j, e[i,j])
        P[i,j] = e[i,j] / z[i]
        O[i,k] = P[i,j] * H[j,k]
        """,
        S=tp.tensor(scores, fill_value=-np.inf), H=H,
    )  # fmt: skip


def masked_attention(M: Any, Q: Array, K: Array, V: Array) -> Array:
    root = np.sqrt(Q.shape[1])
    scores = tp.evaluate("S[i,j] = Q[i,k] * K[j,k] / root", Q=Q, K=K, root=root, mask=M)
    return tp.evaluate(
        """
        m[i] = max(j, S[i,j])
        e[i,j] = exp(S[i,j] - m[i])
        z[i] = sum(j, e[i,j])
        P[i,j] = e[i,j] / z[i]
        O[i,k] = P[i,j] * V[j,k]
        """,
        S=tp.tensor(scores, fill_value=-np.inf), V=V,
    )  # fmt: skip


def tf_idf(counts: Any) -> Any:
    return tp.evaluate(
        """
        n[w] = count(d, C[d,w])
        T[d,w] = C[d,w] * (log((1 + D) / (1 + n[w])) + 1)
        """,
        C=counts, D=counts.shape[0],
    )  # fmt: skip


def cosine_similarity(T: Any) -> Any:
    return tp.evaluate(
        """
        r[i] = sqrt(sum(w, T[i,w] ** 2))
        S[i,j] = T[i,w] * T[j,w] / (r[i] * r[j])
        """,
        T=T,
    )


def logistic_gradient(X: Any, y: Array, w: Array) -> Array:
    return tp.evaluate(
        "r[i] = sigmoid(X[i,j] * w[j]) - y[i]; g[j] = X[i,j] * r[i] / n",
        X=X, y=y, w=w, n=X.shape[0],
    )  # fmt: skip


def standardised_product(X: Any, V: Array) -> Array:
    return tp.evaluate(
        """
        m[j] = mean(i, X[i,j])
        s[j] = sqrt(var(i, X[i,j]))
        Z[i,k] = X[i,j] * V[j,k] / s[j] - m[j] * V[j,k] / s[j]
        """,
        X=X, V=V,
    )  # fmt: skip
