"""How much a kernel has to do, to decide whether waking other threads pays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from taco_py.concrete.terms import Term, split_terms
from taco_py.cost.machine import PARALLEL
from taco_py.notation.checks import accesses
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
    if limit == 1:
        return 1
    sizes: dict[str, int] = {}
    for access in accesses(problem.assignment):
        sizes.update(zip(access.indices, tensors[access.tensor].shape, strict=True))
    work = sum(
        (tensors[b.tensor].nnz if b.tensor else 1) * prod(sizes[i] for i in b.indices)
        for b in bounds(problem)
    )
    return limit if work >= PARALLEL else 1
