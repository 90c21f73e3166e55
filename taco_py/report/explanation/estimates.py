"""What a sequence of kernels is expected to cost on given operands.

    w[j] = sum(k, C[j,k] * d[k]) with reorder(j,k);  a[i] = sum(j, B[i,j] * w[j]) with reorder(i,j)
    → the loops and copies of both, and an entry of w for each row of C that stores something

The unit is a step (`cost.machine`), as for the orders that are chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from math import inf, isinf
from time import monotonic

from codegen.records import dataclass
from taco_py.compiler.asymptotic.frontier_search import Candidate, Frontier
from taco_py.compiler.asymptotic.fused import one_order, unfused
from taco_py.compiler.asymptotic.scheduled_kernels import ScheduledKernel, kernels_of
from taco_py.compiler.concrete.concretize import Order
from taco_py.compiler.concrete.nodes import Statement
from taco_py.compiler.concrete.terms import Term, split_terms, sums_outside
from taco_py.compiler.order.loop_costs import LoopCosts
from taco_py.compiler.order.orders import order_cost
from taco_py.compiler.schedule.commands import Reorder
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.compiler.ways.ways import check_recipe
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.formats import Format
from taco_py.language.notation.checks import accesses, all_indices
from taco_py.language.notation.nodes import Assignment
from taco_py.planner.context import Context
from taco_py.planner.ir.goal import Request, draft_of, statistics
from taco_py.planner.ir.nodes import Operand
from taco_py.planner.ir.program import Program
from taco_py.planner.lookahead import Lookahead
from taco_py.planner.make import Options, make_plan
from taco_py.planner.price import as_sum, keeping
from taco_py.planner.search import Search
from taco_py.planner.temporaries import described

SEARCH = 2 / 3
"""The share of a time to find schedules; what is left of it is for their estimates."""


def with_estimates(
    schedules: Frontier, operands: Mapping[str, Operand], request: Request, until: float = inf
) -> Frontier:
    """Return the frontier with the expected cost of each schedule, the cheapest first.

    A fused one runs through its loops as one kernel. Where its loops have no single order, it is
    compared to kernels in turn whose temporaries are over the loops around them too, without what
    it takes to write and read these. Commands that a call with these operands refuses are left off.

    until  the time (`monotonic`) after which those left have no estimate, and come last
    """
    runs = _Runs(schedules.assignment, operands, request)
    costs: dict[Statement, float | None] = {}
    late = 0

    def estimated(candidate: Candidate) -> Candidate:
        nonlocal late
        statement = candidate.statement
        if statement not in costs:
            if costs and monotonic() > until:
                late += 1
                return replace(candidate, runs=runs)
            cost = _cost(candidate, operands, request)
            costs[statement] = None if cost is None or isinf(cost) else cost
        return replace(candidate, estimate=costs[statement], runs=runs)

    candidates = sorted(
        map(estimated, schedules), key=lambda c: inf if c.estimate is None else c.estimate
    )
    return replace(schedules, candidates=tuple(candidates), late=late)


@dataclass(frozen=True, slots=True, eq=False)
class _Runs:
    """Whether an assignment's call takes a schedule, which is asked once for each."""

    assignment: Assignment
    operands: Mapping[str, Operand]
    request: Request
    results: dict[Schedule, bool] = field(default_factory=dict)

    def __call__(self, schedule: Schedule) -> bool:
        if schedule not in self.results:
            self.results[schedule] = self.takes(schedule)
        return self.results[schedule]

    def takes(self, schedule: Schedule) -> bool:
        options = Options(schedule=schedule)
        try:
            plan = make_plan(self.assignment, self.operands, self.request, options)
            for recipe in plan.recipes if self.request.machine.is_gpu else ():
                check_recipe(recipe)  # the units of a GPU are chosen there
        except ScheduleError:
            return False
        return True


def _cost(candidate: Candidate, operands: Mapping[str, Operand], request: Request) -> float | None:
    if candidate.kernels is not None:
        return sequence_cost(candidate.kernels, operands, request)
    order, assignment = one_order(candidate.statement), sums_outside(candidate.assignment)
    terms = split_terms(assignment.value)
    indices = set(all_indices(assignment))
    if order is not None and len(terms) == 1 and indices.issuperset(order):
        draft = draft_of(assignment, operands, request)
        stats = statistics(assignment, operands, request.machine)
        costs = LoopCosts(draft, terms[0], stats, rows=False)
        cost = costs.fused(candidate.statement, order)
        if not isinf(cost):  # as it is where a quotient's sums are around it in these loops alone
            return cost
    kernels = kernels_of(unfused(candidate.statement))
    return None if kernels is None else sequence_cost(kernels, operands, request, stored=False)


def sequence_cost(
    kernels: Sequence[ScheduledKernel],
    operands: Mapping[str, Operand],
    request: Request,
    stored: bool = True,
) -> float:
    """Return the cost of kernels that are computed in turn, with the temporaries between them.

    stored  whether the temporaries are, or no more than handed from loops to loops
    """
    *before, last = kernels
    context = Context(request, Lookahead(), Search(), statistics_of=statistics)
    result = last.assignment.target.tensor
    facts = {**operands, result: Operand(request.type, (), 0.0)}
    program = Program((), facts, (result,), _sizes(kernels, operands))
    total = 0.0
    for kernel in before:
        temporary = described(program, context, kernel.assignment)
        temporary = temporary if stored else _as_filled(temporary, kernel)
        program = program.with_facts({kernel.assignment.target.tensor: temporary})
        total += keeping(temporary, request.machine) if stored else 0.0
        total += kernel_cost(kernel, program.facts, replace(request, type=temporary.type))
    return total + kernel_cost(last, program.facts, request)


def _as_filled(temporary: Operand, kernel: ScheduledKernel) -> Operand:
    """Return a temporary that is stored as its kernel's loops come to it."""
    indices = kernel.assignment.target.indices
    form = temporary.type.format
    level = dict(zip(form.mode_order, form.levels, strict=True))
    loops = _loops(kernel)
    modes = sorted(range(form.order), key=lambda mode: loops.index(indices[mode]))
    stored = Format(tuple(level[mode] for mode in modes), tuple(modes))
    return replace(temporary, type=replace(temporary.type, format=stored))


def kernel_cost(
    kernel: ScheduledKernel, operands: Mapping[str, Operand], request: Request
) -> float:
    """Return the cost of one kernel in its loop order, copies included."""
    stats = statistics(kernel.assignment, operands, request.machine)
    problem = draft_of(kernel.assignment, operands, request)
    return sum(
        order_cost(problem, as_sum(problem, term), stats, _order(kernel, term))
        for term in split_terms(kernel.assignment.value)
    )


def _order(kernel: ScheduledKernel, term: Term) -> Order:
    """Return the kernel's loop order as far as it concerns one term."""
    used = {*kernel.assignment.target.indices, *(i for a in accesses(term.body) for i in a.indices)}
    return tuple(i for i in _loops(kernel) if i in used)


def _loops(kernel: ScheduledKernel) -> Order:
    """Return the loops of a kernel, the outermost first."""
    reordered = [i for c in kernel.schedule.commands if isinstance(c, Reorder) for i in c.indices]
    return tuple(dict.fromkeys((*reordered, *all_indices(kernel.assignment))))


def _sizes(kernels: Sequence[ScheduledKernel], operands: Mapping[str, Operand]) -> dict[str, float]:
    """Return the size of each index of the given operands."""
    return {
        index: float(size)
        for kernel in kernels
        for access in accesses(kernel.assignment.value)
        if access.tensor in operands
        for index, size in zip(access.indices, operands[access.tensor].shape, strict=True)
    }
