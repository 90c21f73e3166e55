"""Are operators that only pass over memory as fast as a copy of the same bytes?

Operators of matrices of 4096 by 4096, of layers of networks on as many elements, and of sparse
matrices of 20 million entries (`memory_bound_workloads.py`), in float32: ours as one function, ours
unfused (each operation, or each statement of a text, its own kernel), NumPy or SciPy by hand, torch
and torch.compile where it is installed, and a copy past the caches of so many bytes as the operator
cannot do without: operands and results once. One thread and two. Beside each time stands the share
of the copy's rate, beside ours how many kernels ran and how many steps NumPy computed. Where each
element takes an exponential or the like, so many evaluations in the first cache are timed beside
the copy: the limit of a kernel is the longer of the two. Results are compared with the reference in
float64.

`python -m benchmarks.memory_bound softmax layer_norm --threads 2` takes some of them; `--bytes`
simulates caches instead, with a 64th of the elements, and prints the bytes that kernels move;
`--sectors` prints those of sectors on the emulated GPU, of operators of matrices as texts.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from benchmarks.function_limit import evaluations_of
from benchmarks.measure import OURS, REFERENCE, Compute, Record, in_threads, once, record
from benchmarks.memory_bound_workloads import (
    ENTRIES,
    ROW_TEXTS,
    SIDE,
    WORKLOADS,
    Workload,
    row_operands,
)
from codegen.devices.emulated import EmulatedDevice
from codegen.runtime.kernel_cache import KernelCall, KernelSource, LoadedKernel
from codegen.runtime.signature import Kind, Parameter, Signature
from codegen.runtime.traced.simulated_caches import SimulatedCache, SimulatedCaches
from codegen.types import FLOAT32, INT32, INT64
from taco_py.calls.kernels.simulate_traffic import simulate_traffic
from taco_py.compiler.devices import device_of
from taco_py.data.kernels import KERNELS

QUESTION = "memory_bound"
THREADS = (1, 2)
COPY, FUNCTIONS = "copy", "functions alone"
UNFUSED, TORCH, COMPILED = f"{OURS} unfused", "torch", "torch.compile"
DIGITS = 1e-4
"""Of the largest element of a result."""
SECONDS, LEAST, MOST = 0.6, 3, 15
"""A contender runs at least `LEAST` times, and goes on up to `MOST` times or for `SECONDS`."""
SMALLER = 8
"""By how much the sides of operands are smaller where caches are simulated."""
SIMULATED = SimulatedCaches((SimulatedCache(32768), SimulatedCache(262144, 16)))


def run() -> Iterator[Record]:
    return compared(tuple(WORKLOADS), THREADS)


def compared(names: Sequence[str], threads: Sequence[int]) -> Iterator[Record]:
    """The times of all contenders of each operator, with so many threads and so many."""
    for name in names:
        workload = WORKLOADS[name]
        operands = workload.operands(ENTRIES if workload.group == "sparse" else SIDE)
        expected = parts(workload.reference(*map(exact, operands)))
        for number in threads:
            with in_threads(number):
                yield from _contest(name, operands, expected, number)


def _contest(
    name: str, operands: tuple[Any, ...], expected: list[Any], threads: int
) -> Iterator[Record]:
    workload = WORKLOADS[name]
    results = workload.reference(*operands)
    compulsory = compulsory_bytes(workload, operands, results)
    del results
    contenders = dict(_contenders(name, operands, threads))
    notes = {key: _note(each(), expected) for key, each in contenders.items()}
    notes[OURS] = f"{_steps(name, operands)} {notes[OURS]}".strip()
    contenders[COPY] = copy_of(compulsory, threads)
    notes[COPY] = f"{compulsory / 1e6:.1f} MB"
    if workload.per_element:
        count = evaluations(operands[0])
        contenders[FUNCTIONS] = evaluations_of(workload.per_element, count, threads)
        notes[FUNCTIONS] = f"{workload.per_element} of {count / 1e6:.1f} M elements in cache 1"
    times = _turns(contenders)
    copied = min(times[COPY])
    notes[COPY] += f", {compulsory / copied / 1e9:.1f} GB/s"
    if workload.per_element:
        share = max(copied, min(times[FUNCTIONS])) / min(times[OURS])
        notes[OURS] = f"{share:.2f} of the limit  {notes[OURS]}"
    title = f"{name}, {threads} thread{'s' if threads > 1 else ''}"
    for key, seconds in times.items():
        note = f"{copied / min(seconds):.2f} of the copy's rate  {notes[key]}".strip()
        yield record(QUESTION, title, key, [1e3 * each for each in seconds], "ms", note)


def _contenders(
    name: str, operands: tuple[Any, ...], threads: int
) -> Iterator[tuple[str, Compute]]:
    workload = WORKLOADS[name]
    yield REFERENCE, partial(workload.reference, *operands)
    yield OURS, ours(workload, operands)
    apart = unfused(workload, operands)
    if apart is not None:
        yield UNFUSED, apart
    if workload.group != "sparse":
        yield from _in_torch(name, operands, threads)


def ours(workload: Workload, operands: tuple[Any, ...]) -> Compute:
    """The operator in one call."""
    if workload.function is not None:
        return partial(tp.fuse(workload.function), *operands)
    return partial(tp.evaluate, "; ".join(_statements(workload)), _named(workload, operands))


def unfused(workload: Workload, operands: tuple[Any, ...]) -> Compute | None:
    """Each operation by itself, or each statement; None for a single statement."""
    if workload.function is not None:
        return partial(tp.fuse(workload.function, optimize="none"), *operands)
    statements = _statements(workload)
    if len(statements) == 1:
        return None
    return partial(_one_by_one, statements, _named(workload, operands))


def _named(workload: Workload, operands: tuple[Any, ...]) -> dict[str, Any]:
    named = dict(zip(workload.names, operands, strict=True))
    if workload.fill:
        first = workload.names[0]
        named[first] = tp.tensor(named[first], fill_value=workload.fill)
    return named


def _statements(workload: Workload) -> list[str]:
    return [line.strip() for line in workload.text.splitlines() if line.strip()]


def _one_by_one(statements: list[str], named: dict[str, Any]) -> Any:
    """The last result of statements of which each is a call."""
    values, result = dict(named), None
    for statement in statements:
        target, _, right = statement.partition("[")
        mentioned = {key: value for key, value in values.items() if f"{key}[" in right}
        result = values[target] = tp.evaluate(statement, mentioned)
    return result


def _in_torch(name: str, operands: tuple[Any, ...], threads: int) -> Iterator[tuple[str, Compute]]:
    """Torch as it is, and compiled for CPUs; neither where it is not installed."""
    try:
        import torch
    except ImportError:
        return
    from benchmarks.memory_bound_in_torch import IN_TORCH

    torch.compiler.reset()  # else it gives up on a function that was compiled for others
    torch.set_num_threads(threads)
    tensors = [torch.from_numpy(each) for each in operands]
    yield TORCH, partial(IN_TORCH[name], *tensors)
    yield COMPILED, partial(torch.compile(IN_TORCH[name]), *tensors)


# ---------------------------------------------------------------- bytes


def compulsory_bytes(workload: Workload, operands: tuple[Any, ...], results: Any) -> int:
    """Bytes of operands that results need, and of the results.

    Those of coordinates are read and written: a result shares no memory with an operand.
    """
    written = results if isinstance(results, tuple) else (results,)
    read = sum(map(_bytes_of, operands)) - workload.skipped(*operands)
    return read + sum(_bytes_of(r if sp.issparse(r) else np.asarray(r)) for r in written)


def evaluations(operand: Any) -> int:
    """How often a function of each element is evaluated; of sparse ones, of those stored."""
    return int(operand.nnz if sp.issparse(operand) else operand.size)


def _bytes_of(operand: Any) -> int:
    if sp.issparse(operand):
        return int(operand.data.nbytes + operand.indices.nbytes + operand.indptr.nbytes)
    return int(operand.nbytes)


_COPY = """#include "taco_runtime.h"

#ifdef __AVX512F__
enum { LANES = 16 };
#else
enum { LANES = 8 };
#endif
typedef float lanes __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

int32_t copy_past_caches(
    const float *restrict x, float *restrict y, int64_t n, int32_t threads)
{
    #pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < n; i += LANES) {
        const lanes part = *(const lanes *)(x + i);
        TACO_STREAM(*(lanes *)(y + i), part);
    }
    return 0;
}
"""
_COPY_SIGNATURE = Signature(
    "copy_past_caches",
    (
        Parameter("x", Kind.INPUT, FLOAT32),
        Parameter("y", Kind.OUTPUT, FLOAT32),
        Parameter("n", Kind.SCALAR, INT64),
        Parameter("threads", Kind.THREADS, INT32),
    ),
)


def copy_of(total: int, threads: int) -> Compute:
    """A copy that reads and writes `total` bytes in all, with stores past the caches."""
    source = KernelSource(_COPY, (_COPY_SIGNATURE,))
    kernel = KERNELS.get_or_build("benchmark: copy past caches", lambda: source).kernel
    count = -(-total // 8 // 16) * 16
    x, y = (_on_lines(count) for _ in range(2))
    return partial(kernel.functions[_COPY_SIGNATURE.name], x, y, count, threads)


def _on_lines(count: int) -> np.ndarray:
    memory = np.ones(count + 16, np.float32)
    start = -memory.ctypes.data % 64 // 4
    return memory[start : start + count]


# ---------------------------------------------------------------- kernels


class _Counter:
    """Counts the runs of kernels and of libraries' routines."""

    cache_bytes = ()

    def __init__(self) -> None:
        self.runs = 0

    def kernel(self, kernel: LoadedKernel) -> LoadedKernel:
        functions = {name: self._counted(call) for name, call in kernel.functions.items()}
        return LoadedKernel(
            functions, kernel.signatures, kernel.source, kernel.metadata, kernel.library
        )

    def routine(self, name: str, routine: KernelCall) -> KernelCall:
        return self._counted(routine)

    def _counted(self, call: KernelCall) -> KernelCall:
        def counted(*arguments: Any) -> Any:
            self.runs += 1
            return call(*arguments)

        return counted


def _steps(name: str, operands: tuple[Any, ...]) -> str:
    """How many kernels a call of ours runs, and how many steps NumPy computes between them."""
    workload, counter = WORKLOADS[name], _Counter()
    KERNELS.load_through(counter)
    try:
        compute = ours(workload, operands)
        compute()
        counter.runs = 0
        compute()
    finally:
        KERNELS.load_through(None)
    text = f"{counter.runs} kernel{'' if counter.runs == 1 else 's'}"
    return text + _left_to_numpy(workload, operands)


def _left_to_numpy(workload: Workload, operands: tuple[Any, ...]) -> str:
    if workload.function is None:
        return ""
    selected = tp.fuse(workload.function).graph(*operands).call.decision.selected
    steps = [
        region
        for region in selected.regions
        if not region.kernel and any(node.operator == "numpy" for node in region.nodes)
    ]
    return f" and {len(steps)} step{'' if len(steps) == 1 else 's'} of NumPy" if steps else ""


# ---------------------------------------------------------------- times and results


def _turns(contenders: dict[str, Compute]) -> dict[str, list[float]]:
    """Seconds of each run, in rounds; the slow ones leave after a few."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(MOST):
        names = [
            name
            for name, seconds in times.items()
            if len(seconds) < LEAST or sum(seconds) < SECONDS
        ]
        start = number % max(len(names), 1)
        for name in names[start:] + names[:start]:
            times[name].append(once(contenders[name]))
    return times


def exact(operand: Any) -> Any:
    """An operand in float64, where it is of floats."""
    return operand.astype(np.float64) if operand.dtype.kind == "f" else operand


def parts(results: Any) -> list[Any]:
    """The elements of each result, as a row of float64."""
    results = results if isinstance(results, tuple) else (results,)
    return [_array(each).astype(np.float64).ravel() for each in results]


def _array(result: Any) -> Any:
    """The elements of a result; of a sparse one, those that are stored, by rows and columns."""
    if isinstance(result, tp.Tensor):
        result = result.to_scipy()
    if not sp.issparse(result):
        return np.asarray(result)
    rows = sp.csr_array(result)
    rows.sort_indices()
    return rows.data


def _note(results: Any, expected: list[Any]) -> str:
    """Empty, or how far results are from the reference's."""
    away = difference(results, expected)
    return "" if away < DIGITS else f"WRONG by {away:.1e}"


def difference(results: Any, expected: list[Any]) -> float:
    """How far the elements of results are from those expected, of the largest one of each."""
    pairs = zip(parts(results), expected, strict=True)
    return max(float(np.max(np.abs(a - b)) / np.max(np.abs(b))) for a, b in pairs)


# ---------------------------------------------------------------- simulated caches


def simulated(names: Sequence[str]) -> Iterator[str]:
    """A line for each operator: bytes that it cannot do without, and those of its kernels."""
    for name in names:
        workload = WORKLOADS[name]
        size = ENTRIES // SMALLER**2 if workload.group == "sparse" else SIDE // SMALLER
        operands = workload.operands(size)
        compulsory = compulsory_bytes(workload, operands, workload.reference(*operands))
        try:
            traffic = simulate_traffic(SIMULATED, _called_anew(workload, operands))
        except tp.TacoError as error:
            yield f"{name:<20} {error.message}"
            continue
        ratio = traffic.total.dram_bytes / compulsory
        runs = ", ".join(f"{run.traffic.dram_bytes / 1e6:.2f}" for run in traffic.runs)
        yield (
            f"{name:<20} {compulsory / 1e6:8.2f} MB compulsory, "
            f"{traffic.total.dram_bytes / 1e6:8.2f} moved ({ratio:.2f}): {traffic.total}; "
            f"MB of each kernel: {runs}"
        )


def sectors(names: Sequence[str]) -> Iterator[str]:
    """A line for each operator with a text: bytes of the sectors that its launches touch."""
    gpu = device_of("cuda-emulated")
    assert isinstance(gpu, EmulatedDevice)
    for name in names:
        if name not in ROW_TEXTS:
            yield f"{name:<20} no text for GPUs"
            continue
        workload = WORKLOADS[name]
        operands = workload.operands(SIDE // SMALLER)
        reference = workload.reference(*operands)
        compulsory = compulsory_bytes(workload, operands, reference)
        with gpu.counted_launches() as launches:
            text, named = ROW_TEXTS[name][1], row_operands(name, operands)
            result = tp.evaluate(text, named, target="cuda-emulated")
        touched = sum(launch.sector_bytes for launch in launches)
        each = ", ".join(f"{launch.kernel} {launch.sector_bytes / 1e6:.2f}" for launch in launches)
        yield (
            f"{name:<20} {compulsory / 1e6:8.2f} MB compulsory, {touched / 1e6:8.2f} of sectors "
            f"({touched / compulsory:.2f}): {each} {_note(result, parts(reference))}".rstrip()
        )


def _called_anew(workload: Workload, operands: tuple[Any, ...]) -> Callable[[], Any]:
    """A function that looks for its kernels when it is first called."""
    waiting: list[Compute] = []

    def call() -> Any:
        if not waiting:
            waiting.append(ours(workload, operands))
        return waiting[0]()

    return call


def main() -> None:
    """Print the table of the operators that are asked for, and what ours gain on the whole."""
    from benchmarks.run import printed

    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory_bound", description=__doc__)
    parser.add_argument("names", nargs="*", default=list(WORKLOADS), metavar="name")
    parser.add_argument("--threads", nargs="+", type=int, default=list(THREADS))
    parser.add_argument("--bytes", action="store_true")
    parser.add_argument("--sectors", action="store_true")
    chosen = parser.parse_args()
    if unknown := [name for name in chosen.names if name not in WORKLOADS]:
        parser.error(f"Expected names out of {' '.join(WORKLOADS)}, found {' '.join(unknown)}")
    if chosen.bytes or chosen.sectors:
        for line in (simulated if chosen.bytes else sectors)(chosen.names):
            print(line, flush=True)
        return
    started = time.perf_counter()
    records = list(printed(compared(chosen.names, chosen.threads)))
    for line in gains(records):
        print(line)
    print(f"  {time.perf_counter() - started:.0f} s in all")


def gains(records: Sequence[Record]) -> Iterator[str]:
    """How many times as long others take, of each group and number of threads."""
    times = {(each.input, each.contender): each.minimum for each in records}
    inputs = dict.fromkeys(each.input for each in records)
    groups = {(WORKLOADS[each.split(",")[0]].group, each.partition(", ")[2]) for each in inputs}
    for group, threads in sorted(groups):
        titles = [
            each
            for each in inputs
            if WORKLOADS[each.split(",")[0]].group == group and each.endswith(f", {threads}")
        ]
        for other in (UNFUSED, REFERENCE, TORCH, COMPILED, COPY):
            ratios = [
                times[title, other] / times[title, OURS]
                for title in titles
                if (title, other) in times
            ]
            if ratios:
                mean, least = statistics.geometric_mean(ratios), min(ratios)
                others = f"{other} takes {mean:.2f} times ours, {least:.2f} at least"
                yield f"  {group}, {threads}: {others}"


if __name__ == "__main__":
    main()
