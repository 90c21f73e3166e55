"""How fast are a softmax over what a sparse matrix stores, and attention where a mask allows it?

The softmax of each row, of what is stored alone, is one text of four statements; by hand it takes
NumPy's reduceat over the values. Attention has four heads of 64 columns and a mask with an
entry in a hundred places: scores where the mask has entries, their softmax, and a weighted sum of
rows. Each is timed with one thread, as all benchmarks are, and with as many as a call has unasked.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from benchmarks.inputs import matrices
from benchmarks.measure import OURS, REFERENCE, Compute, Contest, Record, records
from codegen.toolchain.processor import core_count

SOFTMAX = """
    m[i] = max(j, S[i,j])
    e[i,j] = exp(S[i,j] - m[i])
    z[i] = sum(j, e[i,j])
    P[i,j] = e[i,j] / z[i]
"""
SCORES = "S[h,i,j] = M[i,j] * Q[h,i,k] * K[h,j,k] / root"
WEIGHTED = """
    m[h,i] = max(j, S[h,i,j])
    e[h,i,j] = exp(S[h,i,j] - m[h,i])
    z[h,i] = sum(j, e[h,i,j])
    P[h,i,j] = e[h,i,j] / z[h,i]
    O[h,i,k] = P[h,i,j] * V[h,j,k]
"""
ROWS, HEADS, COLUMNS, DENSITY = 4096, 4, 64, 0.01
THREADS = core_count()
LARGEST = 4_000_000
"""Entries of the matrices that take part: larger ones say the same in more time."""


def run() -> Iterator[Record]:
    return records("attention", contests())


def contests() -> Iterator[Contest]:
    for name, matrix in scores():
        own = tp.tensor(matrix, fill_value=-np.inf)
        ours = partial(tp.evaluate, SOFTMAX, S=own)
        by_hand = partial(softmax_by_hand, matrix)
        yield Contest(f"softmax, {name}", _timed(by_hand, ours))
        both = partial(values_of_both, partial(_by_hand, matrix))
        ours = partial(values_of_both, partial(tp.evaluate, SOFTMAX, S=own, outputs=("P", "z")))
        yield Contest(f"softmax and its sums, {name}", _timed(both, ours))
    rng = np.random.default_rng(0)
    mask = sp.random_array((ROWS, ROWS), density=DENSITY, format="csr", rng=rng)
    mask.data[:] = 1.0
    heads = [rng.standard_normal((HEADS, ROWS, COLUMNS)) for _ in range(3)]
    name = f"attention, {HEADS} heads of {COLUMNS}, mask {ROWS} squared"
    by_hand = partial(attention_by_hand, mask, *heads)
    yield Contest(name, _timed(by_hand, partial(attention, mask, *heads)))


def scores() -> Iterator[tuple[str, Any]]:
    """Matrices of values around 0: rows of 10 and of 41 entries, then those of other benchmarks."""
    rng = np.random.default_rng(0)
    for rows, entries in ((20_000, 10), (ROWS, 41)):
        matrix = sp.random_array((rows, rows), density=entries / rows, format="csr", rng=rng)
        matrix.data[:] = rng.standard_normal(matrix.nnz)
        yield f"{rows} rows of {entries}", matrix
    for name, matrix in matrices():
        if matrix.nnz <= LARGEST:
            values = rng.standard_normal(matrix.nnz)
            yield name, sp.csr_array((values, matrix.indices, matrix.indptr), matrix.shape)


def softmax_by_hand(matrix: Any) -> Any:
    return _by_hand(matrix)[0]


def values_of_both(compute: Compute, **settings: Any) -> Any:
    """What a softmax stores, and its sums behind that: one array, to be compared."""
    p, z = compute(**settings)
    return np.concatenate(((p.to_scipy() if isinstance(p, tp.Tensor) else p).data, z))


def _by_hand(matrix: Any) -> tuple[Any, Any]:
    """The softmax of each row, and the sums that it is divided by."""
    counts = np.diff(matrix.indptr)
    begun = matrix.indptr[:-1][counts > 0]  # rows without entries have no part of their own
    some = counts[counts > 0]
    e = np.exp(matrix.data - np.repeat(np.maximum.reduceat(matrix.data, begun), some))
    sums = np.add.reduceat(e, begun)
    z = np.zeros(matrix.shape[0])
    z[counts > 0] = sums
    e /= np.repeat(sums, some)
    return sp.csr_array((e, matrix.indices, matrix.indptr), matrix.shape), z


def attention(mask: Any, q: Any, k: Any, v: Any, **settings: Any) -> Any:
    root = np.sqrt(q.shape[2])
    found = tp.evaluate(SCORES, M=mask, Q=q, K=k, root=root, format="dds", **settings)
    found = tp.tensor(found, fill_value=-np.inf)
    return tp.evaluate(WEIGHTED, S=found, V=v, **settings)


def attention_by_hand(mask: Any, q: Any, k: Any, v: Any) -> Any:
    """A head at a time: products of the rows that entries name, in parts that fit the caches."""
    rows = np.repeat(np.arange(mask.shape[0]), np.diff(mask.indptr))
    found, root = np.empty_like(v), np.sqrt(q.shape[2])
    values = np.empty(mask.nnz)
    for head in range(len(q)):
        for first in range(0, mask.nnz, 4096):
            part = slice(first, first + 4096)
            left, right = q[head][rows[part]], k[head][mask.indices[part]]
            np.einsum("pk,pk->p", left, right, out=values[part])
        scores = sp.csr_array((values / root, mask.indices, mask.indptr), mask.shape)
        found[head] = softmax_by_hand(scores) @ v[head]
    return found


def _timed(by_hand: Any, ours: Any) -> dict[str, Any]:
    many = f"{OURS}, {THREADS} threads"
    return {REFERENCE: by_hand, OURS: ours, many: partial(ours, threads=THREADS)}
