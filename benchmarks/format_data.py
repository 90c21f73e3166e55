"""Collect what products take in each format of drawn matrices, for the choice to be learned from.

    python -m benchmarks.format_data collect --matrices 300    matrices 0 to 299; resumes
    python -m benchmarks.format_data count                     features, counted again
    python -m benchmarks.format_data pack                      one file of all
    python -m benchmarks.format_data ship                      trees, tested, as the package's model

Each matrix is a file in `benchmarks/results/formats`: features of each candidate format, the
seconds of products and of the conversion, by the clock of the one thread that runs them. The
formats of a product take turns, and a time is the lower quartile.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

import taco_py as tp
from benchmarks.format_matrices import draw
from benchmarks.price_data import OutOfTimeError, alarm
from taco_py.data.convert import convert
from taco_py.data.convert.remap import in_order
from taco_py.data.tensors.tensor import Tensor, as_data
from taco_py.language.formats import CSR
from taco_py.tuning.formats.candidate_formats import Candidate, candidates_of
from taco_py.tuning.formats.format_data import (
    FormatData,
    join_formats,
    load_formats,
    no_formats,
)
from taco_py.tuning.formats.format_features import (
    CONVERSION,
    GAIN,
    SECONDS,
    Row,
    features_of,
    features_of_matrix,
    product_of,
)
from taco_py.tuning.formats.matrix_sample import MatrixSample
from taco_py.tuning.store.fingerprint import target_here

FOLDER = Path(__file__).parent / "results" / "formats"
PACKED = Path(__file__).parent / "data" / "formats.npz"
SPMV, SPMM = "y[i] = A[i,j] * x[j]", "y[i,k] = A[i,j] * x[j,k]"
COLUMNS = (1, 8, 32)
"""Columns of the dense operands; 1 is a vector."""
ROUNDS, SECONDS_OF_ROUND = 5, 3e-3
"""Rounds in which all formats take turns, and how long one is timed in each."""
LONG = 0.02
"""Seconds from which on what is timed is timed less often."""
PATIENCE = 120.0
"""Seconds that a matrix may take."""
Line = tuple[str, int, int, float]
"""A format, the columns of the operand, what is measured, and the number."""


def collect(matrices: int, first: int = 0, folder: Path = FOLDER) -> None:
    """Measure the matrices of the numbers from `first` on that have no file."""
    folder.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    for number in range(first, first + matrices):
        path = folder / f"{number:05}.npz"
        if path.exists():
            continue
        name, matrix = draw(number)
        data = no_formats()
        try:
            with alarm(PATIENCE):
                data = measured(number, matrix)
            words = f"{len(data.expected)} numbers"
        except (tp.TacoError, MemoryError, OutOfTimeError) as error:
            words = f"left out: {type(error).__name__}: {error}".splitlines()[0]
        data.save(path)
        over = time.monotonic() - begin
        print(f"{number:5d} {over:6.0f} s  {words:30.30s} {name} {matrix.shape} {matrix.nnz}",
              flush=True)  # fmt: skip


def measured(number: int, matrix: Any) -> FormatData:
    """Return what the candidate formats of a matrix take."""
    rows = in_order(convert(as_data(matrix), CSR))
    usual, *others = candidates_of(MatrixSample(rows), finite=True)
    stored = {usual: Tensor(rows)}
    lines: list[Line] = []
    for candidate in others:
        made = converted(rows, candidate)
        if made is not None:
            stored[candidate], seconds = made
            lines.append((str(candidate.format), 1, CONVERSION, seconds))
    for columns in COLUMNS:
        seconds_of = products(stored, columns)
        lines.append((str(usual.format), columns, SECONDS, seconds_of[usual]))
        for candidate in list(stored)[1:]:
            gain = seconds_of[usual] / seconds_of[candidate]
            lines.append((str(candidate.format), columns, GAIN, gain))
    target = target_here()
    machine = target.processor, target.compiler, date.today().isoformat()
    return counted(number, rows, lines, machine)


def counted(
    number: int, rows: Any, lines: Sequence[Line], machine: tuple[str, str, str]
) -> FormatData:
    """Return the data of lines with features and analytic numbers as they are now."""
    sample = MatrixSample(rows)
    usual, *others = candidates_of(sample, finite=True)
    by_name = {str(candidate.format): candidate for candidate in (usual, *others)}
    of_matrix = features_of_matrix(sample)
    kept = [line for line in lines if line[0] in by_name]
    made = [Row(sample, product_of(k), by_name[f], usual, asked) for f, k, asked, _ in kept]
    forms, columns, asked, numbers = zip(*kept, strict=True)
    return FormatData(
        np.array([features_of(row, of_matrix) for row in made], np.float32),
        np.array([row.expected for row in made]), np.array(numbers),
        np.full(len(kept), number, np.int32), np.array(forms), np.array(columns, np.int32),
        np.array(asked, np.int32), machine,
    )  # fmt: skip


def count(folder: Path = FOLDER) -> None:
    """Count the features of all matrices again, and their analytic numbers."""
    for path in sorted(folder.glob("*.npz")):
        data = load_formats(path, any_features=True)
        if len(data.expected):
            recounted(int(path.stem), data).save(path)
        else:
            no_formats().save(path)


def recounted(number: int, data: FormatData) -> FormatData:
    """Return the data of a matrix with features and analytic numbers as they are now."""
    rows = in_order(convert(as_data(draw(number)[1]), CSR))
    arrays = (
        data.forms.tolist(),
        data.columns.tolist(),
        data.quantity.tolist(),
        data.measured.tolist(),
    )
    return counted(number, rows, [*zip(*arrays, strict=True)], data.machine)


def converted(rows: Any, candidate: Candidate) -> tuple[Tensor, float] | None:
    """Return the matrix in a format and the seconds of the conversion; None where it has none."""
    times = []
    for _ in range(3):  # the first one may compile
        start = time.thread_time()
        try:
            found = Tensor(rows).to_format(candidate.format)
        except tp.FormatError:
            return None
        times.append(time.thread_time() - start)
        if len(times) > 1 and times[-1] > LONG:
            break
    return found, min(times)


def products(stored: dict[Candidate, Tensor], columns: int) -> dict[Candidate, float]:
    """Return the seconds of a product in each format, which take turns."""
    any_matrix = next(iter(stored.values()))
    shape = (any_matrix.shape[1],) if columns == 1 else (any_matrix.shape[1], columns)
    operand = np.random.default_rng(0).random(shape).astype(any_matrix.dtype)
    text = SPMV if columns == 1 else SPMM
    calls: dict[Candidate, Callable[[], Any]] = {}
    repeats = {}
    for candidate, tensor in stored.items():
        form = "d" * len(shape) if candidate.lists else None

        def call(tensor: Tensor = tensor, form: str | None = form) -> Any:
            return tp.evaluate(text, A=tensor, x=operand, threads=1, format=form)

        calls[candidate] = call
        call()
        once = timed(call, 1)
        repeats[candidate] = max(1, min(200, int(SECONDS_OF_ROUND / max(once, 1e-7))))
    times: dict[Candidate, list[float]] = {candidate: [] for candidate in calls}
    for turn in range(ROUNDS):
        for candidate, run in calls.items():
            if repeats[candidate] > 1:
                run()
            if turn < 3 or repeats[candidate] > 1:
                times[candidate].append(timed(run, repeats[candidate]))
    return {candidate: float(np.quantile(each, 0.25)) for candidate, each in times.items()}


def timed(call: Callable[[], Any], repeats: int) -> float:
    """Return the seconds of a call by the clock of the thread."""
    start = time.thread_time()
    for _ in range(repeats):
        call()
    return (time.thread_time() - start) / repeats


def pack(folder: Path = FOLDER, path: Path = PACKED) -> None:
    """Write one file of all matrices that were measured."""
    parts = [load_formats(file) for file in sorted(folder.glob("*.npz"))]
    data = join_formats([part for part in parts if len(part.expected)])
    data.save(path)
    size = path.stat().st_size / 1e6
    print(
        f"{len(set(data.matrix))} matrices, {len(data.expected)} numbers, {size:.2f} MB in {path}"
    )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("collect", "count", "pack", "ship"))
    parser.add_argument("--matrices", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args(arguments)
    match options.command:
        case "collect":
            collect(options.matrices, options.first)
        case "count":
            count()
        case "pack":
            pack()
        case "ship":
            from benchmarks.format_scores import ship

            ship()


if __name__ == "__main__":
    sys.exit(main())
