"""How fast is y = A x for a CSR matrix?"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from operator import matmul

import numpy as np

import taco_py as tp
from benchmarks.inputs import matrices
from benchmarks.measure import OURS, REFERENCE, Contest, Record, records
from benchmarks.peers import product


def run() -> Iterator[Record]:
    return records("spmv", contests())


def contests() -> Iterator[Contest]:
    kernel = tp.compile("y[i] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1), y=tp.dense(1), threads=1)
    for name, a in matrices():
        x = np.random.default_rng(0).random(a.shape[1])
        contenders = {REFERENCE: partial(matmul, a, x), OURS: partial(kernel, A=a, x=x)}
        yield Contest(name, contenders | product(a, x))
