"""How much faster is the chosen schedule than loops in alphabetical order in one kernel?

The kernels and the density, 0.01, of Ahrens, Kjolstad and Amarasinghe 2022; sizes double until the
alphabetical loops take about a second. `python -m benchmarks.autoschedule` draws the times of both
over densities from 2^-6 to 2^-16 into `autoschedule.svg`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from benchmarks.curves import Panel, svg
from benchmarks.measure import OURS, Contest, Record, check, in_turns, once, record

ALPHABETICAL = "alphabetical"
DENSITY = 0.01
LARGEST = 16384
SECONDS = 0.7  # a size is large enough when alphabetical loops take as long
POWERS = tuple(range(-16, -5, 2))
PICTURE = Path(__file__).parent / "autoschedule.svg"


@dataclass(frozen=True, slots=True)
class Question:
    """One kernel.

    operands  the number of modes of each; those in `dense` are dense
    schedule  the alphabetical loop nest
    format    of the result
    """

    name: str
    text: str
    operands: tuple[tuple[str, int], ...]
    dense: str
    schedule: str
    format: str | None = None


QUESTIONS = (
    Question("SpMV", "a[i] = sum(j, B[i,j] * c[j])", (("B", 2), ("c", 1)), "c", "reorder(i,j)"),
    Question(
        "SpMV2", "a[i] = sum(j, k, B[i,j] * C[j,k] * d[k])", (("B", 2), ("C", 2), ("d", 1)), "d",
        "reorder(i,j,k)",
    ),
    Question(
        "SpGEMM", "A[i,j] = sum(k, B[i,k] * C[j,k])", (("B", 2), ("C", 2)), "", "reorder(i,j,k)"
    ),
    Question(
        "SpGEMM2", "A[i,j] = sum(k, l, B[i,k] * C[k,l] * D[j,l])",
        (("B", 2), ("C", 2), ("D", 2)), "", "reorder(i,j,k,l)",
    ),
    Question(
        "SpMTTKRP", "A[i,j] = sum(k, l, B[i,k,l] * C[j,k] * D[j,l])",
        (("B", 3), ("C", 2), ("D", 2)), "", "reorder(i,j,k,l)", "dd",
    ),
    Question(
        "SpGEMMH", "A[i,j] = sum(k, B[i,k] * C[j,k] * D[j,k])",
        (("B", 2), ("C", 2), ("D", 2)), "", "reorder(i,j,k)",
    ),
)  # fmt: skip


def run() -> Iterator[Record]:
    for question in QUESTIONS:
        size, ways = sized(question)
        notes = check(Contest(question.name, ways))
        times = in_turns(ways)
        ratio = min(times[ALPHABETICAL]) / min(times[OURS])
        for name, seconds in times.items():
            note = f"{ratio:.1f} x {notes[name]}" if name == OURS else ""
            label = f"{question.name}, size {size}, density {DENSITY}"
            yield record("autoschedule", label, name, [1e3 * t for t in seconds], "ms", note)


def sized(question: Question) -> tuple[int, dict[str, Callable[[], Any]]]:
    """The first size at which alphabetical loops take long enough, with both ways to compute."""
    size = 64
    while True:
        ways = ways_of(question, size, DENSITY)
        if size == LARGEST or once(ways[ALPHABETICAL]) > SECONDS:
            return size, ways
        size *= 2


def ways_of(question: Question, size: int, density: float) -> dict[str, Callable[[], Any]]:
    given = operands(question, size, density)
    chosen = partial(tp.evaluate, question.text, given, format=question.format, threads=1)
    ways = {ALPHABETICAL: partial(chosen, schedule=question.schedule), OURS: chosen}
    for compute in ways.values():
        compute()  # compiled before it is timed
    return ways


def operands(question: Question, size: int, density: float) -> dict[str, Any]:
    """Uniform random operands: CSR matrices, CSF tensors, dense vectors."""
    rng = np.random.default_rng(0)
    return {
        name: rng.random(size) if name in question.dense else sparse(order, size, density, rng)
        for name, order in question.operands
    }


def sparse(order: int, size: int, density: float, rng: np.random.Generator) -> Any:
    if order == 2:
        return sp.random_array((size, size), density=density, format="csr", rng=rng)
    count = int(density * float(size) ** order)
    coordinates = [rng.integers(0, size, count) for _ in range(order)]
    return tp.Tensor.from_coo(coordinates, rng.random(count), (size,) * order, format=tp.CSF(order))


# ---------------------------------------------------------------- the picture


def panel(question: Question) -> Panel:
    """Times of both ways over densities, at half the size of the table."""
    size = max(64, sized(question)[0] // 2)
    curves: dict[str, list[float]] = {ALPHABETICAL: [], OURS: []}
    for power in POWERS:
        for name, compute in ways_of(question, size, 2.0**power).items():
            curves[name].append(min(once(compute) for _ in range(2)))
    return Panel(f"{question.name}, size {size}", [2.0**p for p in POWERS], curves)


if __name__ == "__main__":
    panels = [panel(question) for question in QUESTIONS]
    PICTURE.write_text(svg(panels, "density, power of two", "seconds"))
    print(f"drawn into {PICTURE.name}")
