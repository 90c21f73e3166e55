"""A contraction of two dense tensors in the form for estimates of its time."""

from __future__ import annotations

import numpy as np

from taco_py.compiler.cost.estimate import Statistics
from taco_py.compiler.ways.contraction_match import factors_of
from taco_py.compiler.ways.dense_seconds import DenseProduct
from taco_py.language.problem import Problem


def dense_product(problem: Problem, stats: Statistics) -> DenseProduct | None:
    """Return the contraction of a problem for estimates.

    None where an operand's innermost elements are not contiguous, or an operand is a scalar.
    """
    factors = factors_of(problem)
    if factors is None or not all(problem.type_of(f.tensor).unit_stride for f in factors):
        return None
    left, right = map(problem.stored, factors)
    result = problem.stored(problem.assignment.target)
    if not left or not right:
        return None
    itemsize = np.dtype(problem.result.dtype).itemsize
    return DenseProduct(result, left, right, stats.sizes, itemsize, stats.machine)
