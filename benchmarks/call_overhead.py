"""What does a call cost when there is nothing to compute: 10 by 10 matrices, most often SpMV?"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from benchmarks.measure import REFERENCE, Record, record

SAMPLE = 0.01  # seconds
ROUNDS = 25
STENCIL = """
for t in T:
    B[i,j] = 0.25 * (A[i-1,j] + A[i+1,j] + A[i,j-1] + A[i,j+1])
    A[i,j] = B[i,j]
"""


def run() -> Iterator[Record]:
    samples: dict[str, list[float]] = {}
    calls = contenders()
    for _ in range(ROUNDS):
        for name, compute in calls.items():
            samples.setdefault(name, []).append(microseconds(compute))
    for name, values in samples.items():
        yield record("call_overhead", "10 by 10", name, values, "us")


def contenders() -> dict[str, Callable[[], Any]]:
    """Calls that were made before, by what there is to do besides the kernel."""
    rng = np.random.default_rng(0)
    a, b = (sp.csr_array(np.where(rng.random((10, 10)) < 0.3, 1.0, 0.0)) for _ in range(2))
    x, y, dense = np.ones(10), np.ones(10), np.ones((10, 10))
    relaxed = dense.copy()
    single, column, other = x.astype(np.float32), np.ones((10, 1)), b.tocsc()
    text = "y[i] = A[i,j] * x[j]"
    kernel = tp.compile(text, A=tp.CSR, x=tp.dense(1), y=tp.dense(1))
    sums, smooth = tp.program("y[i] += a * x[i]"), tp.program(STENCIL)
    return {
        REFERENCE: lambda: a @ x,
        "Kernel": lambda: kernel(A=a, x=x),
        "Kernel, out=": lambda: kernel(A=a, x=x, out=y),
        "einsum": lambda: tp.einsum("ij,j->i", a, x),
        "einsum, out=": lambda: tp.einsum("ij,j->i", a, x, out=y),
        "einsum, dtype=": lambda: tp.einsum("ij,j->i", a, single, dtype=np.float64),
        "einsum, two dtypes": lambda: tp.einsum("ij,j->i", a, single),
        "einsum, interleaved": lambda: tp.einsum(a, [0, 1], x, [1], [0]),
        "einsum, broadcast": lambda: tp.einsum("ij,ij->ij", dense, column),
        "einsum, two kernels": lambda: tp.einsum("ij,jk,k->i", a, b, x),
        "evaluate": lambda: tp.evaluate(text, A=a, x=x),
        "evaluate, mapping": lambda: tp.evaluate(text, {"A": a, "x": x}),
        "evaluate, out=": lambda: tp.evaluate(text, A=a, x=x, out=y),
        "evaluate, +=": lambda: tp.evaluate("y[i] += A[i,j] * x[j]", A=a, x=x, y=y),
        "scipy, sparse sum": lambda: a + b,
        "evaluate, sparse sum": lambda: tp.evaluate("C[i,j] = A[i,j] + B[i,j]", A=a, B=b),
        "scipy, CSR and CSC": lambda: a + other,
        "evaluate, CSR and CSC": lambda: tp.evaluate("C[i,j] = A[i,j] + B[i,j]", A=a, B=other),
        "scipy, product": lambda: a @ b,
        "einsum, product": lambda: tp.einsum("ij,jk->ik", a, b),
        "program": lambda: sums(a=0.0, x=x, y=y),
        "program, stencil": lambda: smooth(A=dense, B=relaxed, T=2),
    }


def microseconds(compute: Callable[[], Any]) -> float:
    """Of one call, from as many as SAMPLE has room for."""
    calls = max(1, int(SAMPLE / seconds(compute, 10) * 10))
    return 1e6 * seconds(compute, calls) / calls


def seconds(compute: Callable[[], Any], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        compute()
    return time.perf_counter() - start
