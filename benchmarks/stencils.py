"""What does time tiling bring to stencils? Results are bit-identical with the loops as written.

jacobi-2d 2000² × 100, heat-3d 160³ × 50 and others on one thread, in processor seconds, which a
busy machine distorts less than the clock; and how long the choice of tiles takes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import taco_py as tp
from benchmarks.measure import OURS, Record, record
from benchmarks.polybench_programs import KERNELS

STEPS = {"jacobi-2d": 100, "heat-3d": 50, "fdtd-2d": 100, "seidel-2d": 10, "jacobi-1d": 100}
ROUNDS = 3
UNTILED = "as written"


def run() -> Iterator[Record]:
    for name in STEPS:
        yield from stencil(name)
    for name in STEPS:
        yield from selection(name)


def stencil(name: str) -> Iterator[Record]:
    """As written and tiled, in turns."""
    kernel = KERNELS[name]
    program, data = tp.program(kernel.text), kernel.data(kernel.large)
    if "source" in data:
        data["source"] = np.ones(STEPS[name])
    times: dict[str, list[float]] = {UNTILED: [], OURS: []}
    notes = dict.fromkeys(times, "")
    right: dict[str, Any] = {}
    for _ in range(ROUNDS):
        for each, tiles in ((UNTILED, None), (OURS, "auto")):
            found = {array: values.copy() for array, values in data.items()}
            program.source(**found, T=STEPS[name], tiles=tiles)
            start = time.process_time()
            program(**found, T=STEPS[name], tiles=tiles)
            times[each].append(1e3 * (time.process_time() - start))
            right = right or found
            if not all(np.array_equal(found[array], right[array]) for array in right):
                notes[each] = "WRONG"
    for each, samples in times.items():
        title = f"{name} {kernel.large}, {STEPS[name]} steps"
        yield record("stencils", title, each, samples, "ms", notes[each])


def selection(name: str) -> Iterator[Record]:
    """Milliseconds of a plan: all of it, and with sizes that are given, which leaves ISL's part."""
    from polyhedral.programs.program_plan import plan_program
    from polyhedral.programs.question import ProgramQuestion

    nest = tp.program(KERNELS[name].text).lowered.nest
    values = {each: STEPS[name] if each == "T" else 2048 for each in nest.parameters}
    for contender, tiles in (("ISL and sizes", None), ("ISL alone", (16,))):
        samples = []
        for _ in range(5):
            start = time.process_time()
            plan_program(ProgramQuestion(nest, values, tiles=tiles))
            samples.append(1e3 * (time.process_time() - start))
        yield record("stencils", f"plan of {name}", contender, samples, "ms")
