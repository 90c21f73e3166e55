"""The space of plans of a call, and what they are expected to take."""

from __future__ import annotations

from dataclasses import field, replace
from math import inf

from codegen.records import dataclass
from taco_py.arguments.options import CallOptions
from taco_py.calls.call.computation import Computation
from taco_py.calls.call.libraries import libraries_of
from taco_py.calls.call.planner_request import open_goal
from taco_py.calls.call.prepare import Prepared, prepare_computation
from taco_py.data.kernels import KERNELS
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.problem import TensorType
from taco_py.planner.ir.plan import Plan
from taco_py.planner.unit_modes import squeezed_facts
from taco_py.tuning.space.axis import Point
from taco_py.tuning.space.plan_price import PricedFor
from taco_py.tuning.space.planner_options import PlannedCall, planner_axes
from taco_py.tuning.space.point_texts import Space


@dataclass(frozen=True, slots=True, eq=False)
class CallSpace:
    """A call, its plans, and their prices.

    prices  those that were computed, by point
    """

    computation: Computation
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


def space_of(computation: Computation) -> CallSpace:
    """Return the space of statements whose sums are explicit. Raises what the call raises."""
    prepared, options = prepare_computation(computation), computation.options
    type = TensorType(prepared.kind.format, prepared.dtype.name)
    request = replace(open_goal(options, type), libraries=libraries_of(options))

    def plan(other: CallOptions) -> Plan:
        return prepare_computation(computation.with_options(other)).plan

    threads = options.threads or KERNELS.cores
    operands = {name: bound.operand for name, bound in prepared.operands.items()}
    space = Space(options, plan, planner_axes(_planned_call(prepared), request, options), threads)
    return CallSpace(computation, prepared, space, PricedFor(operands, request.machine, threads))


def _planned_call(prepared: Prepared) -> PlannedCall:
    """Return the plan of a call with the facts of tensors as statements read them."""
    checked = prepared.checked
    operands = {name: bound.operand for name, bound in prepared.operands.items()}
    facts = {**checked.elaborated.operands, **operands}
    facts |= {name: squeezed_facts(facts[name], axes) for name, axes in checked.squeezed}
    if checked.is_single:
        return PlannedCall(prepared.plan, facts, (prepared.assignment,), {})
    return PlannedCall(
        prepared.plan, facts, checked.elaborated.assignments, checked.statements.names
    )
