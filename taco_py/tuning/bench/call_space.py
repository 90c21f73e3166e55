"""The space of plans of a call, and what they are expected to take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

from codegen.records import dataclass
from taco_py.arguments.learned_price import ANALYTIC
from taco_py.arguments.options import CallOptions
from taco_py.calls.call.computation import Computation
from taco_py.calls.call.libraries import libraries_of
from taco_py.calls.call.planner_request import open_goal
from taco_py.calls.call.prepare import Prepared, prepare_computation
from taco_py.data.kernels import KERNELS
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.problem import TensorType
from taco_py.planner.ir.plan import Plan
from taco_py.planner.plan_price import PricedFor
from taco_py.planner.unit_modes import squeezed_facts
from taco_py.tuning.networks.form_plans import plan_prices
from taco_py.tuning.prices.plan_seconds import ExpectedSeconds, PlanPrices
from taco_py.tuning.prices.price_choice import model_of
from taco_py.tuning.space.axis import Point
from taco_py.tuning.space.planner_options import PlannedCall, planner_axes
from taco_py.tuning.space.point_texts import Space


@dataclass(frozen=True, slots=True, eq=False)
class CallSpace:
    """A call, its plans, and their prices.

    seconds   by the price that the call names
    expected  what was computed of it, by point
    """

    computation: Computation
    prepared: Prepared
    space: Space
    seconds: PlanPrices
    expected: dict[Point, ExpectedSeconds] = field(default_factory=dict)

    @property
    def priced(self) -> PricedFor:
        """Return the operands of the call, its machine and its threads."""
        return self.seconds.priced

    def price(self, point: Point) -> float:
        """Return the expected seconds of a point, infinite where it has no plan."""
        return self.prices((point,))[0].seconds

    def prices(self, points: Sequence[Point]) -> list[ExpectedSeconds]:
        """Return the expected seconds of points, all of them priced together."""
        new = [point for point in dict.fromkeys(points) if point not in self.expected]
        plans = [self.plan(point) for point in new]
        self.expected.update(zip(new, self.seconds.of(plans), strict=True))
        return [self.expected[point] for point in points]

    def plan(self, point: Point) -> Plan | None:
        """Return the plan of a point, None where there is none."""
        try:
            return self.space.plan(point)
        except ScheduleError:
            return None


def space_of(computation: Computation) -> CallSpace:
    """Return the space of statements whose sums are explicit, with the price that they name.

    Raises what the call raises.
    """
    model = model_of(computation.options.price)
    computation = computation.with_options(replace(computation.options, price=ANALYTIC))
    prepared, options = prepare_computation(computation), computation.options
    type = TensorType(prepared.kind.format, prepared.dtype.name)
    request = replace(open_goal(options, type), libraries=libraries_of(options))

    def plan(other: CallOptions) -> Plan:
        return prepare_computation(computation.with_options(other)).plan

    threads = options.threads or KERNELS.cores
    operands = {name: bound.operand for name, bound in prepared.operands.items()}
    space = Space(options, plan, planner_axes(_planned_call(prepared), request, options), threads)
    seconds = plan_prices(PricedFor(operands, request.machine, threads), model)
    return CallSpace(computation, prepared, space, seconds)


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
