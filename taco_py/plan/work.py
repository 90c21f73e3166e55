"""How much a kernel has to do, to decide whether waking other threads pays."""

from __future__ import annotations

from collections.abc import Mapping

from taco_py.concrete.terms import split_terms
from taco_py.cost.estimate import Pattern, Statistics
from taco_py.notation.checks import accesses
from taco_py.problem import Problem
from taco_py.storage.tensor_data import TensorData

PARALLEL = 10_000.0
"""Expected innermost iterations, of about a nanosecond each, from which threads are worth waking:
a parallel region costs 1 µs when the last one ended less than 3 ms ago, and 25 µs later on."""


def iterations(problem: Problem, tensors: Mapping[str, TensorData]) -> float:
    """The expected number of innermost iterations, over all terms."""
    sizes: dict[str, float] = {}
    for access in accesses(problem.assignment):
        sizes.update(zip(access.indices, map(float, tensors[access.tensor].shape), strict=True))
    patterns = {
        name: Pattern(float(tensors[name].nnz), tensors[name].format)
        for name, _ in problem.operands
    }
    statistics = Statistics(sizes, patterns)
    return sum(
        statistics.iterations(
            term.body, frozenset(i for access in accesses(term.body) for i in access.indices)
        )
        for term in split_terms(problem.assignment.value)
    )


def useful_threads(problem: Problem, tensors: Mapping[str, TensorData], limit: int) -> int:
    """`limit`, or 1 where the work is too little to share."""
    return limit if limit > 1 and iterations(problem, tensors) >= PARALLEL else 1
