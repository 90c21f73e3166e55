"""How fast is what a person would rewrite by hand: sums in products, samples, lists by vectors?

1000 rows, 100 entries each (3000 and 9 where a product is sampled; 4000 and 6 of 300 columns whose
means are taken off; 500 rows and columns where all is dense, or 10000 and 200), against scipy with
the rewriting done by hand. The contender "as written" runs the loops of the text; a difference of
sparse matrices is left as it is written by choice, for it keeps digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from operator import matmul
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from benchmarks.measure import OURS, REFERENCE, Contest, Record, records

SIZE, DENSITY = 1000, 0.1
WRITTEN = f"{OURS} as written"


def run() -> Iterator[Record]:
    return records("rewrites", contests())


def contests() -> Iterator[Contest]:
    rng = np.random.default_rng(0)
    a, b, c = (_matrix(rng, SIZE) for _ in "abc")
    u, v, x = rng.random(SIZE), rng.random(SIZE), rng.random(SIZE)
    yield _contest(
        "y[i] = (A[i,j] * B[j,k] + C[i,k]) * x[k]", "reorder(i,k,j)",
        lambda: a @ (b @ x) + c @ x, A=a, B=b, C=c, x=x,
    )  # fmt: skip
    text = "y[i] = (A[i,j] + B[i,j]) * x[j]"
    for form in ("csr", "csc", "coo"):
        other = b.asformat(form)
        by_hand = partial(_sum_by_hand, a, other, x)
        yield _contest(text, "reorder(i,j)", by_hand, f", B {form}", A=a, B=other, x=x)
    yield _contest(
        "y[i] = (A[i,j] + u[i] * v[j]) * x[j]", "reorder(i,j)",
        lambda: a @ x + u * (v @ x), A=a, u=u, v=v, x=x,
    )  # fmt: skip
    yield _contest(
        "y[i] = (A[i,j] - B[i,j]) * x[j]", "reorder(i,j)",
        lambda: a @ x - b @ x, A=a, B=b, x=x,
    )  # fmt: skip
    yield from _sampled(rng)
    yield from _centred(rng)
    yield from _dense(rng)
    for share in (0.01, 0.1, 0.5):
        z = tp.tensor(x * (rng.random(SIZE) < share), format="s")
        for form in ("coo", "csr"):
            operands = {"A": a.asformat(form), "x": z}
            by_hand = partial(matmul, operands["A"], z.to_numpy())
            name = f", A {form}, x of {share:.0%}"
            yield _contest("y[i] = A[i,j] * x[j]", "reorder(i,j)", by_hand, name, **operands)


def _sampled(rng: np.random.Generator) -> Iterator[Contest]:
    """A layer of graph attention, and the gradient of a factorisation."""
    size, depth, width = 3000, 8, 128
    s = sp.random_array((size, size), density=0.003, format="csr", rng=rng)
    m = sp.csr_array((np.ones(s.nnz), s.indices, s.indptr), s.shape)
    u, v, x = rng.random((size, depth)), rng.random((size, depth)), rng.random((size, width))
    rows = np.repeat(np.arange(size), np.diff(s.indptr))

    def products() -> Any:
        return np.einsum("ek,ek->e", u[rows], v[s.indices])

    def with_data(data: Any) -> Any:
        return sp.csr_array((data, s.indices, s.indptr), s.shape)

    loops = "reorder(i,f,j,k)"
    yield _contest(
        "O[i,f] = S[i,j] * U[i,k] * V[j,k] * X[j,f]", loops,
        lambda: with_data(s.data * products()) @ x, stored="dd", S=s, U=u, V=v, X=x,
    )  # fmt: skip
    yield _contest(
        "O[i,f] = (S[i,j] - M[i,j] * sum(k, U[i,k] * V[j,k])) * X[j,f]", loops,
        lambda: with_data(s.data - products()) @ x, stored="dd", S=s, M=m, U=u, V=v, X=x,
    )  # fmt: skip


def _centred(rng: np.random.Generator) -> Iterator[Contest]:
    """Variances and covariances of sparse columns, whose means are not 0."""
    rows, columns = 4000, 300
    x = sp.random_array((rows, columns), density=0.02, format="csr", rng=rng)
    m = np.asarray(x.mean(axis=0)).ravel()

    def sums() -> Any:
        return np.asarray(x.sum(axis=0)).ravel()

    def squares() -> Any:
        return np.asarray(x.multiply(x).sum(axis=0)).ravel() - 2 * m * sums() + rows * m * m

    def products() -> Any:
        return (
            (x.T @ x).toarray() - np.outer(sums(), m) - np.outer(m, sums()) + rows * np.outer(m, m)
        )

    yield _contest(
        "v[a] = sum(i, X[i,a] + m[a])", "reorder(i,a)", lambda: sums() + rows * m, X=x, m=m
    )
    text = "v[a] = (X[i,a] - m[a]) * (X[i,a] - m[a])"
    yield _contest(text, "reorder(i,a)", squares, X=x, m=m)
    text = "C[a,b] = (X[i,a] - m[a]) * (X[i,b] - m[b])"
    yield _contest(text, "reorder(i,a,b)", products, stored="dd", X=x, m=m)


def _dense(rng: np.random.Generator) -> Iterator[Contest]:
    """Dense products with what keeps them from register tiles."""
    p, q, s = rng.random((3, 500, 500))
    g, x = rng.random(500), rng.random((10000, 200))
    m = x.mean(axis=0)
    given = {"P": p, "Q": q, "S": s}
    text = "R[i,k] = (P[i,j] + Q[i,j]) * S[j,k]"
    yield _contest(text, "reorder(i,j,k)", lambda: (p + q) @ s, stored="dd", **given)
    text = "R[i,k] = g[k] - 2 * P[i,j] * S[j,k]"
    yield _contest(text, "reorder(i,j,k)", lambda: g - 2 * p @ s, stored="dd", P=p, S=s, g=g)
    text = "C[a,b] = (X[i,a] - m[a]) * (X[i,b] - m[b])"
    yield _contest(
        text, "reorder(i,a,b)", lambda: (x - m).T @ (x - m), ", X dense", stored="dd", X=x, m=m
    )


def _matrix(rng: np.random.Generator, size: int) -> Any:
    return sp.random_array((size, size), density=DENSITY, format="csr", rng=rng)


def _sum_by_hand(a: Any, b: Any, x: Any) -> Any:
    return a @ x + b @ x


def _contest(
    text: str, loops: str, by_hand: Any, name: str = "", stored: str = "d", **operands: Any
) -> Contest:
    ours = partial(tp.evaluate, text, operands, format=stored, threads=1)
    return Contest(
        text + name, {REFERENCE: by_hand, OURS: ours, WRITTEN: partial(ours, schedule=loops)}
    )
