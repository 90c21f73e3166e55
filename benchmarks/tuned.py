"""How much faster are tuned plans than auto's, and plans chosen by price on what a store teaches?

Twelve kernels, each on three inputs, are tuned (`tp.tune`) into one store; then calls with
schedule="auto" and schedule="tuned" take turns. Of the tasks of every fifth input the records are
left out, and what is chosen for them by price alone takes turns with their tuned plans. The last
records are the geometric means.
"""

# ruff: noqa: N803, N806

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import exp, log
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from benchmarks.inputs import shared_loader
from benchmarks.measure import TOLERANCE, Record, in_turns, record
from taco_py.calls.call.prepare import prepare_computation
from taco_py.planner.ir.printer import program_text
from taco_py.tool.demo import compare
from taco_py.tool.inputs import poisson, rmat, tensor_coordinates, uniform
from taco_py.tuning.bench.plan_bench import PlanBench
from taco_py.tuning.bench.tune_call import tunable
from taco_py.tuning.bench.tuned_schedule import resolved
from taco_py.tuning.space.axis import NO_OPTIONS

TRIALS = int(os.environ.get("TUNED_TRIALS", "40"))
SECONDS = float(os.environ.get("TUNED_SECONDS", "20"))
TURNS = 1.5
"""Seconds of taking turns for each task."""
LEFT_OUT = 5
"""One of so many tasks is left out of the store that others are chosen by."""
REAL_MATRICES = ("memplus", "bcsstk16", "cora_adj")
REAL_TENSORS = ("WN18RR", "ICEWS18-vt", "FB15K237")
COLUMNS = 32


@dataclass(frozen=True, slots=True)
class Task:
    """A call to tune."""

    name: str
    text: str
    objects: Mapping[str, Any]

    def compute(self, schedule: str) -> Any:
        """The call, as a schedule has it."""
        return tp.evaluate(self.text, self.objects, schedule=schedule)


def run() -> Iterator[Record]:
    tasks = list(every_task())
    with TemporaryDirectory() as folder:
        path, rest = Path(folder) / "all.sqlite", Path(folder) / "rest.sqlite"
        tuned: list[float] = []
        for task in tasks:
            found = tp.tune(
                task.text, task.objects, trials=TRIALS, seconds=SECONDS, store=path, progress=False
            )
            with tp.tuning_store(path):
                gain, records = compared(task, found.label, "auto", "tuned")
            tuned.append(gain)
            yield from records
        yield mean("tuned over auto", tuned)
        yield record("tuned", "tuned over auto", "least", [min(tuned)], "x")
        left = tasks[::LEFT_OUT]
        without(path, rest, left)
        yield from zero_shots(left, path, rest)


def zero_shots(left: list[Task], path: Path, rest: Path) -> Iterator[Record]:
    """The plans that price alone chooses for tasks, in turns with tuned ones."""
    shares = []
    for task in left:
        with tp.tuning_store(rest):
            by_price, text = plan_of(task)
        with tp.tuning_store(path):
            best, other = plan_of(task)
        name = f"left out: {task.name}"
        if text == other:
            shares.append(1.0)
            yield record("tuned", name, "zero-shot and tuned", [1.0], "x", "the same plan")
            continue
        times = in_turns({"tuned": best, "zero-shot": by_price}, TURNS)
        for each, seconds in times.items():
            yield record("tuned", name, each, [1e3 * s for s in seconds], "ms")
        shares.append(min(times["tuned"]) / min(times["zero-shot"]))
    yield mean("zero-shot over tuned", shares)


def plan_of(task: Task) -> tuple[Callable[[], Any], str]:
    """The call with the plan that the store in use leads to, whatever is in use later, and its
    text."""
    call = tunable(task.text, task.objects, {})
    asked = call.with_options(replace(call.options, tuned=True))
    options = resolved(asked).settings
    bench = PlanBench(call)
    plan = options.plan or program_text(
        prepare_computation(call.with_options(options)).plan.program
    )
    bench.build(plan)
    bench.first(plan)
    return bench.calls[plan], plan


def compared(task: Task, label: str, usual: str, other: str) -> tuple[float, list[Record]]:
    """How many times as fast the second schedule is, and the records of both."""
    difference, largest = compare(task.compute(usual), task.compute(other))
    if difference > TOLERANCE * max(largest, 1.0):
        raise ValueError(f"{task.name}: {other} differs from {usual}")
    if label == NO_OPTIONS:  # both run the same kernels: what differs is noise
        return 1.0, [record("tuned", task.name, f"{usual} and {other}", [1.0], "x", label)]
    times = in_turns(
        {usual: lambda: task.compute(usual), other: lambda: task.compute(other)}, TURNS
    )
    found = [
        record("tuned", task.name, name, [1e3 * s for s in times[name]], "ms", note)
        for name, note in ((usual, ""), (other, label))
    ]
    return min(times[usual]) / min(times[other]), found


def mean(name: str, ratios: list[float]) -> Record:
    """The geometric mean of ratios as a record."""
    return record("tuned", name, "geomean", [exp(sum(map(log, ratios)) / len(ratios))], "x")


def without(path: Path, rest: Path, left: list[Task]) -> None:
    """Copy a store without what was recorded of some tasks."""
    with tp.TuningStore(path) as store, tp.TuningStore(rest) as other:
        hidden = {store.key(task.text, task.objects) for task in left}
        other.add(*(each for each in store.records(all=True) if each.key not in hidden))


# ---------------------------------------------------------------- tasks


def every_task() -> Iterator[Task]:
    """Twelve kernels on three inputs each."""
    numbers = np.random.default_rng(0)
    for name, A in matrices():
        yield from of_matrix(name, A, numbers)
    for name, T in tensors():
        _, J, K = T.shape
        C, D = numbers.random((J, COLUMNS)), numbers.random((K, COLUMNS))
        yield Task(
            f"mttkrp {name}", "M[i,r] = T[i,j,k] * C[j,r] * D[k,r]", {"T": T, "C": C, "D": D}
        )
        yield Task(f"ttv {name}", "Y[i,j] = T[i,j,k] * v[k]", {"T": T, "v": numbers.random(K)})
    for size in (48, 192, 640):
        A, B = numbers.random((2, size, size))
        yield Task(f"gemm {size}", "C[i,k] = A[i,j] * B[j,k]", {"A": A, "B": B})


def of_matrix(name: str, A: Any, numbers: np.random.Generator) -> Iterator[Task]:
    """Nine kernels on a matrix in CSR."""
    rows, columns = A.shape
    x, y = numbers.random(columns), numbers.random(rows)
    X, U, V = (numbers.random((n, COLUMNS)) for n in (columns, rows, columns))
    yield Task(f"spmv {name}", "y[i] = A[i,j] * x[j]", {"A": A, "x": x})
    yield Task(f"transposed spmv {name}", "x[j] = A[i,j] * y[i]", {"A": A, "y": y})
    yield Task(f"spmm {name}", "Y[i,k] = A[i,j] * X[j,k]", {"A": A, "X": X})
    yield Task(f"spmm of columns {name}", "Y[i,k] = A[i,j] * X[j,k]", {"A": A.tocsc(), "X": X})
    yield Task(f"sddmm {name}", "C[i,j] = A[i,j] * U[i,k] * V[j,k]", {"A": A, "U": U, "V": V})
    yield Task(f"spgemm {name}", "C[i,k] = A[i,j] * B[j,k]", {"A": A, "B": A.T.tocsr()})
    B = sp.csr_array(A[::-1])
    yield Task(f"sum {name}", "C[i,j] = A[i,j] + B[i,j]", {"A": A, "B": B})
    yield Task(f"row norms {name}", "s[i] = A[i,j] * A[i,j]", {"A": A})
    yield Task(f"scaled {name}", "C[i,j] = y[i] * A[i,j] * x[j]", {"A": A, "x": x, "y": y})


def matrices() -> Iterator[tuple[str, Any]]:
    """Three matrices: real ones where a data folder lies at hand."""
    loader = shared_loader()
    if loader is None:
        yield "poisson", poisson(120)
        yield "uniform", uniform(10_000, 10_000, 10)
        yield "rmat", rmat(12, 8)
        return
    for name in REAL_MATRICES:
        A = sp.csr_array(loader.matrix(name).real.astype(np.float64))
        A.sum_duplicates()
        yield name, A


def tensors() -> Iterator[tuple[str, Any]]:
    """Three tensors of order 3 in CSF."""
    loader = shared_loader()
    if loader is None:
        for skew in (0.0, 1.0, 2.0):
            shape = (400, 300, 200)
            coordinates, values = tensor_coordinates(shape, 60_000, skew)
            yield f"skew {skew:g}", csf(coordinates, values, shape)
        return
    for name in REAL_TENSORS:
        coordinates, values, shape = loader.tensor(name)
        yield name, csf(tuple(coordinates.T[:3]), values, shape[:3])


def csf(coordinates: Any, values: Any, shape: tuple[int, ...]) -> Any:
    """A tensor of a list of coordinates."""
    from taco_py.data.storage.pack import pack_coo

    data = pack_coo(tuple(coordinates), np.asarray(values, np.float64), tuple(shape), tp.CSF(3))
    return tp.Tensor(data)
