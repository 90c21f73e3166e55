"""Does the chosen format pay, over 100 calls, with the conversion paid?

    python -m benchmarks.chosen_formats                      public matrices of shared/data
    python -m benchmarks.chosen_formats FOLDER               .npz and .mtx files of a folder
    python -m benchmarks.chosen_formats --calls 1000

Each matrix is multiplied with a vector, with 8 and with 32 columns, in one thread by the clock of
the thread. The chosen format takes turns with CSR; a speed is that of all calls and the conversion
over that of all calls in CSR. `choosing` is what choosing took besides, in calls of CSR. None of
the matrices trained the choice; large structured ones are made here. Without a folder of public
matrices those alone are measured.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from benchmarks.format_data import SPMM, SPMV, timed
from benchmarks.formats import elasticity, stencil
from benchmarks.inputs import shared_loader
from taco_py.tool.inputs import rmat, uniform

COLUMNS = (1, 8, 32)
ROUNDS, SECONDS_OF_ROUND = 7, 5e-3
BAR, LEAST = 1.1, 0.95


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a choice: the speed of all calls over CSR, with the conversion paid."""

    matrix: str
    group: str
    columns: int
    finite: bool
    format: str
    gain: float
    speed: float
    choosing: float

    def __str__(self) -> str:
        finite = "finite" if self.finite else ""
        return (
            f"{self.matrix:28.28s} {self.columns:3d} {finite:7s} {self.format:9s} "
            f"{self.gain:6.2f} {self.speed:6.2f} {self.choosing:8.0f}"
        )


def matrices(folder: Path | None) -> Iterator[tuple[str, str, Any]]:
    """Yield groups, names and matrices."""
    if folder is not None:
        for path in sorted([*folder.glob("*.npz"), *folder.glob("*.mtx*")]):
            yield "public", path.name.partition(".")[0], tp.read(path).to_scipy("csr_array")
    elif (loader := shared_loader()) is not None:
        for name in loader.names("matrix"):
            yield "public", name, loader.matrix(name)
    yield "large", "5 points, 1000²", stencil(1000, 2)
    yield "large", "27 points, 57³", stencil(57, 3)
    yield "large", "elasticity, 20³ cells", elasticity(20).tocsr()
    yield "large", "uniform, 200k, 10 a row", uniform(200_000, 200_000, 10)
    yield "large", "rmat, scale 16", rmat(16, 10)
    random = np.random.default_rng(1)
    pairs = [random.integers(0, 1_500_000, 600_000) for _ in range(2)]
    rows, columns = pairs
    shape = (1_500_000, 1_500_000)
    yield (
        "large",
        "hypersparse, 1.5M",
        sp.csr_array((random.random(600_000), (rows, columns)), shape),
    )


def own(matrix: Any) -> Any:
    """Return a matrix as CSR of float64 in order, with int32 coordinates."""
    rows = sp.csr_array(matrix)
    rows.sum_duplicates()
    rows.sort_indices()
    parts = rows.data.astype(np.float64), rows.indices.astype(np.int32)
    return sp.csr_array((*parts, rows.indptr.astype(np.int32)), shape=rows.shape)


def outcome(group: str, name: str, matrix: Any, columns: int, finite: bool, calls: int) -> Outcome:
    """Return what comes of the choice for a matrix and a product."""
    shape = (matrix.shape[1],) if columns == 1 else (matrix.shape[1], columns)
    x = np.random.default_rng(0).random(shape)
    text = SPMV if columns == 1 else SPMM
    usual = tp.tensor(matrix)
    tp.choose_format(matrix, text, x=x, threads=1, calls=calls, finite=finite)
    start = time.thread_time()
    choice = tp.choose_format(matrix, text, x=x, threads=1, calls=calls, finite=finite)
    choosing = time.thread_time() - start

    def in_csr() -> Any:
        return tp.evaluate(text, A=usual, x=x, threads=1)

    def as_chosen() -> Any:
        return tp.evaluate(text, A=choice.tensor, x=x, threads=1, **choice.options)

    np.testing.assert_allclose(as_chosen(), in_csr(), rtol=1e-9, atol=1e-9)
    if choice.format == tp.CSR:
        once = timed(in_csr, 3)
        return Outcome(name, group, columns, finite, "CSR", 1.0, 1.0, choosing / once)
    converting = []
    for _ in range(3):
        start = time.thread_time()
        tp.tensor(matrix).to_format(choice.format)
        converting.append(time.thread_time() - start)
    before, after = in_turns(in_csr, as_chosen)
    speed = calls * before / (min(converting) + calls * after)
    return Outcome(
        name, group, columns, finite, str(choice.format), before / after, speed, choosing / before
    )


def in_turns(*calls: Callable[[], Any]) -> list[float]:
    """Return the lower quartiles of the seconds of calls, which take turns."""
    repeats = [max(1, int(SECONDS_OF_ROUND / max(timed(call, 1), 1e-7))) for call in calls]
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(ROUNDS):
        for call, repeat, found in zip(calls, repeats, times, strict=True):
            call()
            found.append(timed(call, repeat))
    return [float(np.quantile(found, 0.25)) for found in times]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--calls", type=int, default=100)
    options = parser.parse_args(arguments)
    print(f"{'matrix':28s} {'X':>3s} {'':7s} {'format':9s}   gain  speed choosing")
    found = []
    for group, name, matrix in matrices(options.folder):
        if np.iscomplexobj(matrix.data):
            continue
        rows = own(matrix)
        for columns in COLUMNS:
            for finite in (False, True):
                found.append(outcome(group, name, rows, columns, finite, options.calls))
                print(found[-1], flush=True)
    for group in ("public", "large"):
        for finite in (False, True):
            summary(group, finite, [f for f in found if (f.group, f.finite) == (group, finite)])


def summary(group: str, finite: bool, found: list[Outcome]) -> None:
    """Print the geometric mean of speeds, and the worst."""
    if not found:
        return
    speeds = np.array([one.speed for one in found])
    each = ", ".join(
        f"{k} columns {np.exp(np.log([f.speed for f in found if f.columns == k]).mean()):.3f}"
        for k in COLUMNS
    )
    print(
        f"{group}, finite={finite}: geometric mean {np.exp(np.log(speeds).mean()):.3f} "
        f"(bar {BAR}), worst {speeds.min():.2f} (bar {LEAST}), {each}; "
        f"{(speeds != 1).sum()} of {len(speeds)} other than CSR"
    )


if __name__ == "__main__":
    sys.exit(main())
