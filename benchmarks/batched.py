"""How fast are products of many small matrices against `numpy.matmul`?

Each size is measured from memory and with so few matrices that they stay in the second cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

import taco_py as tp
from benchmarks.gemm import threads
from benchmarks.measure import OURS, REFERENCE, Contest, Record, records

CASES = (
    (4, 100_000), (8, 20_000), (16, 10_000), (32, 2_000),
    (4, 4_000), (8, 1_000), (16, 400), (32, 100),
)  # fmt: skip


def run() -> Iterator[Record]:
    return records("batched", contests())


def contests() -> Iterator[Contest]:
    rng = np.random.default_rng(0)
    for size, count in CASES:
        a, b = rng.random((2, count, size, size))
        ours, theirs = np.empty((2, count, size, size))
        contenders = {
            REFERENCE: partial(np.matmul, a, b, out=theirs),
            OURS: partial(
                tp.einsum, "bik,bkj->bij", a, b, out=ours, threads=threads(), libraries=False
            ),
        }
        yield Contest(f"{count} of {size} by {size}", contenders)
