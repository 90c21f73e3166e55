"""Split dense products off, so that register tiles make them.

    R[i,k] = g[k] - 2 * sum(j, (P[i,j] + Q[i,j]) * S[j,k])
    → T[i,j] = P[i,j] + Q[i,j]
      T_1[i,k] = sum(j, T[i,j] * S[j,k])
      R[i,k] = g[k] - 2 * T_1[i,k]

Register tiles compute a sum of products of two tensors of one type, and nothing else. In loops each
factor would be computed as often as the product has rows or columns, and what is added to the sum
would keep its elements out of registers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf

import numpy as np

from codegen.records import dataclass
from taco_py.compiler.concrete.terms import reductions, split_terms, summed
from taco_py.compiler.ways.ways import worth_own_kernel
from taco_py.language.formats import dense
from taco_py.language.legal.stored import is_sparse
from taco_py.language.legal.types import has_matrix_kernels
from taco_py.language.notation.checks import accesses, free_indices
from taco_py.language.notation.dtypes import DType, expression_dtype
from taco_py.language.notation.nodes import Access, Assignment, Expr, Reduce
from taco_py.language.notation.operators import MUL
from taco_py.language.notation.tree import exchange
from taco_py.planner.algebra.products import Product, as_product, typed_first
from taco_py.planner.context import Context
from taco_py.planner.ir.goal import draft_of
from taco_py.planner.ir.program import Program
from taco_py.planner.rules.base import (
    Candidate,
    Gain,
    Numbers,
    Outcome,
    Phase,
    Rewrite,
    Rule,
    Site,
    Trait,
    assignments,
)
from taco_py.planner.temporaries import described, with_temporary

FACTOR = "a factor of a dense product, computed once for all its rows or columns"
PRODUCT = "a dense product by itself, in register tiles"


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Split off the dense products of one assignment where register tiles then take less time."""
    part = program.only(site.target)
    after, before = context.costs.ways(part, part.last, context)
    if after == inf:
        return None
    split = with_dense_products_split(part, context)
    return Candidate(before, after, lambda: Rewrite(program.spliced(split)))


def with_dense_products_split(program: Program, context: Context) -> Program:
    """Put the dense products of the last assignment, and their factors, into temporaries.

    The program itself where there are none, or where tiles compute all of them already.
    """
    if is_sparse(program.result_type.format):
        return program
    target = program.last.target.indices
    right_side = program.last.value
    for sum_ in reductions(right_side):
        product = _product(program, sum_)
        if product is None:
            continue
        same = sum_ is right_side and np.dtype(program.result_type.dtype) == product.dtype
        place = _Place(target, same and not product.numbers)
        if place.stays and product.is_of_tensors(program.dtypes):
            continue
        if _is_worth_it(program, context, product, place):
            program, new = product.in_temporaries(program, context, place)
            value = exchange(program.last.value, sum_, new)
            program = program.with_assignment(replace(program.last, value=value))
    return program


@dataclass(frozen=True, slots=True)
class _Place:
    """The indices that are kept, in order, and whether the product stays in the assignment."""

    output: tuple[str, ...]
    stays: bool


@dataclass(frozen=True, slots=True)
class _DenseProduct:
    """A sum of products of two dense factors and of numbers.

    product  all factors, as they are written
    reduced  the indices that are summed
    factors  the two that have indices
    numbers  the others
    dtype    the type that the products have, and are added up in
    """

    product: Product
    reduced: tuple[str, ...]
    factors: tuple[Expr, Expr]
    numbers: tuple[Expr, ...]
    dtype: DType

    def is_of_tensors(self, dtypes: Mapping[str, DType]) -> bool:
        """Tell whether the factors are plain tensors of the product's type."""
        return all(isinstance(f, Access) and dtypes[f.tensor] == self.dtype for f in self.factors)

    def of_tensors(self, program: Program, context: Context) -> tuple[Program, Expr]:
        """Return the sum with its factors in temporaries, except the numbers."""
        tensors: list[Expr] = []
        for factor in self.factors:
            program, tensor = self._tensor(factor, program, context)
            tensors.append(tensor)
        return program, summed(self.product.of(tensors), self.reduced)

    def _tensor(self, factor: Expr, program: Program, context: Context) -> tuple[Program, Access]:
        """Return a factor that is stored as tiles need it, else a temporary."""
        reason = FACTOR
        if isinstance(factor, Access):
            type = program.facts[factor.tensor].type
            if np.dtype(type.dtype) == self.dtype and not type.stored:
                return program, factor
            reason = f"{factor.tensor} as {self.dtype}, for a dense product in register tiles"
        return with_temporary(program, context, factor, free_indices(factor), reason, self.dtype)

    def in_temporaries(
        self, program: Program, context: Context, place: _Place
    ) -> tuple[Program, Expr]:
        """Put the factors, and the product if it leaves the assignment, into temporaries."""
        program, product = self.of_tensors(program, context)
        if place.stays:
            return program, product
        keep = tuple(index for index in place.output if index in free_indices(product))
        program, tensor = with_temporary(program, context, product, keep, PRODUCT, self.dtype)
        factors = typed_first((*self.numbers, tensor), self.dtype, program.dtypes)
        return program, self.product.of(factors) if self.numbers else tensor


def _product(program: Program, sum_: Reduce) -> _DenseProduct | None:
    """Return a sum as a product of two dense floating-point factors; else None."""
    (term, *more) = split_terms(sum_)
    dtypes = program.dtypes
    product = as_product(term.body, dtypes)
    if more or term.negative or product is None or product.operator != MUL:
        return None
    dtype = expression_dtype(term.body, dtypes)
    if not has_matrix_kernels(dtype) or any(reductions(term.body)):
        return None
    if any(program.is_sparse(access) for access in accesses(term.body)):
        return None
    factors = tuple(factor for factor in product.factors if free_indices(factor))
    numbers = tuple(factor for factor in product.factors if not free_indices(factor))
    if len(factors) != 2:
        return None
    return _DenseProduct(product, term.reduced, factors, numbers, dtype)


def _is_worth_it(program: Program, context: Context, product: _DenseProduct, place: _Place) -> bool:
    """Tell whether tiles make the product, and its size justifies the temporaries."""
    draft, sum_ = product.of_tensors(program, context)
    output = tuple(i for i in place.output if i in free_indices(sum_))
    part = Assignment(Access("", output), sum_)
    temporaries = (name_ for name_ in draft.facts if name_ not in program.facts)
    factors = [draft.facts[name].stored for name in temporaries]
    result = described(draft, context, part).stored
    read = {access.tensor for factor in product.factors for access in accesses(factor)}
    most = max(result, *(program.facts[name].stored for name in read))
    if max(factors, default=0.0) > min(most, context.goal.memory):
        return False
    if not place.stays and result > context.goal.memory:
        return False
    type = replace(program.result_type, format=dense(len(output)), dtype=product.dtype.name)
    problem = draft_of(part, draft.facts, replace(context.goal, type=type))
    return worth_own_kernel(problem, context.statistics(draft, sum_), context.goal.libraries)


RULE = Rule(
    "split_dense_product",
    Phase.SPLIT,
    apply,
    assignments,
    Numbers.ROUNDS,
    gain=Gain.DENSE,
    traits=Trait.SUMS | Trait.KERNELS,
)
