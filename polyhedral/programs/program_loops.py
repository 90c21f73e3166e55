"""A planned nest as loop IR: scanned by ISL, then unrolled and jammed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from codegen.ir import Block, Expr, For
from codegen.names import Names
from codegen.tree import find
from polyhedral.errors import LargeCodeError
from polyhedral.isl.limits import BUDGET
from polyhedral.model import Nest
from polyhedral.nests.jam_plan import unroll_and_jam
from polyhedral.nests.lane_sums import hoist_sums, used_names
from polyhedral.nests.to_loops import Body, to_loops
from polyhedral.programs.program_calls import without_loops
from polyhedral.programs.program_plan import ProgramPlan

MOST_LOOPS = 12
"""Vector loops of a program whose full tiles run apart, at most: passes make several of each, and a
C compiler takes a tenth of a second for every one of those."""
MOST_JAMMED = 24
"""The same where they do not: bounds that depend on a jammed loop, as in triangles, are compared
when they are reached, and the loops that follow are there twice."""


def program_loops(
    nest: Nest,
    plan: ProgramPlan,
    bodies: Mapping[str, Body],
    parameters: Mapping[str, Expr],
    taken: Iterable[str] = (),
    budget: int = BUDGET,
) -> Block:
    """Return loops that run `nest` as `plan` says; their names differ from those that are `taken`.
    The bodies of its products run all of their instances.

    Raises BudgetExceededError, and LargeCodeError where there are more loops for vectors than that,
    and a smaller plan.
    """
    nest = without_loops(nest, (product.statement for product in plan.products))
    loops = to_loops(nest, plan.schedule, bodies, parameters, budget, taken)
    names = Names({*taken, *used_names(loops)})
    made = hoist_sums(unroll_and_jam(loops, names), names)
    count = sum(loop.is_vector for loop in find(made, For))
    apart = plan.simpler is not None
    most, what = (MOST_LOOPS, "loops of their own") if apart else (MOST_JAMMED, "they")
    if count > most and plan.smaller("") is not None:
        raise LargeCodeError(f"{what} made {count} vector loops, {most} at most")
    return made
