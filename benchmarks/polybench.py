"""What do tiles bring to the kernels of PolyBench, against the loops as written, 32ᵈ and a grid?

One thread, in processor seconds. Contenders: the loops as written (the reference, without tiles
or another order), tiles of 32 everywhere, the model's choice and, where TACO_POLYBENCH_GRID is set,
the best of a grid of sizes, at most that many of them. Every result is compared with that of the
loops as written.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

import taco_py as tp
from benchmarks.measure import OURS, Record, record
from benchmarks.polybench_programs import KERNELS, Kernel

STEPS = 20
ROUNDS = 3
GRID = (8, 16, 32, 64, 128, 256, 512)
UNTILED, FIXED, BEST = "as written", "tiles of 32", "best of grid"
NAMES = tuple(name for name, kernel in KERNELS.items() if not kernel.steps)


def run() -> Iterator[Record]:
    points = int(os.environ.get("TACO_POLYBENCH_GRID", "0"))
    for name in os.environ.get("TACO_POLYBENCH", " ".join(NAMES)).split():
        yield from measured("polybench", name, KERNELS[name], points)


def measured(question: str, name: str, kernel: Kernel, points: int = 0) -> Iterator[Record]:
    """The contenders on one kernel, in turns."""
    contenders: dict[str, Any] = {UNTILED: None, FIXED: 32, OURS: "auto"}
    program = tp.program(kernel.text)
    data = data_of(name, kernel)
    if points:
        contenders[BEST] = best_of_grid(program, kernel, data, points)
    times: dict[str, list[float]] = {each: [] for each in contenders}
    right: dict[str, Any] = {}
    wrong: dict[str, str] = dict.fromkeys(contenders, "")
    for _ in range(ROUNDS):
        for each, tiles in contenders.items():
            seconds, found = once(program, kernel, data, tiles)
            times[each].append(1e3 * seconds)
            right = right or found
            if not all(np.allclose(found[a], right[a], 1e-9, 1e-9) for a in right):
                wrong[each] = "WRONG"
    for each, samples in times.items():
        note = wrong[each] or (str(contenders[BEST]) if each == BEST else "")
        yield record(question, f"{name} {kernel.large}", each, samples, "ms", note)


def data_of(name: str, kernel: Kernel) -> dict[str, Any]:
    data = kernel.data(kernel.large)
    return {**data, "source": np.ones(STEPS * 100)} if "source" in data else data


def once(
    program: Any, kernel: Kernel, data: dict[str, Any], tiles: Any, steps: int = STEPS
) -> tuple[float, dict[str, Any]]:
    """Seconds of the second of two runs on fresh data (the first builds the kernel), its result."""
    sizes = kernel.sizes(kernel.large, steps)
    found = {each: array.copy() for each, array in data.items()}
    program.source(**found, **sizes, **kernel.numbers, tiles=tiles)
    start = time.process_time()
    program(**found, **sizes, **kernel.numbers, tiles=tiles)
    return time.process_time() - start, found


def best_of_grid(
    program: Any, kernel: Kernel, data: dict[str, Any], points: int
) -> tuple[int, ...]:
    """The fastest sizes of GRID, thinned evenly to `points`; each is tried once, the best three
    again."""
    every = list(product(GRID, repeat=min(kernel.depth, 3)))
    thinned = every[:: max(1, -(-len(every) // points))]
    tried = ranked(program, kernel, data, thinned)
    return ranked(program, kernel, data, tried[:3])[0]


def ranked(
    program: Any, kernel: Kernel, data: dict[str, Any], sizes: Sequence[tuple[int, ...]]
) -> list[tuple[int, ...]]:
    return sorted(sizes, key=lambda tiles: once(program, kernel, data, tiles)[0])
