"""The plans of a call in the order of their prices: nothing is compiled, and nothing is run.

the plan that is chosen, all that differ from it in one option, all that differ from the cheapest
of these in one more, …   →   priced together   →   the cheapest first
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from math import inf
from time import monotonic
from typing import Any

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.planner.ir.plan import Plan
from taco_py.running.plan_texts.fitted_plan import can_be_made
from taco_py.tuning.bench.bench_here import BenchHere
from taco_py.tuning.bench.call_space import CallSpace, space_of
from taco_py.tuning.bench.plan_bench import PlanBench
from taco_py.tuning.bench.tune_call import tunable
from taco_py.tuning.prices.plan_seconds import ExpectedSeconds, PlanSeconds
from taco_py.tuning.prices.price_model import PriceModel
from taco_py.tuning.space.axis import Point, label_of
from taco_py.tuning.store.tuning_record import OK

ROUNDS = 3
"""Options that are changed, one after the other."""
WIDTH = 4
"""Plans of which each round takes the neighbours."""


@dataclass(frozen=True, slots=True, eq=False)
class RankedPlan:
    """A plan of a call, with what it is expected to take.

    plan      text that parses back
    label     options that differ from the plan that is chosen without ranking
    seconds   expected
    interval  quartiles of what such kernels took, over the same price
    unsure    whether the next plan may as well be faster: their intervals overlap, or nothing
              alike was measured
    """

    plan: str
    label: str
    seconds: float
    interval: tuple[float, float]
    unsure: bool
    bench: BenchHere

    def measure(self) -> float:
        """Return the seconds of the plan on the operands of the call: the least of its times.

        Raises ScheduleError where it cannot be made or its result is wrong.
        """
        for step in (self.bench.build, self.bench.first):
            outcome = step(self.plan)
            if outcome.result != OK:
                raise ScheduleError(f"The plan cannot be measured: {outcome.note}")
        timed = self.bench.alone(self.plan)
        assert timed.seconds is not None
        return timed.seconds


@dataclass(frozen=True, slots=True)
class PricedPoint:
    """A point of the space of a call, its plan, and its expected seconds."""

    point: Point
    plan: Plan
    expected: ExpectedSeconds


def ranked(
    text: str,
    objects: Mapping[str, Any],
    options: Mapping[str, Any],
    model: PriceModel | None,
    limit: int,
    seconds: float,
) -> list[RankedPlan]:
    """Return at most `limit` plans of a call, the cheapest first.

    model    None for the analytic price
    seconds  after which no further options are combined

    Raises what the call raises.
    """
    computation = tunable(text, objects, options)
    space = space_of(computation)
    bench = BenchHere(PlanBench(computation))
    priced = priced_points(space, model, limit, seconds)
    rows = []
    for place, one in enumerate(priced):
        expected = one.expected
        following = priced[place + 1].expected if place + 1 < len(priced) else None
        unsure = expected.outside or (following is not None and expected.overlaps(following))
        rows.append(
            RankedPlan(
                space.space.text(one.point),
                label_of(one.point),
                expected.seconds,
                (expected.low, expected.high),
                model is None or unsure,
                bench,
            )
        )
    return rows


def priced_points(
    call: CallSpace, model: PriceModel | None, limit: int, seconds: float
) -> list[PricedPoint]:
    """Return the cheapest points of a space that can be made, the cheapest first."""
    until, prices = monotonic() + seconds, PlanSeconds(call.priced, model)
    by_identity: dict[str, PricedPoint] = {}
    visited: set[Point] = set()
    front: list[Point] = [()]
    for _ in range(ROUNDS + 1):
        points = [point for point in dict.fromkeys(front) if point not in visited]
        visited.update(points)
        plans = [_plan(call, point) for point in points]
        for point, plan, expected in zip(points, plans, prices.of(plans), strict=True):
            if plan is None or expected.seconds == inf:
                continue
            by_identity.setdefault(call.space.identity(plan), PricedPoint(point, plan, expected))
        best = sorted(by_identity.values(), key=lambda one: one.expected.seconds)
        if monotonic() > until:
            break
        front = [n for one in best[:WIDTH] for n in call.space.neighbours(one.point)]
    target = call.space.settings.target
    return list(islice((one for one in best if can_be_made(one.plan, target)), limit))


def _plan(call: CallSpace, point: Point) -> Plan | None:
    try:
        return call.space.plan(point)
    except ScheduleError:
        return None
