"""How fast is C = A B for a CSR matrix and a dense one of 32 columns?

The number of columns is declared static: it is a property of the model or method, known when the
kernel is made. `tacopy, any size` is the kernel that takes it at run time.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from operator import matmul

import numpy as np

import taco_py as tp
from benchmarks.inputs import matrices
from benchmarks.measure import OURS, REFERENCE, Contest, Record, records
from benchmarks.peers import product

COLUMNS = 32
TEXT = "C[i,k] = A[i,j] * B[j,k]"


def run() -> Iterator[Record]:
    return records("spmm", contests())


def contests() -> Iterator[Contest]:
    formats = {"A": tp.CSR, "B": tp.dense(2), "C": tp.dense(2)}
    static = tp.compile(TEXT, **formats, static={"k": COLUMNS}, threads=1)
    general = tp.compile(TEXT, **formats, threads=1)
    for name, a in matrices():
        b = np.random.default_rng(0).random((a.shape[1], COLUMNS))
        contenders = {
            REFERENCE: partial(matmul, a, b),
            OURS: partial(static, A=a, B=b),
            "tacopy, any size": partial(general, A=a, B=b),
            **product(a, b),
        }
        yield Contest(name, contenders)
