"""What do two threads gain over one, with rows split evenly and with entries?

The reference is the same kernel with one thread. `skewed` is SpMV with a matrix whose one row holds
half of the entries; its entries are divided into equal parts (`fuse`, `pos`, `divide`), or its rows
are. Two column sums run beside each other, one a thread. Results are sparse where their operands
are: threads assemble parts, put together in order. Operands are tensors, whose order is known (see
`gallop.py`).

On a machine that others use two threads seldom run at the same time. What two cores of their own
would take is at least the processor time of the busiest thread, the second figure of each contender
("ms busy"); with OMP_WAIT_POLICY=passive it holds no waiting.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from benchmarks.measure import Compute, Contest, Record, record, records

ONE, TWO = "one thread", "two threads"
ENTRIES = "fuse(i,j,f), pos(f,p,A), divide(p,c,r,{parts}), parallelize(c,CPUThread,{race})"
SPLITS = {
    "entries, atomics": ENTRIES.format(parts=16, race="Atomics"),
    "entries, ordered": ENTRIES.format(parts=16, race="Ordered"),
    "rows": "divide(i,i0,i1,16), parallelize(i0)",
}
RANK, COLUMNS = 32, 128


ROUNDS = 15


def run() -> Iterator[Record]:
    for one in contests():
        yield from records("parallel", iter((one,)))
        for name, times in busiest(one.contenders).items():
            yield record("parallel", one.input, name, times, "ms busy")


def busiest(contenders: Mapping[str, Compute]) -> dict[str, list[float]]:
    """Milliseconds of processor time of the thread that takes most, a repetition each."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(ROUNDS):
        for name, compute in contenders.items():
            before = processor_times()
            result = compute()
            after = processor_times()
            del result
            times[name].append(max(after[t] - before.get(t, 0.0) for t in after))
    return times


def processor_times() -> dict[int, float]:
    """Milliseconds that each thread of this process has been on a processor (Linux)."""
    threads = (int(task.name) for task in Path("/proc/self/task").iterdir())
    return {thread: 1e3 * time.clock_gettime(clock_of(thread)) for thread in threads}


def clock_of(thread: int) -> int:
    """The number of the clock that runs while a thread does (CPUCLOCK_SCHED, per thread)."""
    return (~thread << 3) | 6


def contests() -> Iterator[Contest]:
    rng = np.random.default_rng(0)
    heavy = {"A": tp.tensor(skewed(rng, 1_000_000)), "x": rng.random(1_000_000)}
    for name, schedule in SPLITS.items():
        yield contest(f"skewed, {name}", "y[i] = A[i,j] * x[j]", heavy, schedule)
    a, b, c = (tp.tensor(uniform(rng, 60_000)) for _ in range(3))
    u, v, x = (rng.random((60_000, columns)) for columns in (RANK, RANK, COLUMNS))
    yield contest("SpMM 128", "C[i,k] = A[i,j] * X[j,k]", {"A": a, "X": x})
    yield contest("SDDMM", "D[i,j] = A[i,j] * U[i,k] * V[j,k]", {"A": a, "U": u, "V": v})
    yield contest("MTTKRP", "M[i,r] = T[i,k,l] * C[k,r] * D[l,r]", cubic(rng))
    yield contest("SpGEMM", "C[i,j] = A[i,k] * B[k,j]", {"A": a, "B": b})
    yield contest("A+B", "D[i,j] = A[i,j] + B[i,j]", {"A": a, "B": b})
    yield contest("A+B+C", "D[i,j] = A[i,j] + B[i,j] + C[i,j]", {"A": a, "B": b, "C": c})
    yield contest("sum of all", "s = A[i,j]", {"A": a})
    sums = "u[j] = exp(A[i,j]) * B[i,j]; v[j] = sin(C[i,j]) + D[i,j]"  # no loop of them is shared
    for rows in (100, 1000):
        arrays = {name: rng.random((rows, 150)) for name in "ABCD"}
        yield contest(f"two column sums, {rows}", sums, arrays, outputs=("u", "v"))


def contest(
    name: str,
    text: str,
    operands: Mapping[str, Any],
    schedule: str | None = None,
    outputs: tuple[str, ...] | None = None,
) -> Contest:
    compute = partial(tp.evaluate, text, operands, schedule=schedule, outputs=outputs)
    return Contest(name, {ONE: partial(compute, threads=1), TWO: partial(compute, threads=2)})


def uniform(rng: np.random.Generator, rows: int) -> sp.csr_array:
    """About ten entries in each row, anywhere."""
    i = np.repeat(np.arange(rows), 10)
    j = rng.integers(0, rows, len(i))
    matrix = sp.csr_array((rng.random(len(i)), (i, j)), shape=(rows, rows))
    matrix.sum_duplicates()
    return matrix


def skewed(rng: np.random.Generator, columns: int) -> sp.csr_array:
    """A matrix of which one row is full and holds as many entries as all others, a band."""
    rows = columns // 10
    i = np.concatenate([np.full(columns, rows // 3), np.repeat(np.arange(rows), 10)])
    j = np.concatenate([np.arange(columns), np.arange(columns)])
    matrix = sp.csr_array((rng.random(len(i)), (i, j)), shape=(rows, columns))
    matrix.sum_duplicates()
    return matrix


def cubic(rng: np.random.Generator) -> dict[str, Any]:
    """A tensor of a million entries and two factors."""
    shape = (20_000, 2_000, 2_000)
    coordinates = np.unique(rng.integers(0, shape, (1_000_000, 3)), axis=0)
    values = rng.random(len(coordinates))
    tensor = tp.Tensor.from_coo(coordinates, values, shape, format=tp.CSF(3), axis=1)
    return {"T": tensor, "C": rng.random((2_000, RANK)), "D": rng.random((2_000, RANK))}
