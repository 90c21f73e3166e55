"""Look rows of operands up in a workspace where a kernel would merge them again and again.

    s = sum(i, j, k, A[i,j] * A[j,k] * A[i,k])    by loops(i,j,k)
    → the same    by loops(i,j,k), precompute(A(i,k),k,k,A_row)

Row i of A is scattered into the workspace once, and read there at each k of the rows j.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from codegen.names import Names
from taco_py.compiler.concrete.concretize import Order
from taco_py.compiler.concrete.terms import split_terms
from taco_py.compiler.concrete.tree import workspaces_of
from taco_py.compiler.cost.estimate import Statistics
from taco_py.compiler.order.lookups import Lookup
from taco_py.compiler.order.loop_costs import LoopCosts
from taco_py.compiler.schedule.apply import apply_all
from taco_py.compiler.schedule.commands import Precompute
from taco_py.compiler.schedule.legality import check
from taco_py.compiler.schedule.loop_state import Loops
from taco_py.compiler.schedule.schedule import OPEN, Schedule
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.notation.checks import all_indices, operand_names
from taco_py.language.notation.printer import to_text
from taco_py.language.problem import Problem
from taco_py.planner.context import Context
from taco_py.planner.ir.goal import real_statistics
from taco_py.planner.ir.program import Program
from taco_py.planner.rules.base import Outcome, Phase, Rewrite, Rule, Site, Trait, kernels


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Precompute the rows of operands that loops would merge again and again."""
    kernel = program.kernel(site.target)
    if not kernel.may_merge or not context.goal.machine.teams:
        return None
    stats = real_statistics(kernel.problem.assignment, program.facts, context.goal.machine)
    schedule, why = looked_up_rows(kernel.problem, kernel.schedule.orders, stats)
    if not schedule.commands:
        return None
    kernel = replace(kernel, schedule=kernel.schedule.then(schedule), looked_up=why)
    return Rewrite(program.with_kernel(kernel), why)


def looked_up_rows(
    problem: Problem, orders: tuple[Order, ...], stats: Statistics
) -> tuple[Schedule, str]:
    """Return the `precompute(…)` of operands' rows in a kernel, most often none, and why."""
    names = Names((*all_indices(problem.assignment), *operand_names(problem.assignment)))
    found, why = OPEN, []
    for lookup, index, told in _lookups(problem, orders, stats):
        name = names.fresh(f"{lookup.access.tensor}_row")
        before = found
        found = _with(before, Precompute(lookup.access, (index,), (index,), name), problem, orders)
        if found is not before:
            why.append(told)
    return found, "\n".join(why)


def _lookups(
    problem: Problem, orders: tuple[Order, ...], stats: Statistics
) -> Iterator[tuple[Lookup, str, str]]:
    """What is better looked up in the loops of each term, along which index, and why."""
    for term, order in zip(split_terms(problem.assignment.value), orders, strict=True):
        costs = LoopCosts(problem, term, stats)
        for met in costs.meetings(order):
            if met.lookup is not None:
                index = costs.steps.indices[met.lookup.row]
                told = (
                    f"{to_text(met.lookup.access)} where others are walked along {index}: about "
                    f"{met.cost:.2g} operations, {met.merged:.2g} where they are merged"
                )
                yield met.lookup, index, told


def _with(
    schedule: Schedule, command: Precompute, problem: Problem, orders: tuple[Order, ...]
) -> Schedule:
    """With one operand more, where its rows can be looked up."""
    more = schedule.then(Schedule((command,)))
    try:
        loops = apply_all(Loops(problem.assignment, orders), more)
        check(loops, problem)
    except ScheduleError:
        return schedule
    workspaces = workspaces_of(loops.statement(problem))
    marked = {w.name for w in workspaces if w.is_marked}
    return more if command.workspace in marked else schedule


RULE = Rule("look_up_row", Phase.KERNEL, apply, kernels, traits=Trait.WALKS)
