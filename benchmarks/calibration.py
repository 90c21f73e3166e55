"""Does a calibrated price say what kernels take, and which plan is fast, on another machine?

    python -m benchmarks.calibration               this machine, and two that flags make of it
    python -m benchmarks.calibration --programs 8  fewer programs

Programs are drawn (`price_programs`), none of which is a probe. Several plans of each are timed,
chosen by no price but the one as shipped. A row for each price: as shipped; calibrated here;
calibrated on another machine; fitted to the very plans that are tested, which is the best that
factors can do. Columns: Kendall's tau over the plans of a program; how much longer the plan that a
price puts first takes than the fastest; by which factor expected and measured seconds differ over
the usual plans, in the median and at most. The last line of a machine compares the plans that are
chosen by the calibrated price with those that are chosen by the price as shipped.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from scipy.stats import kendalltau

import taco_py as tp
from benchmarks.price_data import _points as points_of
from benchmarks.price_data import alarm
from benchmarks.price_programs import draw
from codegen.toolchain.compiler_version import version_line
from taco_py.compiler.cost.calibrated import COEFFICIENTS, parts, price_version, with_factors
from taco_py.compiler.cost.machine import NOMINAL
from taco_py.data.kept_calibration import (
    AS_SHIPPED,
    Calibration,
    follow_calibration,
    machine_digest,
)
from taco_py.data.kernels import KERNELS
from taco_py.tuning.bench.bench_here import BenchHere
from taco_py.tuning.bench.call_space import space_of
from taco_py.tuning.bench.plan_bench import PlanBench
from taco_py.tuning.bench.tune_call import tunable
from taco_py.tuning.calibration.fit_factors import fit_factors
from taco_py.tuning.store.tuning_record import OK

RESULTS = Path(__file__).parent / "results" / "calibration"
MACHINES = {"here": "", "O1": "-O1", "sse2": "-O1 -mno-avx"}
"""The flags that make other machines of this one."""
RANKED, USUAL = 20, 40
"""Programs of which several plans are timed, and those of which the usual one is."""
PLANS = 12
LONGEST, SHORTEST = 0.03, 2e-6
SECONDS = 0.15
PATIENCE = 60.0


class TooSlowError(Exception):
    """A program is longer or shorter than what is compared here."""


# ---------------------------------------------------------------- one machine


def calibrate(flags: str, path: Path) -> None:
    """Write the factors of the machine that flags make."""
    tp.set_threads(2)
    KERNELS.compile_with(tuple(flags.split()))
    report = tp.calibrate(save=False)
    print(report, flush=True)
    probes = [asdict(probe) for probe in report.calibration.probes]
    path.write_text(json.dumps({"factors": report.factors, "probes": probes}))


def measure(machine: str, path: Path, programs: int, factors: dict[str, dict[str, float]]) -> None:
    """Write the times of plans, and what each price expects of them."""
    tp.set_threads(2)
    KERNELS.compile_with(tuple(MACHINES[machine].split()))
    rows: list[dict[str, Any]] = []
    number = kept = 0
    while kept < programs:
        count = PLANS if kept < RANKED * programs // USUAL else 1
        try:
            with alarm(PATIENCE):
                found = _rows(machine, number, count, factors)
        except Exception as error:
            found = []
            print(f"{number:4d}  left out: {type(error).__name__}: {error}"[:100], flush=True)
        if found:
            kept += 1
            rows += found
            first = found[0]
            ratio = first["shipped"] / first["measured"]
            print(f"{number:4d}  {len(found):2d} plans  x{ratio:5.2f}  {first['text']}", flush=True)
        number += 1
    path.write_text(json.dumps(rows))


def _rows(
    machine: str, number: int, count: int, factors: dict[str, dict[str, float]]
) -> list[dict[str, Any]]:
    program = draw(number)
    computation = tunable(program.text, program.operands, program.options)
    call = space_of(computation)
    if not SHORTEST < call.price(()) < LONGEST:
        raise TooSlowError(f"{call.price(()):.1e} s are expected")
    machines = {name: with_factors(NOMINAL, known) for name, known in factors.items()}
    bench = BenchHere(PlanBench(computation))
    timed = {}
    for place, (point, plan) in enumerate(points_of(call, count, Random(number))):
        text = call.space.text(point)
        if bench.build(text).result == OK and bench.first(text).result == OK:
            timed[text] = plan
        elif place == 0:
            return []
    chosen = _chosen_text(computation, factors[machine])
    if bench.build(chosen).result != OK or bench.first(chosen).result != OK:
        return []
    least = _least(
        {text: bench.plans.calls[text] for text in (*timed, chosen)}, program.options["threads"]
    )
    rows: list[dict[str, Any]] = []
    for text, plan in timed.items():

        def price(machine: Any, plan: Any = plan) -> float:
            return replace(call.priced, machine=machine).plan(plan)

        amounts = parts(price, NOMINAL, {})
        rows.append(
            {
                "number": number, "text": program.text, "measured": least[text],
                "threads": program.options["threads"], "shipped": price(NOMINAL),
                "parts": [amounts[name] for name in COEFFICIENTS],
                **{name: price(machine) for name, machine in machines.items()},
                "chosen": least[chosen],
            }
        )  # fmt: skip
    return rows


def _chosen_text(computation: Any, factors: dict[str, float]) -> str:
    """The plan that is chosen by a calibrated price."""
    known = (machine_digest(), price_version(), "", "", "", tuple(factors.items()))
    follow_calibration(Calibration(*known))
    try:
        return space_of(computation).space.text(())
    finally:
        follow_calibration(AS_SHIPPED)


def _least(calls: dict[str, Any], threads: int) -> dict[str, float]:
    """The least time of each call, which take turns."""
    clock = time.thread_time if threads == 1 else time.perf_counter
    repeats, least = {}, {}
    for name, call in calls.items():
        call()
        begin = clock()
        call()
        least[name] = clock() - begin
        repeats[name] = max(1, min(500, int(2e-4 / max(least[name], 1e-9))))
    until = time.perf_counter() + SECONDS * len(calls)
    turns = 0
    while turns < 3 or time.perf_counter() < until:
        for name, call in calls.items():
            begin = clock()
            for _ in range(repeats[name]):
                call()
            least[name] = min(least[name], (clock() - begin) / repeats[name])
        turns += 1
    return least


# ---------------------------------------------------------------- the comparison


def scores(rows: list[dict[str, Any]], expected: np.ndarray[Any, Any]) -> dict[str, float]:
    """The figures of a price over the plans of programs."""
    measured = np.array([row["measured"] for row in rows])
    numbers = np.array([row["number"] for row in rows])
    firsts, taus, errors = [], [], []
    for number in dict.fromkeys(numbers):
        mine = np.flatnonzero(numbers == number)
        firsts.append(mine[0])
        if len(mine) < 4:
            continue
        times, prices = measured[mine], expected[mine]
        errors.append(times[np.argmin(prices)] / times.min())
        tau = kendalltau(prices, times).statistic
        taus.append(0.0 if np.isnan(tau) else tau)
    away = np.abs(np.log(expected / measured))
    usual = away[firsts]
    return {
        "tau": float(np.mean(taus)),
        "top-1": 1.0 / float(np.exp(np.mean(np.log(errors)))),
        "worst top-1": 1.0 / float(np.max(errors)),
        "off by, usual plans": float(np.exp(np.median(usual))),
        "all plans": float(np.exp(np.median(away))),
        "most, usual": float(np.exp(np.max(usual))),
        "within 25 %": float(np.mean(usual < np.log(1.25))),
        "within 2": float(np.mean(usual < np.log(2.0))),
    }


def report(machine: str, rows: list[dict[str, Any]], one_thread: bool) -> None:
    """Print a table of the prices on a machine."""
    rows = [row for row in rows if row["threads"] == 1 or not one_thread]
    amounts = np.array([row["parts"] for row in rows])
    measured = np.array([row["measured"] for row in rows])
    prices = {
        "as shipped": np.array([row["shipped"] for row in rows]),
        **{
            "calibrated " + ("there" if name == machine else f"for {name}"): np.array(
                [row[name] for row in rows]
            )
            for name in (machine, *(name for name in MACHINES if name != machine))
        },
        "fitted there": amounts @ fit_factors(amounts, measured),
    }
    programs = len({row["number"] for row in rows})
    words = "one thread" if one_thread else "one thread and two"
    print(f"\n{machine}, {words}: {programs} programs, {len(rows)} plans")
    for name, expected in prices.items():
        figures = "  ".join(f"{k} {v:.2f}" for k, v in scores(rows, expected).items())
        print(f"  {name:24s} {figures}")
    usual = {row["number"]: row for row in reversed(rows)}.values()
    gains = np.array([row["measured"] / row["chosen"] for row in usual])
    others = gains[np.abs(gains - 1) > 1e-12]
    print(
        f"  plans of the calibrated price: {len(others)} of {len(gains)} others, "
        f"x{np.exp(np.mean(np.log(others))) if len(others) else 1.0:.2f} as fast, "
        f"from x{others.min(initial=1.0):.2f} to x{others.max(initial=1.0):.2f}"
    )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("act", nargs="?", default="all", choices=("all", "calibrate", "measure"))
    parser.add_argument("--machine", choices=MACHINES)
    parser.add_argument("--programs", type=int, default=USUAL)
    options = parser.parse_args(arguments)
    RESULTS.mkdir(parents=True, exist_ok=True)
    known = {name: RESULTS / f"factors-{name}.json" for name in MACHINES}
    times = {name: RESULTS / f"times-{name}.json" for name in MACHINES}
    match options.act:
        case "calibrate":
            calibrate(MACHINES[options.machine], known[options.machine])
        case "measure":
            factors = {name: json.loads(p.read_text())["factors"] for name, p in known.items()}
            measure(options.machine, times[options.machine], options.programs, factors)
        case "all":
            print(version_line(KERNELS.compiler.command))
            for act in ("calibrate", "measure"):
                for name in MACHINES:
                    _in_process(act, "--machine", name, "--programs", str(options.programs))
            for name, path in times.items():
                for one_thread in (True, False):
                    report(name, json.loads(path.read_text()), one_thread)


def _in_process(*words: str) -> None:
    """Run a part in a process of its own, by prices as shipped."""
    environ = {**os.environ, "TACO_PY_CALIBRATION": "off"}
    subprocess.run(
        [sys.executable, "-m", "benchmarks.calibration", *words], check=True, env=environ
    )


if __name__ == "__main__":
    main()
