"""What a sequence of kernels is expected to cost on given operands.

    w[j] = sum(k, C[j,k] * d[k]) with reorder(j,k);  a[i] = sum(j, B[i,j] * w[j]) with reorder(i,j)
    → the loops and copies of both, and an entry of w for each row of C that stores something

The unit is one innermost scalar operation, as for the orders that are chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from codegen.names import Names
from taco_py.autoschedule.frontier import Candidate, Frontier
from taco_py.autoschedule.kernels import ScheduledKernel
from taco_py.autoschedule.orders import order_cost
from taco_py.concrete.concretize import Order
from taco_py.concrete.terms import Term, split_terms
from taco_py.cost.machine import TEMPORARY
from taco_py.notation.checks import accesses
from taco_py.plan.nodes import Operand
from taco_py.plan.request import Request, draft_of, statistics
from taco_py.plan.splitter import Splitter
from taco_py.schedule.commands import Reorder


def with_estimates(found: Frontier, operands: Mapping[str, Operand], request: Request) -> Frontier:
    """The frontier with what each of its sequences of kernels is expected to cost."""
    known: dict[tuple[ScheduledKernel, ...], float] = {}

    def estimated(candidate: Candidate) -> Candidate:
        kernels = candidate.kernels
        if kernels is None:
            return candidate
        if kernels not in known:
            known[kernels] = sequence_cost(kernels, operands, request)
        return replace(candidate, estimate=known[kernels])

    return replace(found, candidates=tuple(map(estimated, found)))


def sequence_cost(
    kernels: Sequence[ScheduledKernel], operands: Mapping[str, Operand], request: Request
) -> float:
    """What kernels cost that are computed in turn, with the temporaries between them."""
    sizes = _sizes(kernels, operands)
    splitter = Splitter(dict(operands), request, Names(()), sizes, [], [])
    cost = 0.0
    for kernel in kernels[:-1]:
        made = splitter.described(kernel.assignment)
        splitter.operands[kernel.assignment.target.tensor] = made
        cost += TEMPORARY * made.nnz
        cost += kernel_cost(kernel, splitter.operands, replace(request, type=made.type))
    return cost + kernel_cost(kernels[-1], splitter.operands, request)


def kernel_cost(
    kernel: ScheduledKernel, operands: Mapping[str, Operand], request: Request
) -> float:
    """What one kernel costs in its loop order, copies included."""
    stats = statistics(kernel.assignment, operands)
    problem = draft_of(kernel.assignment, operands, request)
    return sum(
        order_cost(problem, term, stats, _order(kernel, term))
        for term in split_terms(kernel.assignment.value)
    )


def _order(kernel: ScheduledKernel, term: Term) -> Order:
    """The kernel's loop order as far as it concerns one term."""
    used = {*kernel.assignment.target.indices, *(i for a in accesses(term.body) for i in a.indices)}
    named = [i for c in kernel.schedule.commands if isinstance(c, Reorder) for i in c.indices]
    rest = [i for i in used if i not in named]
    return tuple(i for i in (*named, *rest) if i in used)


def _sizes(kernels: Sequence[ScheduledKernel], operands: Mapping[str, Operand]) -> dict[str, float]:
    """The size of each index, of those that given operands have."""
    return {
        index: float(size)
        for kernel in kernels
        for access in accesses(kernel.assignment.value)
        if access.tensor in operands
        for index, size in zip(access.indices, operands[access.tensor].shape, strict=True)
    }
