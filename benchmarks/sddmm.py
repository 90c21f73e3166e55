"""How fast is D = S ∘ (U Vᵀ) with 32 columns, against gathering both rows of every nonzero in
NumPy?
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

import taco_py as tp
from benchmarks.inputs import matrices
from benchmarks.measure import OURS, REFERENCE, Contest, Record, records
from taco_py.tool.jobs import sampled_product

COLUMNS = 32


def run() -> Iterator[Record]:
    return records("sddmm", contests())


def contests() -> Iterator[Contest]:
    kernel = tp.compile(
        "D[i,j] = S[i,j] * U[i,k] * V[j,k]",
        S=tp.CSR,
        U=tp.dense(2),
        V=tp.dense(2),
        D=tp.CSR,
        threads=1,
    )
    for name, s in matrices():
        random = np.random.default_rng(0)
        u, v = random.random((s.shape[0], COLUMNS)), random.random((s.shape[1], COLUMNS))
        contenders = {
            REFERENCE: partial(sampled_product, s, u, v),
            OURS: partial(kernel, S=s, U=u, V=v),
        }
        yield Contest(name, contenders)
