"""Products of dense tensors in register tiles, with all that keeps them from these apart.

    R[i,k] = g[k] - 2 * sum(j, (P[i,j] + Q[i,j]) * S[j,k])
    →  T[i,j] = P[i,j] + Q[i,j]
       T_1[i,k] = sum(j, T[i,j] * S[j,k])
       R[i,k] = g[k] - 2 * T_1[i,k]

Tiles are filled by a sum of products of two tensors of one type, and nothing else. In loops each
factor would be computed as often as the product has rows or columns, and what is added to the sum
would keep it from all reuse in registers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from taco_py.concrete.terms import reductions, split_terms, summed
from taco_py.formats import dense
from taco_py.notation.checks import accesses, free_indices
from taco_py.notation.dtypes import DType, expression_dtype
from taco_py.notation.nodes import Access, Assignment, Expr, Reduce
from taco_py.notation.operators import MUL
from taco_py.notation.tree import exchange
from taco_py.plan.algebra.products import Product, as_product, typed_first
from taco_py.plan.ir.goal import Request, draft_of
from taco_py.plan.splitter import Splitter
from taco_py.ways.choose import worth_apart

FACTOR = "a factor of a dense product, computed once for all its rows or columns"
PRODUCT = "a dense product by itself, in register tiles"


def tiled_apart(splitter: Splitter, assignment: Assignment, request: Request) -> Assignment:
    """The assignment with its dense products and their factors in temporaries of the splitter, so
    that the products are made of tiles; itself where there are none, or all are already.

    request  what is wanted of its result
    """
    if not request.type.format.is_dense:
        return assignment
    value = assignment.value
    for sum_ in reductions(value):
        product = _product(splitter, sum_)
        if product is None:
            continue
        same = sum_ is assignment.value and np.dtype(request.type.dtype) == product.whole
        place = _Place(assignment.target.indices, same and not product.numbers)
        if place.stays and product.is_of_tensors(splitter.dtypes):
            continue
        if _is_worth_it(splitter, product, place, request):
            value = exchange(value, sum_, product.made(splitter, place))
    return assignment if value is assignment.value else replace(assignment, value=value)


@dataclass(frozen=True, slots=True)
class _Place:
    """What indices are kept, in order, and whether the product stays in the assignment."""

    kept: tuple[str, ...]
    stays: bool


@dataclass(frozen=True, slots=True)
class _DenseProduct:
    """A sum of products of two dense factors and of numbers.

    product  all factors, as they are written
    reduced  the indices that are summed
    factors  the two that have indices
    numbers  the others
    whole    the type that the products have, and are added up in
    """

    product: Product
    reduced: tuple[str, ...]
    factors: tuple[Expr, Expr]
    numbers: tuple[Expr, ...]
    whole: DType

    def is_of_tensors(self, dtypes: Mapping[str, DType]) -> bool:
        """Whether the factors are tensors that are read as numbers of its type."""
        return all(isinstance(f, Access) and dtypes[f.tensor] == self.whole for f in self.factors)

    def of_tensors(self, splitter: Splitter) -> Expr:
        """The sum with its factors in temporaries, but for the numbers."""
        tensors = (self._tensor(factor, splitter) for factor in self.factors)
        return summed(self.product.of(tensors), self.reduced)

    def _tensor(self, factor: Expr, splitter: Splitter) -> Access:
        """A factor, if it is stored as tiles need it, or a temporary."""
        why = FACTOR
        if isinstance(factor, Access):
            type = splitter.operands[factor.tensor].type
            if np.dtype(type.dtype) == self.whole and not type.stored:
                return factor
            why = f"{factor.tensor} as {self.whole}, for a dense product in register tiles"
        return splitter.temporary(factor, free_indices(factor), why, self.whole)

    def made(self, splitter: Splitter, place: _Place) -> Expr:
        """What is in the place of the sum."""
        found = self.of_tensors(splitter)
        if place.stays:
            return found
        keep = tuple(index for index in place.kept if index in free_indices(found))
        made = splitter.temporary(found, keep, PRODUCT, self.whole)
        factors = typed_first((*self.numbers, made), self.whole, splitter.dtypes)
        return self.product.of(factors) if self.numbers else made


def _product(splitter: Splitter, sum_: Reduce) -> _DenseProduct | None:
    """A sum as a product of two dense factors that are no integers."""
    (term, *more) = split_terms(sum_)
    dtypes = splitter.dtypes
    product = as_product(term.body, dtypes)
    if more or term.negative or product is None or product.operator != MUL:
        return None
    whole = expression_dtype(term.body, dtypes)
    if whole.kind not in "fc" or any(reductions(term.body)):
        return None
    if any(splitter.is_sparse(access) for access in accesses(term.body)):
        return None
    factors = tuple(factor for factor in product.factors if free_indices(factor))
    numbers = tuple(factor for factor in product.factors if not free_indices(factor))
    if len(factors) != 2:
        return None
    return _DenseProduct(product, term.reduced, factors, numbers, whole)


def _is_worth_it(
    splitter: Splitter, product: _DenseProduct, place: _Place, request: Request
) -> bool:
    """Whether the product of its factors' temporaries would be made of tiles and large enough, and
    none stores more than is allowed, nor more than the largest operand or the product do."""
    draft = splitter.drafting()
    found = product.of_tensors(draft)
    part = Assignment(Access("", tuple(i for i in place.kept if i in free_indices(found))), found)
    factors = [draft.operands[made.target.tensor].stored for made in draft.made]
    result = draft.described(part).stored
    read = {access.tensor for factor in product.factors for access in accesses(factor)}
    most = max(result, *(splitter.operands[name].stored for name in read))
    if max(factors, default=0.0) > min(most, request.memory):
        return False
    if not place.stays and result > request.memory:
        return False
    type = replace(request.type, format=dense(len(part.target.indices)), dtype=product.whole.name)
    problem = draft_of(part, draft.operands, replace(request, type=type))
    return worth_apart(problem, draft.statistics(found), request.libraries)
