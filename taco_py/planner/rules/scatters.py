"""Kernels whose iterations add to the same elements of a dense result, and how threads share them.

    y[j] = min(i, filled(A[i,j], inf))    by loops(i,j)    iterations of i add to the same y[j]

Each thread, or each range of the loop, adds to a copy of the result; the copies are added up.
"""

from __future__ import annotations

from dataclasses import replace

from codegen.records import dataclass
from taco_py.compiler.concrete.nodes import Race
from taco_py.compiler.concrete.terms import Term, split_terms
from taco_py.compiler.schedule.apply import loops_of
from taco_py.compiler.schedule.commands import Parallelize
from taco_py.compiler.schedule.parallel import check_shared
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.legal.stored import is_full
from taco_py.language.legal.types import computes_exactly
from taco_py.planner.context import Context
from taco_py.planner.ir.goal import real_statistics
from taco_py.planner.ir.nodes import KernelStep
from taco_py.planner.ir.program import Program
from taco_py.planner.price import as_sum
from taco_py.planner.rules.base import Candidate, Outcome, Refusal, Rewrite, Site

REASON = "each thread adds to a copy of the result, and the copies are added up"
LEAST_THREADS = 2
"""Threads from which it has to pay."""


@dataclass(frozen=True, slots=True)
class Scatter:
    """A kernel of one term whose outermost loop is over no index of its dense result.

    elements  of the result
    entries   additions to it
    """

    kernel: KernelStep
    term: Term
    outermost: str
    elements: float
    entries: float

    @property
    def is_exact(self) -> bool:
        """Tell whether its reduction is bitwise equal in any grouping."""
        dtype = self.kernel.problem.result.dtype
        return self.term.operator.idempotent or computes_exactly(dtype)


def scatter_of(program: Program, site: Site, context: Context) -> Scatter | None:
    """Return the kernel as a scatter whose loops are still serial; None for other kernels."""
    kernel = program.kernel(site.target)
    problem, machine = kernel.problem, context.goal.machine
    terms, orders = split_terms(problem.assignment.value), kernel.schedule.orders
    if len(terms) > 1 or len(orders) != 1 or not orders[0] or not is_full(problem.result.format):
        return None
    (term,), outermost = terms, orders[0][0]
    indices = problem.assignment.target.indices
    if not machine.teams or not indices or outermost in indices or kernel.schedule.parallel:
        return None
    stats = real_statistics(problem.assignment, program.facts, machine)
    elements = stats.volume(indices)
    if elements > machine.copies.dense_elements:
        return None
    entries = stats.iterations(as_sum(problem, term).body, frozenset(stats.sizes))
    return Scatter(kernel, term, outermost, elements, entries)


def share_scatter(
    program: Program, scatter: Scatter, context: Context, race: Race, copies: int
) -> Outcome:
    """Share the outermost loop among threads that add to copies of the result, where legal."""
    kernel, machine = scatter.kernel, context.goal.machine
    schedule = kernel.schedule.then(Schedule((Parallelize(scatter.outermost, race),)))
    problem = kernel.problem
    try:
        check_shared(loops_of(problem.assignment, schedule).graph(problem))
    except ScheduleError as error:
        return Refusal(str(error))
    before = machine.loops.scatter_steps * scatter.entries
    after = before / LEAST_THREADS + machine.copies.own_element_steps * scatter.elements * copies
    shared = program.with_kernel(replace(kernel, schedule=schedule))
    return Candidate(before, after, lambda: Rewrite(shared, REASON))
