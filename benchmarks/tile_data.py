"""Collect what dense kernels take in tiles of many sizes, for models that choose tiles.

    python -m benchmarks.tile_data collect --kernels 48 --tiles 64    kernels 0 to 47; resumes
    python -m benchmarks.tile_data pack                               one file of all

Each kernel is a file in `benchmarks/results/tiles`, as `price_data` writes them: the texts of its
plans, their features, and all times. The tiles are drawn among a dozen sizes for each loop that is
long enough; the loops as written and the tile of the analytic model (`benchmarks.tile_model`) are
among them. One thread, and its processor time: others may run beside. A kernel whose file is there
is passed over.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from itertools import product
from pathlib import Path
from random import Random

import taco_py as tp
from benchmarks.price_data import OutOfTimeError, alarm, compile_plans, pack, times_of
from benchmarks.tile_kernels import TiledKernel, draw_kernel, schedule_text
from benchmarks.tile_model import chosen_tile
from taco_py.calls.call.computation import Computation
from taco_py.calls.call.prepare import prepare_computation
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.planner.ir.plan import Plan
from taco_py.planner.ir.printer import program_text
from taco_py.tuning.bench.bench_here import BenchHere
from taco_py.tuning.bench.call_space import space_of
from taco_py.tuning.bench.plan_bench import PlanBench, WrongResultError
from taco_py.tuning.bench.tune_call import tunable
from taco_py.tuning.prices.plan_seconds import PlanSeconds
from taco_py.tuning.prices.price_data import PriceData, join_data
from taco_py.tuning.store.fingerprint import target_here
from taco_py.tuning.store.tuning_record import OK

FOLDER = Path(__file__).parent / "results" / "tiles"
PACKED = Path(__file__).parent / "data" / "tiles.npz"
SIZES = (8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
PATIENCE = 400.0
"""Seconds that compiling and timing a kernel may take."""


def collect(kernels: int, tiles: int, folder: Path = FOLDER, first: int = 0) -> None:
    """Measure the kernels of the numbers from `first` on that have no file."""
    folder.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    for number in range(first, first + kernels):
        path = folder / f"{number:05}.npz"
        if path.exists():
            continue
        kernel, data = draw_kernel(number), PriceData.nothing()
        try:
            with alarm(PATIENCE):
                data = _measured(kernel, tiles)
            words = f"{len(data.rest)} tiles"
        except (tp.TacoError, WrongResultError, MemoryError, OutOfTimeError) as error:
            words = f"left out: {type(error).__name__}: {error}".splitlines()[0]
        data.save(path)
        took = time.monotonic() - begin
        print(
            f"{number:5d}  {took:7.0f} s  {words:30.30s}  {kernel.text} {kernel.sizes}", flush=True
        )


def _measured(kernel: TiledKernel, tiles: int) -> PriceData:
    computation = tunable(kernel.text, kernel.operands, {"threads": 1})
    bench = BenchHere(PlanBench(computation))
    plans = [_plan(computation, kernel, tile) for tile in _tiles(kernel, tiles)]
    compile_plans(plans)
    prices = PlanSeconds(space_of(computation).priced, None, with_features=True)
    parts: list[PriceData] = []
    for plan in plans:
        text = program_text(plan.program)
        # the first one is compared with the oracle, others with its result
        if bench.build(text).result != OK or (not parts and bench.first(text).result != OK):
            continue
        bench.plans.first(text)
        times = times_of(bench.plans.calls[text], 1)
        rest, seconds, rows = prices.parts_of(plan)
        parts.append(PriceData.of_plan(kernel.digest, rest, seconds, rows, times, text))
    target = target_here()
    machine = target.processor, target.compiler, date.today().isoformat()
    return replace(join_data(parts), machine=machine)


def _tiles(kernel: TiledKernel, most: int) -> Iterator[tuple[int, ...]]:
    """Yield different tiles: the loops as written, the model's tile, and others at random."""
    choices = [
        (*(size for size in SIZES if size < kernel.sizes[loop]), kernel.sizes[loop])
        for loop in kernel.tiled
    ]
    every = list(product(*choices))
    Random(kernel.number).shuffle(every)
    extents = tuple(kernel.sizes[loop] for loop in kernel.tiled)
    yield from list(dict.fromkeys((extents, chosen_tile(kernel), *every)))[:most]


def _plan(computation: Computation, kernel: TiledKernel, tile: tuple[int, ...]) -> Plan:
    schedule = Schedule.parse(schedule_text(kernel, tile))
    options = replace(computation.options, schedule=schedule)
    return prepare_computation(computation.with_options(options)).plan


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("collect", "pack"))
    parser.add_argument("--kernels", type=int, default=48)
    parser.add_argument("--tiles", type=int, default=64)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args(arguments)
    if options.command == "collect":
        collect(options.kernels, options.tiles, first=options.first)
    else:
        pack(FOLDER, PACKED)


if __name__ == "__main__":
    sys.exit(main())
