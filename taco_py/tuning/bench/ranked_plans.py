"""The plans of a call in the order of their prices: nothing is compiled, and nothing is run.

text, operands, price   →   the cheapest points of the space   →   rows that can be measured
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.tuning.bench.bench_here import BenchHere
from taco_py.tuning.bench.call_space import space_of
from taco_py.tuning.bench.cheapest_points import cheapest_points
from taco_py.tuning.bench.plan_bench import PlanBench
from taco_py.tuning.bench.tune_call import tunable
from taco_py.tuning.space.axis import label_of
from taco_py.tuning.store.tuning_record import OK

ROUNDS = 3
"""Options that are changed, one after the other."""


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


def ranked(
    text: str,
    objects: Mapping[str, Any],
    options: Mapping[str, Any],
    limit: int,
    seconds: float,
) -> list[RankedPlan]:
    """Return at most `limit` plans of a call, the cheapest first.

    options  the arguments of `evaluate` by name
    seconds  after which no further options are combined

    Raises what the call raises.
    """
    computation = tunable(text, objects, options)
    space = space_of(computation)
    bench = BenchHere(PlanBench(computation))
    priced = cheapest_points(space, limit, ROUNDS, seconds)
    rows = []
    for place, one in enumerate(priced):
        expected = one.expected
        following = priced[place + 1].expected if place + 1 < len(priced) else None
        unsure = expected.outside or (following is not None and expected.may_lose_to(following))
        rows.append(
            RankedPlan(
                space.space.text(one.point),
                label_of(one.point),
                expected.seconds,
                (expected.low, expected.high),
                space.seconds.model is None or unsure,
                bench,
            )
        )
    return rows
