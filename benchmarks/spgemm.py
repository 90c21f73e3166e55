"""How fast is C = A B for two CSR matrices? A A where A is square, otherwise A Aᵀ."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from operator import matmul

import scipy.sparse as sp

import taco_py as tp
from benchmarks.inputs import matrices
from benchmarks.measure import OURS, REFERENCE, Contest, Record, records
from benchmarks.peers import product
from taco_py.show.jobs import products

MOST_PRODUCTS = 3_000_000_000


def run() -> Iterator[Record]:
    return records("spgemm", contests())


def contests() -> Iterator[Contest]:
    kernel = tp.compile("C[i,k] = A[i,j] * B[j,k]", A=tp.CSR, B=tp.CSR, C=tp.CSR, threads=1)
    for name, a in matrices():
        b = a if a.shape[0] == a.shape[1] else sp.csr_array(a.T)
        if products(a, b) > MOST_PRODUCTS:
            print(f"  {name} is left out: {products(a, b):.1e} products")
            continue
        contenders = {
            REFERENCE: partial(matmul, a, b),
            OURS: partial(kernel, A=a, B=b),
            **product(a, b),
        }
        yield Contest(name, contenders)
