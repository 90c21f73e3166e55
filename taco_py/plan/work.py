"""How much a kernel has to do, to decide whether waking other threads pays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from taco_py.concrete.terms import Term, split_terms
from taco_py.cost.machine import PARALLEL
from taco_py.notation.checks import accesses
from taco_py.plan.nodes import Compute
from taco_py.problem import Problem
from taco_py.storage.tensor_data import TensorData


@dataclass(frozen=True, slots=True)
class Bound:
    """At most as many iterations as `tensor` has entries ("": one) times the sizes of `indices`."""

    tensor: str
    indices: tuple[str, ...]


def bounds(problem: Problem) -> tuple[Bound, ...]:
    """One a term, by its sparse operand of most indices.

    y[i] = A[i,j] * X[j,k] with A sparse  ->  entries of A * size of k
    """
    return tuple(_bound(problem, term) for term in split_terms(problem.assignment.value))


def _bound(problem: Problem, term: Term) -> Bound:
    found = list(accesses(term.body))
    every = dict.fromkeys(index for access in found for index in access.indices)
    sparse = [a for a in found if not problem.type_of(a.tensor).format.is_dense]
    if not sparse:
        return Bound("", tuple(every))
    most = max(sparse, key=lambda access: len(access.indices))
    return Bound(most.tensor, tuple(i for i in every if i not in most.indices))


def useful_threads(problem: Problem, tensors: Mapping[str, TensorData], limit: int) -> int:
    """`limit`, or 1 where the work is too little to share."""
    return limit if limit == 1 or work_of(problem, tensors) >= PARALLEL else 1


def work_of(problem: Problem, tensors: Mapping[str, TensorData]) -> int:
    """At most how many innermost iterations there are."""
    sizes: dict[str, int] = {}
    for access in accesses(problem.assignment):
        sizes.update(zip(access.indices, tensors[access.tensor].shape, strict=True))
    return sum(
        (tensors[b.tensor].nnz if b.tensor else 1) * prod(sizes[i] for i in b.indices)
        for b in bounds(problem)
    )


def told_threads(step: Compute, tensors: Mapping[str, TensorData] | None, limit: int) -> str:
    """How many threads run a kernel with a loop to share, and why, for explain().

    tensors  what is known of its operands, by their names in the plan; None for nothing
    limit    the most that the call may use
    """
    if limit == 1:
        return "1, for no more may be used: threads=, set_threads() and the process's cores say so"
    known = {n: tensors.get(step.source(n)) for n, _ in step.problem.operands} if tensors else {}
    found = {name: data for name, data in known.items() if data is not None}
    if not known or len(found) < len(known):
        return f"{limit}, and 1 where there are less than {PARALLEL} iterations to share"
    work = work_of(step.problem, found)
    if work < PARALLEL:
        return f"1, for {work} iterations are less than the {PARALLEL} that others are woken for"
    return f"{limit}, for there are up to {work} iterations to share{_idle(step, found, limit)}"


def _idle(step: Compute, tensors: Mapping[str, TensorData], limit: int) -> str:
    """That threads are left without work, where the outermost loop is shared as it is."""
    outermost = step.orders[0][:1]
    if len(step.orders) > 1 or step.schedule.parallel or step.schedule.shapes:
        return ""
    rows = (tensors[name].shape[mode] for i, name, mode in step.sizes if i in outermost)
    return "".join(
        f"; but {outermost[0]} has {n}, and {limit - n} of them nothing to do"
        for n in rows
        if n < limit
    )
