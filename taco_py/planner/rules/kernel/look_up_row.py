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
    """Precompute the rows of operands that loops would merge repeatedly."""
    kernel = program.kernel(site.target)
    if not kernel.may_merge or not context.goal.machine.teams:
        return None
    stats = real_statistics(kernel.problem.assignment, program.facts, context.goal.machine)
    schedule, reason = looked_up_rows(kernel.problem, kernel.schedule.orders, stats)
    if not schedule.commands:
        return None
    kernel = replace(kernel, schedule=kernel.schedule.then(schedule), looked_up=reason)
    return Rewrite(program.with_kernel(kernel), reason)


def looked_up_rows(
    problem: Problem, orders: tuple[Order, ...], stats: Statistics
) -> tuple[Schedule, str]:
    """Return the `precompute(…)` of operands' rows in a kernel, usually none, and the reasons."""
    names = Names((*all_indices(problem.assignment), *operand_names(problem.assignment)))
    schedule, notes = OPEN, []
    for lookup, index, note in _lookups(problem, orders, stats):
        name = names.fresh(f"{lookup.access.tensor}_row")
        before = schedule
        schedule = _with(
            before, Precompute(lookup.access, (index,), (index,), name), problem, orders
        )
        if schedule is not before:
            notes.append(note)
    return schedule, "\n".join(notes)


def _lookups(
    problem: Problem, orders: tuple[Order, ...], stats: Statistics
) -> Iterator[tuple[Lookup, str, str]]:
    """Yield the operands that are better looked up, with the index and the reason."""
    for term, order in zip(split_terms(problem.assignment.value), orders, strict=True):
        costs = LoopCosts(problem, term, stats)
        for meeting in costs.meetings(order):
            if meeting.lookup is not None:
                index = costs.steps.indices[meeting.lookup.row]
                note = (
                    f"{to_text(meeting.lookup.access)} where others are walked along {index}: "
                    f"about {meeting.cost:.2g} operations, "
                    f"{meeting.merged:.2g} where they are merged"
                )
                yield meeting.lookup, index, note


def _with(
    schedule: Schedule, command: Precompute, problem: Problem, orders: tuple[Order, ...]
) -> Schedule:
    """Return the schedule with one more looked-up operand, where its rows can be looked up."""
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
