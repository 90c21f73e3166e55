"""The points of a space with the least prices.

the plan that is chosen, all that differ from it in one option, all that differ from the cheapest
of these in one more, …   →   priced together   →   the cheapest first
"""

from __future__ import annotations

from itertools import islice
from math import inf
from time import monotonic

from codegen.records import dataclass
from taco_py.planner.ir.plan import Plan
from taco_py.running.plan_texts.fitted_plan import can_be_made
from taco_py.tuning.bench.call_space import CallSpace
from taco_py.tuning.prices.plan_seconds import ExpectedSeconds
from taco_py.tuning.space.axis import Point

WIDTH = 4
"""Plans of which each round takes the neighbours."""


@dataclass(frozen=True, slots=True)
class PricedPoint:
    """A point of the space of a call, its plan, and its expected seconds."""

    point: Point
    plan: Plan
    expected: ExpectedSeconds


def cheapest_points(
    call: CallSpace, limit: int, rounds: int, seconds: float = inf
) -> list[PricedPoint]:
    """Return the cheapest points that can be made, the cheapest first; plans alike are one.

    rounds   options that are changed, one after the other
    seconds  after which there is no further round
    """
    until = monotonic() + seconds
    by_identity: dict[str, PricedPoint] = {}
    visited: set[Point] = set()
    front: list[Point] = [()]
    for _ in range(rounds + 1):
        points = [point for point in dict.fromkeys(front) if point not in visited]
        visited.update(points)
        for point, expected in zip(points, call.prices(points), strict=True):
            plan = call.plan(point)
            if plan is not None and expected.seconds < inf:
                one = PricedPoint(point, plan, expected)
                by_identity.setdefault(call.space.identity(plan), one)
        best = sorted(by_identity.values(), key=lambda one: one.expected.seconds)
        if monotonic() > until:
            break
        front = [n for one in best[:WIDTH] for n in call.space.neighbours(one.point)]
    target = call.space.settings.target
    return list(islice((one for one in best if can_be_made(one.plan, target)), limit))
