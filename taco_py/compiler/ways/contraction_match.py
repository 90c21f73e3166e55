"""A product of two dense tensors → a contraction of `polyhedral`.

C[i,j] = sum(k, A[i,k] * B[k,j])   →   S: C[i, j] +=; A[i, k]; B[k, j]
                                       for i in 0..n_i, j in 0..n_j, k in 0..n_k
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING

from taco_py.compiler.concrete.terms import split_terms
from taco_py.compiler.cost.estimate import Statistics
from taco_py.compiler.ways.arrays import size_name
from taco_py.compiler.ways.way import Question
from taco_py.language.legal.stored import all_full
from taco_py.language.legal.types import has_matrix_kernels, is_real
from taco_py.language.notation.checks import all_indices
from taco_py.language.notation.nodes import Access, Call
from taco_py.language.notation.operators import MUL
from taco_py.language.problem import Problem

if TYPE_CHECKING:
    from polyhedral import model
    from polyhedral.products.contraction import Contraction


def product_of(question: Question) -> Contraction | None:
    """Return the problem as a contraction of floats or complex numbers."""
    return contraction_of(question.problem, has_matrix_kernels)


def contraction_of(
    problem: Problem, has_kernels: Callable[[str], bool] = is_real
) -> Contraction | None:
    """Return the problem as a contraction of two dense tensors of one type, else None.

    The elements are stored in that type.

    has_kernels  whether matrices of a type are multiplied; register tiles multiply real ones
    """
    factors = factors_of(problem)
    if factors is None:
        return None
    types = [problem.result, *(problem.type_of(access.tensor) for access in factors)]
    supported = all(has_kernels(t.dtype) and not t.stored for t in types)
    if not supported or len({t.dtype for t in types}) > 1 or not all_full(types):
        return None
    from polyhedral.products.contraction import contraction

    return contraction(_statement(problem, factors))


def factors_of(problem: Problem) -> tuple[Access, Access] | None:
    """Return the two factors of a sum of products; None for anything else."""
    (term, *more) = split_terms(problem.assignment.value)
    if more or term.negative or not term.operator.additive:
        return None
    match term.body:
        case Call(operator, (Access() as left, Access() as right)) if operator == MUL:
            return left, right
    return None


def ordered(problem: Problem, product: Contraction) -> tuple[Access, Access]:
    """Return the factors as left and right."""
    factors = factors_of(problem)
    assert factors is not None  # contraction_of asked
    one, other = factors
    is_left = product.left == product.statement.accesses[1]
    return (one, other) if is_left else (other, one)


def _statement(problem: Problem, factors: tuple[Access, Access]) -> model.Statement:
    from polyhedral import model
    from polyhedral.affine import affine, variable

    indices = all_indices(problem.assignment)
    loops = tuple(model.Loop(i, (affine(0),), (variable(size_name(i)),)) for i in indices)
    accesses = (
        _access(problem, problem.assignment.target, model.Mode.UPDATE),
        *(_access(problem, factor, model.Mode.READ) for factor in factors),
    )
    return model.Statement("S", loops, accesses, (0,) * (len(loops) + 1))


def _access(problem: Problem, access: Access, mode: model.Mode) -> model.Access:
    """Return an access with subscripts in storage order, the last one contiguous."""
    from polyhedral import model
    from polyhedral.affine import variable

    order = problem.type_of(access.tensor).format.mode_order
    subscripts = tuple(variable(access.indices[m]) for m in order)
    return model.Access(access.tensor, subscripts, mode, "+" if mode is model.Mode.UPDATE else None)


def matrix(product: Contraction, stats: Statistics) -> tuple[float, float, float]:
    """Return the numbers of rows, columns and depth."""
    rows, columns, depth = (
        prod((stats.sizes[loop] for loop in loops), start=1.0)
        for loops in (product.rows, product.columns, product.depth)
    )
    return rows, columns, depth


def reuse(product: Contraction, stats: Statistics) -> float:
    """Return the number of products for each element of the operands and the result."""
    rows, columns, depth = matrix(product, stats)
    return rows * columns * depth / (rows * depth + depth * columns + rows * columns)


def products_at_most(product: Contraction, stats: Statistics) -> float:
    """Return the most products of elements in problems of this size class.

    Sizes of a class have the same numbers of bits. Problems of one class share plans, so decisions
    must not differ among them.
    """
    loops = (*product.batch, *product.rows, *product.columns, *product.depth)
    return prod((2.0 ** int(stats.sizes[loop]).bit_length() - 1 for loop in loops), start=1.0)
