"""Products of many factors, and the sums in and around them.

What makes a product is its operator's algebra: it is associative, commutative and linear in each
argument (`Operator.distributes`), so that its factors may be taken in any order and a sum of one of
them moved around all, or back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce as fold
from math import prod

from codegen.records import dataclass
from taco_py.compiler.concrete.inner_sums import sum_key
from taco_py.compiler.concrete.terms import reductions, split_terms, summed
from taco_py.language.legal.types import bounds_literals, product_wraps_alone, sum_wraps_alone
from taco_py.language.notation.checks import accesses, free_indices
from taco_py.language.notation.dtypes import DType, expression_dtype, is_weak
from taco_py.language.notation.nodes import Call, Expr, Reduce
from taco_py.language.notation.operators import Operator
from taco_py.language.notation.tree import (
    all_reductions,
    children,
    exchange,
    is_call_of,
    is_sum,
)
from taco_py.planner.algebra.quotients import open_products


@dataclass(frozen=True, slots=True)
class Product:
    """`factors` under one operator, of which there are two or more."""

    operator: Operator
    factors: tuple[Expr, ...]

    def of(self, factors: Iterable[Expr]) -> Expr:
        """Return the product of other factors: `a * b * c`, to the left."""
        first, *rest = factors
        return fold(lambda left, right: Call(self.operator, (left, right)), rest, first)

    def over(self, expr: Expr, indices: Iterable[str]) -> Expr:
        """Return the sum of such a product over indices."""
        return summed(expr, indices)

    def first(self, expr: Expr, indices: Iterable[str]) -> Expr:
        """Return the sum of such a product as a tensor of its own."""
        return self.over(expr, indices)


def as_product(expr: Expr, dtypes: Mapping[str, DType]) -> Product | None:
    """Return the factors of `expr` in the order of the text; None where it is no product.

    as_product(a * (b * c)) = Product(MUL, (a, b, c))

    A product of integers inside one of another type wraps by itself, and is one factor.
    """
    if isinstance(expr, Call) and expr.operator.distributes:
        dtype = expression_dtype(expr, dtypes)

        def is_one(factor: Expr) -> bool:
            return product_wraps_alone(expression_dtype(factor, dtypes), dtype)

        return Product(expr.operator, tuple(_factors(expr, expr.operator, is_one)))
    return None


def _factors(expr: Expr, operator: Operator, is_one: Callable[[Expr], bool]) -> Iterator[Expr]:
    if is_call_of(expr, operator) and not is_one(expr):
        for arg in expr.args:
            yield from _factors(arg, operator, is_one)
    else:
        yield expr


def typed_first(
    factors: Iterable[Expr], dtype: DType, dtypes: Mapping[str, DType]
) -> tuple[Expr, ...]:
    """Return factors in an order in which partial products have the type of the full one."""
    every = tuple(factors)
    last = bounds_literals(dtype) or sum(map(is_weak, every)) > 1

    def place(factor: Expr) -> int:
        if is_weak(factor):
            return 2 * last
        return int(expression_dtype(factor, dtypes) != dtype)

    return tuple(sorted(every, key=place))


def flatten(expr: Expr, dtypes: Mapping[str, DType], open_equal: bool = True) -> Expr:
    """Return `sum(j, sum(k, B * C) * x)` → `sum(j, sum(k, B * C * x))`: one product under all its
    sums.

    The order of the sums is then free to choose. Integer sums of another type than the product's
    wrap by themselves and stay. Quotients of products are no obstacle (`quotients`).

    open_equal  whether also sums that occur more than once are moved around products with them
    """
    expr = open_products(expr, dtypes)
    counts = Counter[Hashable](() if open_equal else map(sum_key, _sums(expr)))
    return _sums_around(expr, dtypes, {key for key, count in counts.items() if count > 1})


def _sums(expr: Expr) -> Iterator[Reduce]:
    return all_reductions(expr)


def _sums_around(expr: Expr, dtypes: Mapping[str, DType], keys: Container[Hashable]) -> Expr:
    """Return the sums inside products around them, but for the factors whose keys are `keys`."""
    match expr:
        case Reduce(operator, _, body) if operator.additive:
            return replace(expr, body=_sums_around(body, dtypes, keys))
        case Call(operator, (left, right)) if operator.distributes:
            dtype = expression_dtype(expr, dtypes)
            parts = [_sums_around(left, dtypes, keys), _sums_around(right, dtypes, keys)]
            sums: list[Reduce] = []
            for place, other in ((0, 1), (1, 0)):
                factor = expr.args[place]
                if isinstance(factor, Reduce) and sum_key(factor) in keys:
                    continue
                while sum_ := _leaving(parts[place], parts[other], sums, dtype, dtypes):
                    sums.append(sum_)
                    parts[place] = sum_.body
            product: Expr = replace(expr, args=tuple(parts))
            for sum_ in reversed(sums):
                product = replace(sum_, body=product)
            return product
    return expr


def _leaving(
    expr: Expr, other: Expr, sums: Sequence[Reduce], dtype: DType, dtypes: Mapping[str, DType]
) -> Reduce | None:
    """Return `expr`, if it is a sum that may be moved around its product with `other`."""
    if not is_sum(expr):
        return None
    sum_dtype = expression_dtype(expr, dtypes)
    clash = any(expr.index in access.indices for access in accesses(other))
    clashes = any(sum_.index == expr.index for sum_ in sums)
    return None if clash or clashes or sum_wraps_alone(sum_dtype, dtype) else expr


def push_in(expr: Expr, dtypes: Mapping[str, DType], only: Container[str] | None = None) -> Expr:
    """Return `sum(j, sum(k, A[i,j] * B[i,k]))` → `sum(j, A[i,j]) * sum(k, B[i,k])`.

    An index that one factor alone has is summed there, so that its loop is beside those of the
    other factors and not around or inside them. Integer products of another type keep their sums.

    only  the indices that may move, None for all
    """
    (term, *more) = split_terms(expr)
    product = as_product(term.body, dtypes)
    if more or term.negative or product is None:
        return expr
    factors = list(product.factors)
    if sum(bool(free_indices(f)) for f in factors) < 2:
        return expr
    dtype = expression_dtype(term.body, dtypes)
    outer = []
    for index in reversed(term.reduced):
        users = [k for k, f in enumerate(factors) if index in free_indices(f)]
        may = only is None or index in only
        if may and len(users) == 1 and expression_dtype(factors[users[0]], dtypes) == dtype:
            factors[users[0]] = summed(factors[users[0]], (index,))
        else:
            outer.append(index)
    if len(outer) == len(term.reduced):
        return expr
    return summed(product.of(typed_first(factors, dtype, dtypes)), reversed(outer))


def nest(expr: Expr, dtypes: Mapping[str, DType], size: Callable[[str], int]) -> Expr:
    """Return `sum(i, sum(j, A[i,k] * B[i,j] * x[j]))` → `sum(i, A[i,k] * sum(j, B[i,j] * x[j]))`.

    Each sum is around those factors alone that have its index: the reverse of `flatten`. Those of
    fewest indices come first, then those inside fewest others, then those of fewest elements. A
    sum that would be of another type than the product's stays around it. Products in a quotient,
    or in another function, are nested there.

    size  that of an index
    """
    flat = flatten(expr, dtypes)
    (term, *more) = split_terms(flat)
    product = as_product(term.body, dtypes)
    if more or term.negative:
        return expr
    if product is None:
        for sum_ in reductions(term.body):
            flat = exchange(flat, sum_, nest(sum_, dtypes, size))
        return flat
    dtype = expression_dtype(term.body, dtypes)
    factors, left = typed_first(product.factors, dtype, dtypes), [*term.reduced]

    def place(sum_: Expr) -> tuple[int, int, int]:
        indices = free_indices(sum_)
        return len(indices), _depth(sum_), prod(map(size, indices))

    while left:
        inner = {i: summed(product.of(_with_index(factors, i)), (i,)) for i in left}
        index = min(left, key=lambda i: place(inner[i]))
        rest = tuple(f for f in factors if index not in free_indices(f))
        if not rest or expression_dtype(inner[index], dtypes) != dtype:
            break
        factors = typed_first((*rest, inner[index]), dtype, dtypes)
        left.remove(index)
    return summed(product.of(factors), left)


def _depth(expr: Expr) -> int:
    """Return the largest depth of nested sums."""
    return isinstance(expr, Reduce) + max(map(_depth, children(expr)), default=0)


def _with_index(factors: Iterable[Expr], index: str) -> Iterator[Expr]:
    return (factor for factor in factors if index in free_indices(factor))
