"""Share a loop whose iterations add to the same elements, where the order of adding is no matter.

    y[j] = min(i, filled(A[i,j], inf))    by loops(i,j)
    → the same    by loops(i,j), parallelize(i,CPUThread,Temporary)

Each thread adds to a copy of the result, and the copies are added up. It takes many entries for
each element of the result. The least and largest of numbers, truths, and sums of integers are the
same for any number of threads; other sums would be rounded otherwise, and are left to the user.
"""

from __future__ import annotations

from dataclasses import replace

from taco_py.concrete.nodes import Race
from taco_py.concrete.terms import split_terms
from taco_py.diagnostics.errors import ScheduleError
from taco_py.legal.stored import is_full
from taco_py.legal.types import computes_exactly
from taco_py.notation.operators import Operator
from taco_py.plan.context import Context
from taco_py.plan.ir.goal import real_statistics
from taco_py.plan.ir.program import Program
from taco_py.plan.price import as_sum
from taco_py.plan.rules.base import (
    Candidate,
    Gain,
    Numbers,
    Outcome,
    Phase,
    Refusal,
    Rewrite,
    Rule,
    Site,
    kernels,
)
from taco_py.schedule.apply import loops_of
from taco_py.schedule.commands import Parallelize
from taco_py.schedule.parallel import check_shared
from taco_py.schedule.schedule import Schedule

WHY = "each thread adds to a copy of the result, and the copies are added up"
LEAST_THREADS = 2
"""Threads from which it has to pay."""


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Share the outermost loop, which is over no index of the result, with a copy for each
    thread."""
    kernel = program.kernel(site.target)
    problem, machine = kernel.problem, context.goal.machine
    terms, orders = split_terms(problem.assignment.value), kernel.schedule.orders
    if len(terms) > 1 or len(orders) != 1 or not orders[0] or not is_full(problem.result.format):
        return None
    (term,), outermost = terms, orders[0][0]
    target = problem.assignment.target
    if (
        not machine.teams
        or not target.indices
        or outermost in target.indices
        or kernel.schedule.parallel
    ):
        return None
    stats = real_statistics(problem.assignment, program.facts, machine)
    size = stats.volume(target.indices)
    if size > machine.dense_elements:
        return None
    if not _is_exact(term.operator, problem.result.dtype):
        return Refusal("for any number of threads sums are to be rounded alike")
    schedule = kernel.schedule.then(Schedule((Parallelize(outermost, Race.TEMPORARY),)))
    try:
        check_shared(loops_of(problem.assignment, schedule).graph(problem))
    except ScheduleError as error:
        return Refusal(str(error))
    entries = stats.iterations(as_sum(problem, term).body, frozenset(stats.sizes))
    before = machine.scatter_steps * entries
    after = before / LEAST_THREADS + machine.own_element_steps * size
    shared = program.with_kernel(replace(kernel, schedule=schedule))
    return Candidate(before, after, lambda: Rewrite(shared, WHY))


def _is_exact(operator: Operator, dtype: str) -> bool:
    """Whether a reduction is the same, bit by bit, in any grouping."""
    return operator.idempotent or computes_exactly(dtype)


RULE = Rule("share_scatter", Phase.KERNEL, apply, kernels, Numbers.EXACT, gain=Gain.DENSE)
