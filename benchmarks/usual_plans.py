"""How fast are the plans that are chosen without timing, beside the fastest that was measured?

    python -m benchmarks.usual_plans [PACKED] [--programs 192] [--best 5]

For each drawn program of a packed file of `benchmarks.price_data`: the plan that is chosen today,
the one by `price="learned"`, by trees that were grown on other programs (four parts), and the
plans that were the fastest when the file was made. All are timed in turns, each ROUNDS times after
a first run: plans of one thread by the thread's clock. A line for each program, then the geometric
means and the least of the speeds over the fastest of them.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import taco_py as tp
from benchmarks.price_data import PACKED, OutOfTimeError, alarm, program_numbers, times_of
from benchmarks.price_programs import DrawnProgram, draw
from taco_py.tuning.bench.bench_here import BenchHere
from taco_py.tuning.bench.call_space import space_of
from taco_py.tuning.bench.plan_bench import PlanBench
from taco_py.tuning.bench.priced_schedule import priced
from taco_py.tuning.bench.tune_call import tunable
from taco_py.tuning.prices.price_data import PriceData, load_data
from taco_py.tuning.prices.price_model import PriceModel
from taco_py.tuning.prices.train_price import trained
from taco_py.tuning.store.tuning_record import OK

PARTS = 4
ROUNDS = 3
USUAL, LEARNED = "usual", "learned"


def models(data: PriceData) -> list[PriceModel]:
    """Return a model for each part of the programs, grown on the others."""
    part = np.array([part_of(str(digest)) for digest in data.digests])
    return [trained(data.of_programs(part != each)) for each in range(PARTS)]


def part_of(digest: str) -> int:
    """Return the part of the programs that a program is in."""
    return int(digest, 16) % PARTS


def texts_of(program: DrawnProgram, fastest: list[str], model: PriceModel) -> dict[str, str]:
    """Return the texts of the plans to time, by name."""
    computation = tunable(program.text, program.operands, program.options)
    space = space_of(computation).space
    learned = computation.with_options(replace(computation.options, price=model))
    usual = space.text(())
    named = {USUAL: usual, LEARNED: priced(learned).settings.plan or usual}
    return named | {f"fastest {place}": text for place, text in enumerate(fastest)}


def speeds(program: DrawnProgram, texts: Mapping[str, str]) -> dict[str, float]:
    """Return the least seconds of each plan; equal texts are timed once."""
    computation = tunable(program.text, program.operands, program.options)
    bench = BenchHere(PlanBench(computation))
    calls: dict[str, Any] = {}
    for text in dict.fromkeys(texts.values()):
        if bench.build(text).result == OK and bench.first(text).result == OK:
            calls[text] = bench.plans.calls[text]
    least = dict.fromkeys(calls, np.inf)
    for _ in range(ROUNDS):
        for text, call in calls.items():
            least[text] = min(least[text], *times_of(call, program.options["threads"]))
    return {name: least[text] for name, text in texts.items() if text in least}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("packed", nargs="?", type=Path, default=PACKED)
    parser.add_argument("--programs", type=int, default=192)
    parser.add_argument("--best", type=int, default=5)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    data = load_data(options.packed)
    grown, measured = models(data), data.measured
    numbers = program_numbers({str(digest) for digest in data.digests[: options.programs]})
    rows: list[tuple[float, float]] = []
    for place, digest in enumerate(data.digests[: options.programs]):
        program = draw(numbers[str(digest)])
        plans = np.flatnonzero(data.program == place)
        order = plans[np.argsort(measured[plans])][: options.best]
        try:
            with alarm(60.0):
                texts = texts_of(
                    program, [data.plans[plan] for plan in order], grown[part_of(str(digest))]
                )
                seconds = speeds(program, texts)
        except (tp.TacoError, OutOfTimeError, ValueError) as error:
            print(f"{program.number:4d} left out: {error}"[:100])
            continue
        if USUAL not in seconds:
            continue
        fastest = min(seconds.values())
        learned = fastest / seconds.get(LEARNED, seconds[USUAL])
        rows.append((fastest / seconds[USUAL], learned))
        print(
            f"{program.number:4d} {seconds[USUAL] * 1e6:9.1f} us  usual {rows[-1][0]:.2f}  "
            f"learned {learned:.2f}  {program.text}",
            flush=True,
        )
    for name, column in zip((USUAL, LEARNED), np.array(rows).T, strict=True):
        mean, least = np.exp(np.log(column).mean()), np.sort(column)[:5].round(2)
        print(f"{name:8s} geometric mean {mean:.3f}, least {least}, of {len(rows)} programs")


if __name__ == "__main__":
    sys.exit(main())
