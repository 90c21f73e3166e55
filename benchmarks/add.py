"""How fast is C = A + B for two CSR matrices whose patterns overlap in part?

B has A's rows in reverse order, so that short rows meet long ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from operator import add

import taco_py as tp
from benchmarks.inputs import matrices
from benchmarks.measure import OURS, REFERENCE, Contest, Record, records


def run() -> Iterator[Record]:
    return records("add", contests())


def contests() -> Iterator[Contest]:
    kernel = tp.compile("C[i,j] = A[i,j] + B[i,j]", A=tp.CSR, B=tp.CSR, C=tp.CSR, threads=1)
    for name, a in matrices():
        b = a[::-1]
        b.sort_indices()
        contenders = {
            REFERENCE: partial(add, a, b),
            OURS: partial(kernel, A=a, B=b),
        }
        yield Contest(name, contenders)
