"""How fast is C = A B for two CSR matrices? A A where A is square, otherwise A Aᵀ.

scipy leaves the columns of a row in the order in which it meets them, and so does `einsum`; a
kernel whose result is `tp.CSR` sorts them, beside scipy with `sort_indices`. The last figure is of
the same kernel's `compute`, for the pattern that it assembled before.

Where the result could pass `MOST_ENTRIES` (12 bytes each, and two results are alive while one is
checked), only as many leading rows of A are multiplied; the input's name says how many.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from operator import matmul

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from benchmarks.inputs import SpMatrix, matrices
from benchmarks.measure import OURS, REFERENCE, Contest, Record, records
from benchmarks.peers import product

MOST_ENTRIES = 300_000_000


def run() -> Iterator[Record]:
    return records("spgemm", contests())


def contests() -> Iterator[Contest]:
    kernel = tp.compile("C[i,k] = A[i,j] * B[j,k]", A=tp.CSR, B=tp.CSR, C=tp.CSR, threads=1)
    for name, a in matrices():
        b = a if a.shape[0] == a.shape[1] else sp.csr_array(a.T)
        rows = leading_rows(a, b)
        if rows < a.shape[0]:
            name, a = f"{name}, first {rows} rows", a[:rows]
        contenders = {
            REFERENCE: partial(matmul, a, b),
            OURS: partial(tp.einsum, "ij,jk->ik", a, b, threads=1),
            "scipy, sorted": partial(in_order, a, b),
            "tacopy, sorted": partial(kernel, A=a, B=b),
            "tacopy, its pattern given": partial(
                kernel.compute, kernel.assemble(A=a, B=b), A=a, B=b
            ),
            **product(a, b),
        }
        yield Contest(name, contenders)


def in_order(a: SpMatrix, b: SpMatrix) -> SpMatrix:
    found = a @ b
    found.sort_indices()
    return found


def leading_rows(a: SpMatrix, b: SpMatrix) -> int:
    """How many rows of a can be multiplied by b before the result may pass MOST_ENTRIES.

    A row of the result has at most as many entries as it takes products, and as b has columns.
    """
    products = np.concatenate([[0], np.cumsum(np.diff(b.indptr)[a.indices], dtype=np.int64)])
    entries = np.minimum(np.diff(products[a.indptr]), b.shape[1])
    return int(np.searchsorted(np.cumsum(entries), MOST_ENTRIES, side="right"))
