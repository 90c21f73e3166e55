"""Sums of products over a semiring, as reductions and operators say them.

    min(j, min(k, filled(add(add(A[i,j], B[j,k]), x[k]), inf)))
    adds by min, multiplies by +, and has the zero inf

That factors may be taken in any order, and parts of them be added up first, follows from laws of
the operators alone (`Operator.law`). A part in a tensor of its own is stored where its products
are; elsewhere it is absent, and so are products with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import reduce as fold
from itertools import chain

import numpy as np

from codegen.records import dataclass
from taco_py.compiler.concrete.terms import Term, split_terms, top_reduction
from taco_py.language.legal.types import product_wraps_alone, wraps_early
from taco_py.language.notation.checks import accesses, free_indices
from taco_py.language.notation.dtypes import DType, expression_dtype
from taco_py.language.notation.nodes import Access, Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import FILLED, Law, Operator
from taco_py.language.notation.rewrites.semirings import multiplied
from taco_py.planner.algebra.products import Product

DTypes = Mapping[str, DType]


@dataclass(frozen=True, slots=True)
class RingProduct(Product):
    """`factors` under what a semiring multiplies by.

    add   what it adds up by
    zero  what is added up where a product is absent; None for 0
    law   that its operator distributes over `add`
    """

    add: Operator
    zero: Literal | None
    law: Law

    def of(self, factors: Iterable[Expr]) -> Expr:
        """Return the product of other factors, absent where one of them is absent."""
        first, *rest = factors
        return fold(lambda left, right: multiplied(self.operator, left, right), rest, first)

    def over(self, expr: Expr, indices: Iterable[str]) -> Expr:
        """Return the sum of a product over indices: the zero where there is none."""
        if self.zero is not None:
            expr = Call(FILLED, (expr, self.zero))
        for index in reversed(tuple(indices)):
            expr = Reduce(self.add, index, expr)
        return expr

    def first(self, expr: Expr, indices: Iterable[str]) -> Expr:
        """Return the sum as a tensor of its own, which is absent where no product is present."""
        total, zero = self.over(expr, indices), self.zero
        if zero is None:
            return total
        nothing = 0 if zero.dtype is None else np.dtype(zero.dtype).type(0).item()
        return Call(FILLED, (total, replace(zero, value=nothing)))

    def zero_annihilates(self, dtype: DType) -> bool:
        """Tell whether the product with the semiring's zero, stored as any number, is the zero."""
        zero = 0 if self.zero is None else self.zero.value
        return self.law.is_annihilated(zero, self.add, dtype)


def sum_of_products(expr: Expr, dtypes: DTypes) -> tuple[Term, RingProduct] | None:
    """Return the products that a reduction by another operator than + combines, under all its sums.

    min(k, filled(add(filled(min(j, filled(add(A, B), inf)), 0), x), inf))
    → min over k and j of the product of A, B and x

    None where what multiplies does not distribute over what adds up, or the zero does not
    annihilate products: 0 | x is x, and the largest integer + 1 the least one.
    """
    if top_reduction(expr) is None:
        return None
    (term,) = split_terms(expr)
    body, zero = _unfilled(term.body)
    if not isinstance(body, Call) or len(body.args) != 2:
        return None
    dtype = expression_dtype(body, dtypes)
    law = body.operator.law(term.operator, dtype)
    if law is None or (law.inside and wraps_early(dtype)):
        return None
    flat = _Flat(term.operator, body.operator, zero, dtypes, dtype)
    factors, inner = flat.of(body)
    indices = (*term.reduced, *inner)
    if len(set(indices)) < len(indices):
        return None
    product = RingProduct(body.operator, factors, term.operator, zero, law)
    if not product.zero_annihilates(dtype):
        return None
    return replace(term, reduced=indices, body=product.of(factors)), product


def holds_zero(part: Expr, access: Access, readers: Iterable[Expr], dtypes: DTypes) -> bool:
    """Tell whether a temporary may store the semiring's zero where no product is present.

    part     what is assigned to it, absent where no product is
    readers  the values in which it is read, each a sum of products with it
    """
    term = sum_of_products(part, dtypes)
    return term is not None and all(
        _annihilated_by(term[1], access.tensor, reader, dtypes) for reader in readers
    )


def _annihilated_by(part: RingProduct, tensor: str, reader: Expr, dtypes: DTypes) -> bool:
    term = sum_of_products(reader, dtypes)
    if term is None:
        return False
    dtype, product = expression_dtype(term[0].body, dtypes), term[1]
    factors = [f for f in product.factors if isinstance(f, Access) and f.tensor == tensor]
    return (
        (product.add, product.zero) == (part.add, part.zero)
        and len(factors) == sum(a.tensor == tensor for a in accesses(reader))
        and dtype == dtypes[tensor]
        and product.zero_annihilates(dtype)
    )


def _unfilled(expr: Expr) -> tuple[Expr, Literal | None]:
    """Return a product, and the literal that fills it where it is absent."""
    match expr:
        case Call(operator, (inside, Literal() as zero)) if operator == FILLED:
            return inside, zero
    return expr, None


@dataclass(frozen=True, slots=True)
class _Flat:
    """What is one product with its sums, of a type."""

    add: Operator
    multiply: Operator
    zero: Literal | None
    dtypes: DTypes
    dtype: DType

    def of(self, expr: Expr) -> tuple[tuple[Expr, ...], tuple[str, ...]]:
        """Return the factors of an expression and the indices that it adds up over."""
        if product_wraps_alone(expression_dtype(expr, self.dtypes), self.dtype):
            return (expr,), ()
        if isinstance(expr, Call) and self.multiplies(expr):
            parts = [self.of(arg) for arg in expr.args]
            factors = tuple(chain.from_iterable(factors_ for factors_, _ in parts))
            indices_: tuple[str, ...] = ()
            for (_, indices), part in zip(parts, reversed(parts), strict=True):
                if any(i in free_indices(f) for i in indices for f in part[0]):
                    return tuple(expr.args), ()
                indices_ += indices
            return factors, indices_
        reduction = top_reduction(expr)
        if reduction is None or reduction.operator != self.add:
            return (expr,), ()
        (term,) = split_terms(expr)
        body, zero = _unfilled(term.body)
        if zero != self.zero or not self.multiplies(body):
            return (expr,), ()
        factors, indices = self.of(body)
        return factors, (*term.reduced, *indices)

    def multiplies(self, expr: Expr) -> bool:
        """Tell whether an expression is a product of the semiring."""
        operator = self.multiply
        return (
            isinstance(expr, Call)
            and expr.operator.evaluate is operator.evaluate
            and expr.operator.over == operator.over
        )
