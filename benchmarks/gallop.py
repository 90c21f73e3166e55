"""How much does galloping save in C = A ∘ B where A has far fewer entries than B?

200 rows, 10 to 1000 times fewer entries in each of A's rows than in B's 20000. The contender
"two-finger" walks both; galloping leaps through B. Operands are tensors, whose order is known:
whether the coordinates of a scipy array ascend is looked at in each call, which takes as long as
walking B.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from benchmarks.measure import OURS, REFERENCE, Contest, Record, records

ROWS, COLUMNS, LONG = 200, 100_000, 20_000
RATIOS = (1, 10, 100, 1000)
TWO_FINGER = f"{OURS} two-finger"
GALLOP = f"{OURS} gallop"


def run() -> Iterator[Record]:
    return records("gallop", contests())


def contests() -> Iterator[Contest]:
    kernels = {
        name: tp.compile(
            "C[i,j] = A[i,j] * B[i,j]",
            schedule=f"mergeby(j,{strategy})",
            A=tp.CSR,
            B=tp.CSR,
            C=tp.CSR,
            threads=1,
        )
        for name, strategy in ((TWO_FINGER, "TwoFinger"), (GALLOP, "Gallop"))
    }
    rng = np.random.default_rng(0)
    b = _rows(rng, LONG)
    for ratio in RATIOS:
        a = _rows(rng, LONG // ratio)
        operands = {"A": tp.tensor(a), "B": tp.tensor(b)}
        contenders = {REFERENCE: partial(a.multiply, b)}
        contenders |= {name: partial(kernel, **operands) for name, kernel in kernels.items()}
        yield Contest(f"nnz(A) / nnz(B) = 1 / {ratio}", contenders)


def _rows(rng: np.random.Generator, entries: int) -> sp.csr_array:
    """A matrix with `entries` random entries in each row."""
    chosen = [np.sort(rng.choice(COLUMNS, entries, replace=False)) for _ in range(ROWS)]
    values = rng.random(ROWS * entries)
    pos = np.arange(ROWS + 1, dtype=np.int32) * entries
    crd = np.concatenate(chosen).astype(np.int32)
    return sp.csr_array((values, crd, pos), shape=(ROWS, COLUMNS))
