"""Does a beam that asks a price find plans as fast as one that runs each plan, in less time?

    python -m benchmarks.searches --kernels 10     takes the files of `benchmarks.prices --networks`

Programs are those that no price was trained on. The beam by time runs up to `TRIALS` plans; those
by price, and the tree of choices, `FEW` besides the usual one. In the end the plans that were found
take turns. A row for each search and price: the speed of its plan over that of the beam by time, as
geometric mean and at worst, and its seconds over those of the beam by time.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import exp, log

from benchmarks.network_data import FORMS, FormedProgram, drawn_program, load, price_data_of
from benchmarks.prices import is_test, network_path
from taco_py.arguments.learned_price import ANALYTIC, Price
from taco_py.calls.call.computation import Computation
from taco_py.tuning.bench.bench_here import BenchHere
from taco_py.tuning.bench.call_space import space_of
from taco_py.tuning.bench.plan_bench import PlanBench
from taco_py.tuning.bench.tune_call import tunable
from taco_py.tuning.networks.load_price import load_price
from taco_py.tuning.prices.train_price import trained
from taco_py.tuning.searches.search_table import search_of
from taco_py.tuning.session.tuning_session import Limits, Session

TRIALS, FEW = 120, 3
LONGEST = 600.0
"""Seconds of a search at most."""
LEAST_PLANS, SHORTEST = 40, 2e-5
"""Plans that were measured of a kernel, and seconds that the usual one takes, at least."""
NETWORKS = ("tree LSTM", "GraphSAGE, pairs")


def kernels(programs: list[FormedProgram], most: int) -> Iterator[FormedProgram]:
    """The programs that are searched: tested ones, large enough to be timed."""
    count = 0
    for one in programs:
        is_large = len(one.texts) >= LEAST_PLANS and one.seconds[one.usual] >= SHORTEST
        if is_test(one.digest) and one.usual >= 0 and is_large and count < most:
            count += 1
            yield one


def prices_of(programs: list[FormedProgram]) -> dict[str, Price]:
    """The prices by name: the analytic one, trees, networks."""
    train = [one for one in programs if not is_test(one.digest) and one.usual >= 0]
    train_data = price_data_of(train)
    prices: dict[str, Price] = {"analytic": ANALYTIC, "trees": trained(train_data)}
    return prices | {name: load_price(network_path(name)) for name in NETWORKS}


def found(
    computation: Computation, search: str, price: Price, trials: int
) -> tuple[str, float, BenchHere]:
    """The plan that a search finds, and the seconds that it took."""
    begin = time.perf_counter()
    computation = computation.with_options(replace(computation.options, price=price))
    call = space_of(computation)
    bench = BenchHere(PlanBench(call.computation))
    session = Session(call.space, bench, call.price, Limits(trials, LONGEST))
    outcome = session.run(search_of(search), 0, {})
    return outcome.best.text, time.perf_counter() - begin, bench


def compared(one: FormedProgram, prices: dict[str, Price]) -> dict[str, tuple[float, float]]:
    """The speed and the seconds of each search over those of the beam by time."""
    _, text, operands, options = drawn_program(one.number)
    computation = tunable(text, operands, options)
    searches: dict[str, Callable[[], tuple[str, float, BenchHere]]] = {
        f"beam, {name}": lambda price=price: found(computation, "beam", price, FEW + 1)  # type: ignore[misc]
        for name, price in prices.items()
    }
    some = next(reversed(prices))
    searches[f"mcts, {some}"] = lambda: found(computation, "mcts", prices[some], FEW + 1)
    plans = {name: search() for name, search in searches.items()}
    best, seconds, bench = found(computation, "beam by time", ANALYTIC, TRIALS)
    rows = {}
    for name, (plan, took, _) in plans.items():
        turns = bench.race(plan, best, True) if plan != best else None
        speed = turns.rival / turns.seconds if turns and turns.rival and turns.seconds else 1.0
        rows[name] = speed, took / seconds
    words = "  ".join(f"{name}: {speed:.2f} in {took:.3f}" for name, (speed, took) in rows.items())
    print(f"{one.number:5d} {text:40.40s} by time {seconds:.0f} s  {words}", flush=True)
    return rows


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", type=int, default=10)
    options = parser.parse_args(arguments)
    programs = load(FORMS)
    prices = prices_of(programs)
    rows = [compared(one, prices) for one in kernels(programs, options.kernels)]
    print("| search | speed over the beam by time | at worst | its time |\n|---|---|---|---|")
    for name in rows[0]:
        speeds, times = zip(*(row[name] for row in rows), strict=True)
        mean = exp(sum(map(log, speeds)) / len(speeds))
        print(f"| {name} | {mean:.3f} | {min(speeds):.3f} | {sum(times) / len(times):.3f} |")


if __name__ == "__main__":
    sys.exit(main())
