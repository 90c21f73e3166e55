"""Collect what plans of drawn programs take, for prices to be learned from.

    python -m benchmarks.price_data collect --programs 150 --plans 80    programs 0 to 149; resumes
    python -m benchmarks.price_data count                                features, counted again
    python -m benchmarks.price_data pack                                 one file of all
    python -m benchmarks.price_data unpack                               its programs, a file each

Each program is a file in `benchmarks/results/prices`: the features of each kernel of each plan, its
analytic price, and all times of the plan. All kernels of a program are compiled two at a time, then
its plans are timed one after the other. Plans of one thread are timed by the clock of the thread;
with `--threads 1`, which passes over other programs, the machine may do something else besides.
A program whose file is there is passed over, so that an interrupted command goes on where it
stopped. The texts of plans are kept: where features or the analytic price are others than they
were, `count` finds them without a measurement.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from math import inf
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import taco_py as tp
from benchmarks.price_programs import DrawnProgram, draw
from taco_py.calls.call.prepare import prepare_computation
from taco_py.compiler.driver import compile_recipes
from taco_py.planner.ir.plan import Plan
from taco_py.running.plan_texts.fitted_plan import can_be_made
from taco_py.tuning.bench.bench_here import BenchHere
from taco_py.tuning.bench.call_space import CallSpace, space_of
from taco_py.tuning.bench.plan_bench import PlanBench
from taco_py.tuning.bench.tune_call import tunable
from taco_py.tuning.prices.plan_seconds import PlanSeconds
from taco_py.tuning.prices.price_data import PriceData, join_data, load_data
from taco_py.tuning.space.axis import Point
from taco_py.tuning.store.fingerprint import target_here
from taco_py.tuning.store.tuning_record import OK

FOLDER = Path(__file__).parent / "results" / "prices"
PACKED = Path(__file__).parent / "data" / "prices.npz"
LONGEST, SHORTEST = 0.25, 2e-6
"""Analytic seconds of the plan that is chosen: longer programs are passed over, and shorter ones,
whose calls are Python."""
DEAREST = 30.0
"""How many times the least price a plan may have."""
SECONDS, LEAST, MOST = 0.03, 3, 12
"""A plan is timed for so long, so many times at least and at most."""
MOST_NUMBER = 5000
"""Programs that are drawn at most where numbers are looked for."""
PATIENCE = 90.0
"""Seconds that compiling and timing a program may take."""


class OutOfTimeError(Exception):
    """A program takes longer than is worth it."""


def collect(
    programs: int, plans: int, first: int = 0, threads: int | None = None, folder: Path = FOLDER
) -> None:
    """Measure the programs of the numbers from `first` on that have no file.

    threads  of the programs; None for all
    """
    folder.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    for number in range(first, first + programs):
        path = folder / f"{number:05}.npz"
        if path.exists() or threads not in (None, draw(number).options["threads"]):
            continue
        words = measure(number, plans, path)
        print(f"{number:5d}  {time.monotonic() - begin:7.0f} s  {words}", flush=True)


def measure(number: int, plans: int, path: Path) -> str:
    """Measure the plans of a program and write its file; an empty one where it has none."""
    program = draw(number)
    data = PriceData.nothing()
    try:
        with alarm(PATIENCE):
            data = _measured(program, plans)
        words = f"{len(data.rest)} plans, {len(data.seconds)} kernels"
    except (tp.TacoError, MemoryError, OutOfTimeError, ValueError) as error:
        words = f"left out: {type(error).__name__}: {error}".splitlines()[0]
    data.save(path)
    return f"{words:60.60s}  {program.text}"


@contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Raise OutOfTimeError after so many seconds."""

    def ring(*_: object) -> None:
        raise OutOfTimeError("it takes too long")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def _measured(program: DrawnProgram, plans: int) -> PriceData:
    computation = tunable(program.text, program.operands, program.options)
    call = space_of(computation)
    usual = call.price(())
    if not SHORTEST < usual < LONGEST:
        raise ValueError(f"{usual:.1e} s are expected of it")
    chosen = list(_points(call, plans, Random(program.number)))
    compile_plans([plan for _, plan in chosen])
    bench = BenchHere(PlanBench(computation))
    prices = PlanSeconds(call.priced, None, with_features=True)
    parts: list[PriceData] = []
    for point, plan in (*chosen[1:], *chosen[:1]):  # the first one that runs waits for memory
        text = call.space.text(point)
        if bench.build(text).result != OK or bench.first(text).result != OK:
            continue
        times = times_of(bench.plans.calls[text], program.options["threads"])
        rest, seconds, rows = prices.parts_of(plan)
        part = PriceData.of_plan(program.digest, rest, seconds, rows, times, text)
        parts.insert(0 if point == () else len(parts), part)
    target = target_here()
    machine = target.processor, target.compiler, date.today().isoformat()
    return replace(join_data(parts), machine=machine)


def _points(call: CallSpace, most: int, numbers: Random) -> Iterator[tuple[Point, Plan]]:
    """Yield points whose plans differ: the usual one, its neighbours, and points at random."""
    least, seen = call.price(()), set[str]()
    near = list(call.space.neighbours(()))
    numbers.shuffle(near)
    far = (call.space.mutated((), numbers, numbers.randint(2, 4)) for _ in range(3 * most))
    for point in ((), *near[: most // 2], *far):
        if len(seen) == most:
            return
        price = call.price(point)
        if price == inf or price > DEAREST * least:
            continue
        plan = call.space.plan(point)
        name = call.space.identity(plan)
        if name in seen or not can_be_made(plan, "c"):
            continue
        seen.add(name)
        yield point, plan


def compile_plans(plans: list[Plan]) -> None:
    """Compile the kernels of all plans, two at a time; what fails is met again when it is built."""
    recipes = [recipe for plan in plans for recipe in plan.recipes]
    try:
        compile_recipes(recipes)
    except tp.TacoError:
        return


def times_of(call: Any, threads: int) -> list[float]:
    """Return the times of a call."""
    clock = time.thread_time if threads == 1 else time.perf_counter
    begin = clock()
    call()
    once = clock() - begin
    repeats = max(1, min(200, int(2e-4 / max(once, 1e-9))))
    times: list[float] = []
    begin = time.perf_counter()
    while len(times) < MOST and (len(times) < LEAST or time.perf_counter() - begin < SECONDS):
        start = clock()
        for _ in range(repeats):
            call()
        times.append((clock() - start) / repeats)
    return times


def count(folder: Path = FOLDER) -> None:
    """Count the features of all plans again, and their analytic prices."""
    for path in sorted(folder.glob("*.npz")):
        data = load_data(path, any_features=True)
        is_left_out = not len(data.rest)
        (PriceData.nothing() if is_left_out else counted(draw(int(path.stem)), data)).save(path)


def counted(program: DrawnProgram, data: PriceData) -> PriceData:
    """Return the data of a program with features and prices as they are now; plans that the
    compiler no longer makes are left out."""
    computation = tunable(program.text, program.operands, program.options)
    prices = PlanSeconds(space_of(computation).priced, None, with_features=True)
    parts: list[PriceData] = []
    for text, times in zip(data.plans, data.times, strict=True):
        options = replace(computation.options, plan=text)
        try:
            plan = prepare_computation(computation.with_options(options)).plan
            rest, seconds, rows = prices.parts_of(plan)
        except tp.TacoError as error:
            print(f"{program.number}: {error.message[:80]}")
            continue
        kept = times[~np.isnan(times)]
        parts.append(PriceData.of_plan(program.digest, rest, seconds, rows, kept, text))
    return replace(join_data(parts), machine=data.machine)


def pack(folder: Path = FOLDER, path: Path = PACKED) -> None:
    """Write one file of all programs that were measured."""
    parts = [load_data(file) for file in sorted(folder.glob("*.npz"))]
    data = join_data([part for part in parts if len(part.rest)])
    path.parent.mkdir(exist_ok=True)
    data.save(path)
    size = path.stat().st_size / 1e6
    print(f"{len(data.digests)} programs, {len(data.rest)} plans, {size:.2f} MB in {path}")


def unpack(folder: Path = FOLDER, path: Path = PACKED) -> None:
    """Write a file of each program of a packed file, so that its features can be counted again."""
    data = load_data(path, any_features=True)
    numbers = program_numbers({str(digest) for digest in data.digests})
    folder.mkdir(parents=True, exist_ok=True)
    for place, digest in enumerate(data.digests):
        only = np.arange(len(data.digests)) == place
        data.of_programs(only).save(folder / f"{numbers[str(digest)]:05}.npz")
    print(f"{len(numbers)} programs in {folder}")


def program_numbers(digests: set[str]) -> dict[str, int]:
    """Return the number of each program of some digests, which are drawn until all are there."""
    numbers: dict[str, int] = {}
    for number in range(MOST_NUMBER):
        if len(numbers) == len(digests):
            break
        digest = draw(number).digest
        if digest in digests:
            numbers[digest] = number
    return numbers


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("collect", "count", "pack", "unpack"))
    parser.add_argument("--programs", type=int, default=150)
    parser.add_argument("--plans", type=int, default=80)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--threads", type=int, choices=(1, 2))
    options = parser.parse_args(arguments)
    match options.command:
        case "collect":
            collect(options.programs, options.plans, options.first, options.threads)
        case "count":
            count()
        case "pack":
            pack()
        case "unpack":
            unpack()


if __name__ == "__main__":
    sys.exit(main())
