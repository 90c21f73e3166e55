"""How long does a program take by the size of its tiles, and where does the model's choice stand?

    python -m benchmarks.tile_sizes          draws `tile_sizes.svg`

A curve a loop: its size varies, the others stay as the model chose them. Processor time of one
thread, least of a few runs in turns. The model's own sizes are marked on every curve.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import taco_py as tp
from benchmarks.curves import Panel, svg
from benchmarks.measure import Record, record
from benchmarks.polybench import once
from benchmarks.polybench_programs import KERNELS, Kernel

SIZES = (8, 16, 32, 64, 128, 256, 512)
NAMES = {"syr2k": 768, "trmm": 1024}
"""Kernels that run in tiles of the model (gemm and syrk are contractions), and how large."""
ROUNDS = 3
PICTURE = Path(__file__).with_name("tile_sizes.svg")


@dataclass(frozen=True, slots=True)
class Swept:
    """What a kernel took: seconds by loop and size, and with the model's sizes."""

    title: str
    loops: tuple[str, ...]
    chosen: tuple[int, ...]
    seconds: dict[tuple[int, ...], float]

    def at(self, place: int, size: int) -> float:
        return self.seconds[_with(self.chosen, place, size)]


def run() -> Iterator[Record]:
    for name, size in NAMES.items():
        found = swept(name, size)
        for sizes, seconds in found.seconds.items():
            note = "the model's" if sizes == found.chosen else ""
            shown = ", ".join(map(str, sizes))
            yield record("tile_sizes", found.title, shown, [1e3 * seconds], "ms", note)


def swept(name: str, size: int) -> Swept:
    """Every size of every loop, in turns."""
    kernel = KERNELS[name]
    sized = replace(kernel, large=size)
    program, data = tp.program(kernel.text), sized.data(size)
    loops, chosen = choice(program, sized, data)
    every = [_with(chosen, at, each) for at in range(len(loops)) for each in SIZES]
    seconds: dict[tuple[int, ...], float] = {}
    for _ in range(ROUNDS):
        for sizes in dict.fromkeys((chosen, *every)):
            taken, _ = once(program, sized, data, sizes)
            seconds[sizes] = min(taken, seconds.get(sizes, taken))
    return Swept(f"{name} {size}", loops, chosen, seconds)


def choice(
    program: Any, kernel: Kernel, data: dict[str, Any]
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The loops and the sizes of the plan's last band with tiles."""
    values = {**kernel.sizes(kernel.large, 1), **kernel.numbers}
    plan = program.explain(**data, **values, threads=1)
    bands = [line.split(": tile ")[1] for line in plan.splitlines() if ": tile " in line]
    if not bands:
        raise ValueError(f"Expected a program that the model tiles, found this plan:\n{plan}")
    loops, sizes = bands[-1].split(" by ")
    return tuple(loops.split(", ")), tuple(int(size) for size in sizes.split(", "))


def _with(sizes: Sequence[int], at: int, size: int) -> tuple[int, ...]:
    return (*sizes[:at], size, *sizes[at + 1 :])


def panel(found: Swept) -> Panel:
    curves = {
        f"tiles of {loop}": [found.at(place, size) for size in SIZES]
        for place, loop in enumerate(found.loops)
    }
    best = found.seconds[found.chosen]
    marks = [(float(size), best) for size in found.chosen]
    return Panel(found.title, SIZES, curves, marks)


if __name__ == "__main__":
    panels = [panel(swept(name, size)) for name, size in NAMES.items()]
    PICTURE.write_text(svg(panels, "size, power of two; rings: the model's", "seconds"))
    print(f"drawn into {PICTURE.name}")
