"""A planned nest as loop IR: ISL's loops, then unrolled and jammed."""

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
"""The most vector loops of a program with separate full tiles: passes generate several of each, and
a C compiler takes a tenth of a second for each."""
MOST_JAMMED = 24
"""The most vector loops of other programs: bounds that depend on a jammed loop, as in triangles,
are compared at run time, and the loops that follow are generated twice."""


def program_loops(
    nest: Nest,
    plan: ProgramPlan,
    bodies: Mapping[str, Body],
    parameters: Mapping[str, Expr],
    reserved: Iterable[str] = (),
    budget: int = BUDGET,
) -> Block:
    """Return loops that run `nest` by `plan`, with names other than `reserved`.

    The bodies of products run all of their instances.

    Raises BudgetExceededError, and LargeCodeError where there are too many vector loops and a
    smaller plan exists.
    """
    nest = without_loops(nest, (product.statement for product in plan.products))
    loops = to_loops(nest, plan.schedule, bodies, parameters, budget, reserved)
    names = Names({*reserved, *used_names(loops)})
    code = hoist_sums(unroll_and_jam(loops, names), names)
    count = sum(loop.is_vector for loop in find(code, For))
    is_separated = plan.simpler is not None
    most, what = (MOST_LOOPS, "loops of their own") if is_separated else (MOST_JAMMED, "they")
    if count > most and plan.smaller("") is not None:
        raise LargeCodeError(f"{what} made {count} vector loops, {most} at most")
    return code
