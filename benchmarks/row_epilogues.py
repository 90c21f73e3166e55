"""How fast is what is done with the rows of A X, as in a layer of a graph network?

A in CSR, X of 64 and of 16 columns, against scipy and NumPy by hand. `apart` keeps A X, or A x, in
a temporary; `a layer` has a dense product of 64 by 16 weights before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from benchmarks.inputs import shared_loader
from benchmarks.measure import OURS, REFERENCE, Contest, Record, records
from taco_py.tool.inputs import rmat, uniform

RULE = "fuse_temporary"
REAL = ("pubmed_adj", "musae-github")


def run() -> Iterator[Record]:
    return records("row_epilogues", contests())


def contests() -> Iterator[Contest]:
    for name, a in graphs():
        rng = np.random.default_rng(0)
        n = a.shape[0]
        d, c, x = rng.random(n) + 1, rng.random(n), rng.random(n)
        for columns in (64, 16):
            panel, b = rng.random((n, columns)), rng.random(columns)
            yield _contest(
                f"{name}, {columns}", "H[i,k] = (A[i,j] * X[j,k] + b[k]) / d[i]",
                lambda a=a, panel=panel, b=b, d=d: (a @ panel + b) / d[:, None],
                A=a, X=panel, b=b, d=d,
            )  # fmt: skip
            yield _contest(
                f"{name}, {columns}", "H[i,k] = sum(j, A[i,j] * X[j,k])**2 + b[k]",
                lambda a=a, panel=panel, b=b: (a @ panel) ** 2 + b, A=a, X=panel, b=b,
            )  # fmt: skip
        wide, weights, b = rng.random((n, 64)), rng.random((64, 16)), rng.random(16)
        yield _contest(
            f"{name}, a layer", "H[i,k] = sum(j, A[i,j] * X[j,l] * W[l,k])**2 + b[k]",
            lambda a=a, wide=wide, w=weights, b=b: (a @ (wide @ w)) ** 2 + b,
            A=a, X=wide, W=weights, b=b,
        )  # fmt: skip
        yield _contest(
            name, "y[i] = sum(j, A[i,j] * x[j])**2 / d[i] - c[i]",
            lambda a=a, x=x, d=d, c=c: (a @ x) ** 2 / d - c, A=a, x=x, d=d, c=c,
        )  # fmt: skip


def graphs() -> Iterator[tuple[str, Any]]:
    """Graphs made here, then real ones where they lie at hand."""
    yield "rmat (scale 14)", rmat(14, 8)
    yield "uniform (20k, 5 a row)", uniform(20_000, 20_000, 5)
    loader = shared_loader()
    for name in REAL if loader is not None else ():
        yield name, sp.csr_array(loader.matrix(name).astype(np.float64))


def _contest(name: str, text: str, by_hand: Callable[[], Any], **operands: Any) -> Contest:
    ours = partial(tp.evaluate, text, operands)
    return Contest(
        f"{name}: {text}",
        {REFERENCE: by_hand, OURS: ours, f"{OURS}, apart": partial(ours, forbid=(RULE,))},
    )
