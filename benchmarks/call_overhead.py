"""What does a call cost when there is nothing to compute: SpMV with a 10 by 10 matrix?"""

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


def run() -> Iterator[Record]:
    a = sp.csr_array(np.where(np.random.default_rng(0).random((10, 10)) < 0.3, 1.0, 0.0))
    x = np.ones(10)
    kernel = tp.compile("y[i] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1), y=tp.dense(1))
    contenders: dict[str, Callable[[], Any]] = {
        REFERENCE: lambda: a @ x,
        "Kernel": lambda: kernel(A=a, x=x),
        "einsum": lambda: tp.einsum("ij,j->i", a, x),
        "evaluate": lambda: tp.evaluate("y[i] = A[i,j] * x[j]", A=a, x=x),
    }
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(ROUNDS):
        for name, compute in contenders.items():
            samples[name].append(microseconds(compute))
    for name, values in samples.items():
        yield record("call_overhead", "10 by 10", name, values, "us")


def microseconds(compute: Callable[[], Any]) -> float:
    """Of one call, from as many as SAMPLE has room for."""
    calls = max(1, int(SAMPLE / seconds(compute, 10) * 10))
    return 1e6 * seconds(compute, calls) / calls


def seconds(compute: Callable[[], Any], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        compute()
    return time.perf_counter() - start
