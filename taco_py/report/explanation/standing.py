"""Where the chosen kernels stand among all schedules of an assignment.

The kernels that splitting and the search for orders lead to are one statement, temporaries first:

    where( forall i forall j a[i] += B[i,j] * w[j],  forall j forall k w[j] += C[j,k] * d[k] )

Its cost, with the protocols that make it least, is compared with those on the frontier.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from time import monotonic

from codegen.records import dataclass
from taco_py.compiler.asymptotic.domination import Costs, Union, assumptions
from taco_py.compiler.asymptotic.frontier_search import Cost, Frontier, frontier
from taco_py.compiler.asymptotic.fused import fused_inside
from taco_py.compiler.asymptotic.protocols import Directed, choices
from taco_py.compiler.asymptotic.query_size import query_size
from taco_py.compiler.asymptotic.tasks import Recorder, Scope
from taco_py.compiler.concrete.concretize import Order, concretize, shared_prefix
from taco_py.compiler.concrete.nodes import (
    Assign,
    Forall,
    Statement,
    Where,
    Workspace,
    WorkspaceKind,
    forall,
)
from taco_py.compiler.concrete.nodes import (
    Sequence as LoopSequence,
)
from taco_py.compiler.concrete.printer import to_text
from taco_py.compiler.concrete.terms import Term, reductions, split_terms
from taco_py.compiler.concrete.tree import foralls
from taco_py.compiler.cost.estimate import Statistics
from taco_py.compiler.order.orders import order_cost
from taco_py.language.notation.checks import accesses, all_indices
from taco_py.language.notation.nodes import Access, Assignment, Reduce
from taco_py.language.notation.operators import ADD, SUB
from taco_py.language.notation.tree import walk
from taco_py.language.problem import Problem, TensorType
from taco_py.planner.algebra.normalize import normal_form
from taco_py.planner.ir.goal import Request, draft_of, statistics
from taco_py.planner.ir.nodes import Operand
from taco_py.planner.ir.plan import Plan
from taco_py.planner.ir.program import Program, Selection
from taco_py.planner.price import keeping, term_cost
from taco_py.report.explanation.estimates import SEARCH, with_estimates


@dataclass(frozen=True, slots=True)
class Nests:
    """What was chosen: all kernels as one statement, and what they are expected to cost.

    temporaries  between kernels, as far as they store coordinates
    """

    statement: Statement
    temporaries: tuple[Access, ...]
    estimate: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """The cost of the chosen kernels, and one that is strictly below it; None where none is.

    share  how much of the work of the chosen kernels the one below is expected to be
    """

    cost: Cost
    below: Cost | None
    share: float = 1.0


def chosen_nests(selection: Selection, request: Request) -> Nests | None:
    """Return the kernels of a plan as one statement; None where one runs over other indices than
    its text: over modes that were fused, or over values alone."""
    program, loops = selection.program, selection.loops
    parts = (*program.temporaries, program.define(program.result))
    if any(loops.get(part.target) is None for part in parts):
        return None
    kernels = [
        _Kernel(program, part.assignment, loops[part.target] or (), request) for part in parts
    ]
    *inner, nest = (kernel.nest() for kernel in kernels)
    estimate = sum(kernel.cost() for kernel in kernels)
    for part, statement in zip(reversed(program.temporaries), reversed(inner), strict=True):
        facts = program.facts[part.target]
        target = part.assignment.target
        kind = _kind(facts.type)
        workspace = Workspace(target.tensor, target.indices, kind, facts.type.dtype)
        nest = Where(workspace, nest, statement)
        if part.target in selection.fused:
            nest = fused_inside(nest)
        else:
            estimate += keeping(facts, request.machine)
    targets = [part.assignment.target for part in program.temporaries]
    walked = tuple(t for t in targets if not program.facts[t.tensor].type.format.is_dense)
    return Nests(nest, walked, estimate)


def _kind(type: TensorType) -> WorkspaceKind:
    """Return the workspace that a temporary is like."""
    if type.format.order == 0:
        return WorkspaceKind.SCALAR
    return WorkspaceKind.DENSE if type.format.is_dense else WorkspaceKind.HASH


@dataclass(frozen=True, slots=True)
class _Kernel:
    """One assignment of a program, with the loop order of each of its terms."""

    program: Program
    assignment: Assignment
    orders: tuple[Order, ...]
    request: Request

    @property
    def problem(self) -> Problem:
        """Return the assignment over the types of its operands."""
        type = self.program.facts[self.assignment.target.tensor].type
        return draft_of(self.assignment, self.program.facts, replace(self.request, type=type))

    def cost(self) -> float:
        """Return the expected cost of the loops."""
        problem, machine = self.problem, self.request.machine
        stats = statistics(self.assignment, self.program.facts, machine)
        terms = split_terms(self.assignment.value)
        if any(map(_any_sum, terms)):
            return sum(term_cost(problem, term, stats, self.request.effort) for term in terms)
        pairs = zip(terms, self.orders, strict=True)
        return sum(order_cost(problem, term, stats, order) for term, order in pairs)

    def nest(self) -> Statement:
        """Return the loops: terms share the loops with which all begin, and have nests of their own
        inside them."""
        terms, orders, target = (
            split_terms(self.assignment.value),
            self.orders,
            self.assignment.target,
        )
        if any(map(_any_sum, terms)):
            return concretize(self.problem, orders)
        shared = shared_prefix(self.problem, terms, orders) if len(terms) > 1 else ()
        if set(orders) == {shared}:
            return forall(shared, Assign(target, self.assignment.value))
        nests = tuple(
            forall(order[len(shared) :], Assign(target, term.body, SUB if term.negative else ADD))
            for term, order in zip(terms, orders, strict=True)
        )
        return nests[0] if len(nests) == 1 else forall(shared, LoopSequence(nests))


def _any_sum(term: Term) -> bool:
    """Tell whether a term has a sum inside it."""
    return any(True for _ in reductions(term.body))


def _in_turn(statement: Statement) -> bool:
    """Tell whether there are loops one after another that add up one result: no frontier has
    such."""
    match statement:
        case Forall(_, body):
            return _in_turn(body)
        case Where(_, consumer, producer):
            return _in_turn(consumer) or _in_turn(producer)
        case _:
            return isinstance(statement, LoopSequence)


def verdict(
    nests: Nests,
    assignment: Assignment,
    operands: Mapping[str, Operand],
    schedules: Frontier,
    scope: Scope = Scope.ALL,
    budget: float = inf,
) -> Verdict | None:
    """Return how the chosen kernels compare with the frontier; None where there was no time to
    tell.

    budget  seconds after which no more ways to meet operands are looked for
    """
    end = monotonic() + budget
    read = tuple(dict.fromkeys(accesses(assignment)))
    sparse = tuple(a for a in read if not operands[a.tensor].type.format.is_dense)
    costs = Costs(assumptions(sparse, (assignment.target, *read)))
    least_found = [(cost, costs.union(cost.queries)) for cost in schedules.costs]
    least = _least(costs, nests, sparse, scope, end)
    if not least:
        return None
    verdicts = [(union, _below(costs, union, least_found)) for union in least]
    stats = statistics(assignment, operands)

    def work_of(standing: tuple[Union, Cost | None]) -> float:
        return work(stats, Cost(costs.readable(standing[0])), sparse)

    union, below = next((v for v in verdicts if v[1] is None), min(verdicts, key=work_of))
    cost = Cost(costs.readable(union))
    if below is None:
        return Verdict(cost, None)
    return Verdict(cost, below, work(stats, below, sparse) / work(stats, cost, sparse))


def work(stats: Statistics, cost: Cost, sparse: Iterable[Access]) -> float:
    """Return the expected tasks of a cost for evenly spread entries, with the reading of sparse
    operands."""
    reading = sum(stats.patterns[access.tensor].nnz for access in sparse)
    return reading + sum(query_size(stats, query) for query in cost.queries)


def report(
    assignment: Assignment,
    operands: Mapping[str, Operand],
    request: Request,
    plan: Plan,
    budget: float,
) -> str:
    """Return the schedules of an assignment with estimates, and the rank of its plan's kernels.

    Each of the two takes half of the `budget`, in seconds. Where the model of costs does not cover
    the kernels, the text says why."""
    every = (assignment.target, *accesses(assignment))
    twice = [a.tensor for a in every if len(set(a.indices)) < len(a.indices)]
    if twice:
        return f"schedules not compared: {twice[0]} has an index twice, take the diagonal first"
    if any(isinstance(e, Reduce) and not e.operator.additive for e, _ in walk(assignment.value)):
        return "schedules not compared: they are those of sums, and this reduces by other operators"
    assignment = normal_form(assignment, operands)
    formats = {name: operand.type.format for name, operand in operands.items()}
    half = budget / 2
    until = monotonic() + half
    schedules = frontier(assignment, formats, budget=half * SEARCH, dtype=request.type.dtype)
    estimates = with_estimates(schedules, operands, request, until)
    nests = None
    if plan.selection is not None:
        program = plan.selection.program.with_facts(operands)
        nests = chosen_nests(replace(plan.selection, program=program), request)
    if nests is None:
        reason = "its kernels run over other indices than the text: modes fused, or values alone"
        return f"{estimates.explain()}\nchosen: not compared, for {reason}"
    indices = {loop.index for loop in foralls(nests.statement)}
    foreign = indices - set(all_indices(assignment))
    if foreign:
        reason = f"not compared, for the text has no loops over {', '.join(sorted(foreign))}"
        return f"{estimates.explain()}\nchosen, estimated {nests.estimate:.3g}: {reason}"
    standing = verdict(nests, assignment, operands, estimates, budget=half)
    return "\n".join((estimates.explain(), *_standing(standing, nests, schedules.complete)))


def _standing(standing: Verdict | None, nests: Nests, complete: bool) -> Iterator[str]:
    cost = "the budget ended before its cost was known" if standing is None else standing.cost
    yield f"chosen, estimated {nests.estimate:.3g}: {cost}"
    yield from ("    " + line for line in to_text(nests.statement).splitlines())
    if _in_turn(nests.statement):
        yield "    a loop nest for each term, which none of those above has"
    if standing is None:
        return
    if standing.below is None:
        every = "none" if complete else "none of those looked at"
        yield f"    {every} is asymptotically better"
    else:
        yield f"    asymptotically better, here {standing.share:.2f} of the work: {standing.below}"


def _below(costs: Costs, union: Union, frontier: Iterable[tuple[Cost, Union]]) -> Cost | None:
    return next((cost for cost, low in frontier if costs.strictly_below(low, union)), None)


def _least(
    costs: Costs, nests: Nests, sparse: Sequence[Access], scope: Scope, end: float
) -> tuple[Union, ...]:
    """Return the least costs of a statement over all choices of protocols, until the time `end`.

    Protocols are chosen for one access after the other; with those left open known and free, a cost
    that is no less than one found already has nothing less below it.
    """
    recorder = Recorder(scope)
    least: list[Union] = []

    def decide(steps: Mapping[Access, frozenset[str]], open_: tuple[Access, ...]) -> None:
        if monotonic() > end:
            return
        directed = Directed(nests.statement, steps)
        union = costs.union(recorder.queries(directed, frozenset(open_)))
        if any(costs.below(low, union) for low in least):
            return
        if not open_:
            least[:] = [*(old for old in least if not costs.below(union, old)), union]
            return
        access, *rest = open_
        for protocols in choices(access):
            decide({**steps, access: protocols}, tuple(rest))

    decide({}, (*sparse, *nests.temporaries))
    return tuple(least)
