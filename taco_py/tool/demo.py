"""The main job on matrices or a tensor: compiled kernels, checked against scipy, timed beside it.

Called by `python -m taco_py demo`. Each row of the table is one kernel on one input: how long its
first call took (which compiles it, or loads it from the cache), its best time and scipy's over
interleaved repetitions on one thread, and the largest difference between the two results.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

import taco_py as tp
from codegen.records import dataclass
from taco_py.tool.inputs import pde27, rmat
from taco_py.tool.jobs import Compute, Job, matrix_jobs, summed, tensor_jobs

BUDGET = 0.6  # seconds of repetitions a kernel
HEADER = f"  {'kernel':<16}{'first call':>12}{'tacopy':>12}{'scipy':>12}   ratio  max diff"
TOLERANCE = 1e-9  # relative to the largest value of scipy's result


@dataclass(frozen=True, slots=True)
class Row:
    """What one job gave; times in seconds."""

    name: str
    first: float
    best: float
    scipy: float
    difference: float
    correct: bool


def demo(path: str | None, threads: int = 1) -> int:
    """Print the tables; the exit status is 0 when every result agrees with scipy's, 1 otherwise.

    Raises TacoError or OSError when the file cannot be read.
    """
    rows: list[Row] = []
    for title, jobs in inputs(path):
        print(f"\n{title}")
        print(HEADER)
        for job in jobs:
            row = run(job, threads)
            rows.append(row)
            print(f"  {describe(row)}", flush=True)
    wrong = [row.name for row in rows if not row.correct]
    print(f"\n{len(rows) - len(wrong)} of {len(rows)} results agree with scipy's.")
    return 1 if wrong else 0


def inputs(path: str | None) -> Iterator[tuple[str, list[Job]]]:
    """Yield a title and the jobs of each input: the user's file, or two matrices made here."""
    if path is None:
        for name, matrix in (("27-point PDE operator", pde27(40)), ("power-law graph", rmat(14))):
            yield f"{name}: {size(matrix.shape, matrix.nnz)}", matrix_jobs(matrix)
        return
    tensor = tp.read(path)
    title = f"{path}: {size(tensor.shape, tensor.nnz)}"
    if tensor.order == 2:
        matrix = sp.csr_array(tensor.to_scipy())
        yield title, matrix_jobs(floating(matrix))
    elif tensor.order > 2:
        coordinates, values = tensor.to_coo()
        yield title, tensor_jobs(coordinates, floating(values), tensor.shape)
    else:
        raise tp.FormatError(
            f"Expected a matrix or a tensor of three or more modes, found {tensor.order} in {path}",
            hint="the demo multiplies matrices and contracts tensors; a vector has nothing to do",
        )


def floating(array: Any) -> Any:
    """Convert counts and patterns to float64, so that sums neither overflow nor saturate."""
    return array if array.dtype.kind in "fc" else array.astype(np.float64)


def run(job: Job, threads: int) -> Row:
    """Time the first call, check its result, then repeat both ways in turns."""

    def ours() -> Any:
        return tp.evaluate(job.text, job.operands, threads=threads)

    first, result = timed(ours)
    scipy_seconds, expected = timed(job.reference)
    difference, largest = compare(result, expected)
    best = np.inf
    started = time.perf_counter()
    while time.perf_counter() - started < BUDGET or best == np.inf:
        best = min(best, timed(ours)[0])
        scipy_seconds = min(scipy_seconds, timed(job.reference)[0])
    correct = bool(difference <= TOLERANCE * max(largest, 1.0))
    return Row(job.name, first, best, scipy_seconds, difference, correct)


def timed(compute: Compute) -> tuple[float, Any]:
    start = time.perf_counter()
    result = compute()
    return time.perf_counter() - start, result


def compare(result: Any, expected: Any) -> tuple[float, float]:
    """Return the largest absolute difference and the largest absolute value expected."""
    result, expected = (
        array.to_scipy() if isinstance(array, tp.Tensor) else array for array in (result, expected)
    )
    if is_sparse(result) and is_sparse(expected):
        ours, theirs = sp.coo_array(result), sp.coo_array(expected)
        coordinates = tuple(map(np.concatenate, zip(ours.coords, theirs.coords, strict=True)))
        values = np.concatenate([ours.data, -theirs.data])
        return largest_of(summed(values, coordinates, theirs.shape).data), largest_of(theirs.data)
    return largest_of(plain(result) - plain(expected)), largest_of(plain(expected))


def plain(array: Any) -> NDArray[Any]:
    return np.asarray(array.toarray() if is_sparse(array) else array)


def is_sparse(array: Any) -> bool:
    return bool(sp.issparse(array))


def largest_of(values: NDArray[Any]) -> float:
    """Return the largest magnitude; NaN stays NaN, which is not within any tolerance."""
    return float(np.abs(values).max(initial=0.0))


def size(shape: tuple[int, ...], nonzeros: int) -> str:
    return f"{' x '.join(f'{extent:,}' for extent in shape)}, {nonzeros:,} nonzeros"


def describe(row: Row) -> str:
    """Return one line of the table; times in milliseconds."""
    verdict = "ok" if row.correct else "WRONG"
    times = "".join(f"{1000 * seconds:>9.2f} ms" for seconds in (row.first, row.best, row.scipy))
    return f"{row.name:<16}{times}{row.scipy / row.best:>7.2f}x  {row.difference:.1e} {verdict}"
