"""Two hundred tasks of five kernels on two workers, one of which is killed, then the farm: is each
task finished once, with all of its trials?

    python -m benchmarks.tuning_farm [tasks]

Tasks are made by mutation rules; tuning is short, for this is about the farm. It needs
tacopy[farm].
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import taco_py as tp
from benchmarks.measure import OURS, Record, record
from tests.tune.farm_drill import Drill, check, killed_and_resumed

COUNT = 200
OPTIONS = {"trials": 2, "seconds": 3.0}
PATIENCE = 3600.0
A = {"shape": [600, 500], "format": "csr_array", "density": 0.02}
T = {"shape": [40, 50, 60], "format": "sss", "density": 0.01}
KERNELS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("spmv", "y[i] = A[i,j] * x[j]", {"A": A, "x": {"shape": [500]}}),
    ("spmm", "C[i,k] = A[i,j] * B[j,k]", {"A": A, "B": {"shape": [500, 8]}}),
    (
        "sddmm",
        "S[i,j] = A[i,j] * C[i,k] * D[j,k]",
        {"A": A, "C": {"shape": [600, 8]}, "D": {"shape": [500, 8]}},
    ),
    (
        "mttkrp",
        "M[i,r] = T[i,k,l] * C[k,r] * D[l,r]",
        {"T": T, "C": {"shape": [50, 8]}, "D": {"shape": [60, 8]}},
    ),
    ("ttv", "Y[i,k] = T[i,k,l] * v[l]", {"T": T, "v": {"shape": [60]}}),
)
RULES: tuple[dict[str, Any], ...] = (
    {"size": "0.0", "multiples": [1, 2, 4, 8, 16]},
    {"density": 0, "multiples": [1, 0.25]},
    {"dtype": "*", "values": ["float64", "float32"]},
    {"rows": 0, "values": ["random", "power"]},
)


def tasks() -> tuple[tp.tuning.TuningTask, ...]:
    """Forty of each kernel."""
    made = [tp.tuning.task(text, own, name=name, **OPTIONS) for name, text, own in KERNELS]
    found: tuple[tp.tuning.TuningTask, ...] = tp.tuning.mutated(made, *RULES)
    return found


def drill(count: int, folder: Path) -> Drill:
    """The tasks tuned, with a worker and the farm killed on the way, and checked."""
    every = tasks()
    chosen = every[:: max(1, len(every) // count)][:count]
    path, store = folder / "tasks.toml", folder / "tuning.sqlite"
    tp.tuning.write_tasks(path, chosen)
    found = killed_and_resumed(path, store, count // 5, count // 2, patience=PATIENCE)
    check(found, len(chosen))
    return found


def run() -> Iterator[Record]:
    """The whole drill once."""
    with tempfile.TemporaryDirectory() as folder:
        found = drill(COUNT, Path(folder))
    yield record("tuning_farm", f"{COUNT} tasks", OURS, [found.seconds / COUNT], "s a task")


def main() -> None:
    """Run the drill and print what was seen."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else COUNT
    with tempfile.TemporaryDirectory() as folder:
        found = drill(count, Path(folder))
    kinds: dict[str, int] = {}
    for each in found.transitions:
        change = f"{each.before or '-'} > {each.after} {each.error.partition(':')[0]}"
        kinds[change] = kinds.get(change, 0) + 1
    print(f"{found.jobs} jobs, {found.trials} trials, {found.seconds:.0f} s")
    print(json.dumps(kinds, indent=1))
    for each in found.transitions:
        if each.error.partition(" ")[0] not in ("", "NORMAL:") or "taken over" in each.error:
            print(each.job[:8], each.before, each.after, each.error, each.worker)


if __name__ == "__main__":
    main()
