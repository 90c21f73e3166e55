"""The space of plans of a call, and what they are expected to take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from math import inf
from typing import Any

from codegen.records import dataclass
from taco_py.arguments.options import CallOptions
from taco_py.calls.call.libraries import libraries_of
from taco_py.calls.call.planner_request import open_goal
from taco_py.calls.call.prepare import Prepared, prepare
from taco_py.data.kernels import KERNELS
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.notation.einsum import Squeezed
from taco_py.language.notation.nodes import Assignment
from taco_py.language.problem import TensorType
from taco_py.planner.algebra.normalize import normal_form
from taco_py.planner.ir.nodes import Operand
from taco_py.planner.unit_modes import squeezed_facts
from taco_py.tuning.space.axis import Point
from taco_py.tuning.space.plan_price import PricedFor
from taco_py.tuning.space.planner_options import planner_axes
from taco_py.tuning.space.point_texts import Space


@dataclass(frozen=True, slots=True, eq=False)
class CallSpace:
    """A call, its plans, and their prices.

    prices  what was found, by point
    """

    assignment: Assignment
    objects: Mapping[str, Any]
    settings: CallOptions
    squeezed: Squeezed
    prepared: Prepared
    space: Space
    priced: PricedFor
    prices: dict[Point, float] = field(default_factory=dict)

    def price(self, point: Point) -> float:
        """Return the expected seconds of a point, infinite where it has no plan."""
        if point not in self.prices:
            try:
                self.prices[point] = self.priced.plan(self.space.plan(point))
            except ScheduleError:
                self.prices[point] = inf
        return self.prices[point]


def space_of(
    assignment: Assignment,
    objects: Mapping[str, Any],
    settings: CallOptions,
    squeezed: Squeezed = (),
) -> CallSpace:
    """Return the space of a call whose sums are explicit. Raises what the call raises."""
    prepared = prepare(assignment, objects, settings, squeezed)
    operands = _facts(prepared, squeezed)
    type = TensorType(prepared.kind.format, prepared.dtype.name)
    request = replace(open_goal(settings, type), libraries=libraries_of(settings))
    product = normal_form(prepared.assignment, operands)

    def planned(asked: CallOptions) -> Any:
        return prepare(assignment, objects, asked, squeezed).plan

    axes = planner_axes(prepared.plan, operands, request, settings, product)
    threads = settings.threads or KERNELS.cores
    given = {name: g.operand for name, g in prepared.operands.items()}
    return CallSpace(
        assignment,
        objects,
        settings,
        squeezed,
        prepared,
        Space(settings, planned, axes, threads),
        PricedFor(given, request.machine, threads),
    )


def _facts(prepared: Prepared, squeezed: Squeezed) -> dict[str, Operand]:
    """Return the facts of the operands as the assignment reads them."""
    facts = {name: g.operand for name, g in prepared.operands.items()}
    return facts | {name: squeezed_facts(facts[name], axes) for name, axes in squeezed}
