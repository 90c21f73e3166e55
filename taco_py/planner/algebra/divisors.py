"""Divisors apart from the sums around them: after a sum, or factors of their own.

    sum(j, x[j] * x[j] / d[i])  →  sum(j, x[j] * x[j]) / d[i]
    sum(i, m[a] / d[i])         →  sum(i, m[a] * (1 / d[i]))

`quotients` gives a divisor to a factor that has its indices. Where none has, the loops of all of
them would go around the whole product. A divisor without a sum's index comes after that sum
(`divide_last`); one with an index that what it divides has not is a factor of the product
(`as_factors`), which is summed by itself. Values are the same but for rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from operator import is_

from codegen.records import dataclass
from taco_py.compiler.concrete.terms import split_terms, summed
from taco_py.language.legal.absent import is_everywhere
from taco_py.language.legal.types import divides
from taco_py.language.notation.checks import free_indices
from taco_py.language.notation.dtypes import DType, expression_dtype, is_weak
from taco_py.language.notation.nodes import Call, Expr, Literal
from taco_py.language.notation.operators import DIV, MUL, NEG
from taco_py.language.notation.tree import is_call_of

ONE = Literal(1)


def divide_last(expr: Expr, dtypes: Mapping[str, DType], is_full: Callable[[str], bool]) -> Expr:
    """Return a term with its divisors outside the sums over indices that they lack.

        sum(j, x[j] * x[j] / d[i])  →  sum(j, x[j] * x[j]) / d[i]

    Where no factor has a divisor's indices, the loops of all of them would go around the whole
    product else. Only of what is there for every coordinate: of a sparse operand nothing may be
    stored, and 0 is to come out then, whatever the divisor is.

    is_full  whether an operand stores everything
    """
    (term, *more) = split_terms(expr)
    dtype = expression_dtype(term.body, dtypes)
    indices = term.reduced
    if more or not indices or not divides(dtype) or not is_everywhere(term.body, is_full):
        return expr
    body, last = _without(term.body, indices, dtype, dtypes)
    if last:
        quotient = _divided(summed(body, indices), last)
        return Call(NEG, (quotient,)) if term.negative else quotient
    match body:
        case Call(operator, (product, divisor)) if operator == DIV and not term.negative:
            over = {*free_indices(divisor)}
            if expression_dtype(product, dtypes) == dtype:
                inner = summed(product, (index for index in indices if index not in over))
                return summed(_divided(inner, (divisor,)), (i for i in indices if i in over))
    return expr


def as_factors(expr: Expr, dtypes: Mapping[str, DType], is_full: Callable[[str], bool]) -> Expr:
    """Return a term whose divisors with indices of a sum are factors of their own.

        sum(i, m[a] / (d[i] * e[a]))  →  sum(i, m[a] / e[a] * (1 / d[i]))

    Only those that are there for every coordinate: what a sparse one does not store divides too.

    is_full  whether an operand stores everything
    """
    (term, *more) = split_terms(expr)
    dtype = expression_dtype(term.body, dtypes)
    if more or not term.reduced or not divides(dtype):
        return expr
    body = _Inverses(frozenset(term.reduced), dtype, dtypes, is_full).taken_out(term.body)
    if body is term.body:
        return expr
    total = summed(body, term.reduced)
    return Call(NEG, (total,)) if term.negative else total


@dataclass(frozen=True, slots=True)
class _Inverses:
    """The divisors of a product that are factors of it.

    indices  the indices of the sums around it
    dtype   its type
    """

    indices: frozenset[str]
    dtype: DType
    dtypes: Mapping[str, DType]
    is_full: Callable[[str], bool]

    def taken_out(self, expr: Expr) -> Expr:
        """Return a product with those divisors of its factors; itself where there are none."""
        if not isinstance(expr, Call) or expression_dtype(expr, self.dtypes) != self.dtype:
            return expr
        if expr.operator == MUL:
            args = tuple(self.taken_out(arg) for arg in expr.args)
            return expr if all(map(is_, args, expr.args)) else replace(expr, args=args)
        if expr.operator != DIV:
            return expr
        product, divisor = expr.args
        if expression_dtype(product, self.dtypes) != self.dtype and not is_weak(product):
            return expr
        left, parts = self.taken_out(product), _parts(divisor, self.dtype, self.dtypes)
        inverses = [part for part in parts if self.is_factor(part, product, parts)]
        if not inverses:
            return expr if left is product else replace(expr, args=(left, divisor))
        product_ = _divided(left, (part for part in parts if part not in inverses))
        for part in inverses:
            product_ = Call(MUL, (product_, Call(DIV, (ONE, part))))
        return product_

    def is_factor(self, part: Expr, product: Expr, parts: Iterable[Expr]) -> bool:
        """Tell whether a part of a divisor may be a factor that needs no other loops."""
        indices = frozenset(free_indices(part))
        if self.indices.intersection(indices) <= {*free_indices(product)}:
            return False
        if all(indices.issuperset(free_indices(other)) for other in (product, *parts)):
            return False
        inverse = expression_dtype(Call(DIV, (ONE, part)), self.dtypes)
        return inverse == self.dtype and is_everywhere(part, self.is_full)


def _without(
    expr: Expr, indices: Iterable[str], dtype: DType, dtypes: Mapping[str, DType]
) -> tuple[Expr, tuple[Expr, ...]]:
    """Return a product without the divisors that have none of the indices, and these divisors."""
    if not isinstance(expr, Call) or expression_dtype(expr, dtypes) != dtype:
        return expr, ()
    if expr.operator == MUL:
        pairs = [_without(arg, indices, dtype, dtypes) for arg in expr.args]
        removed = tuple(divisor for _, divisors in pairs for divisor in divisors)
        return replace(expr, args=tuple(arg for arg, _ in pairs)) if removed else expr, removed
    if expr.operator != DIV or expression_dtype(expr.args[0], dtypes) != dtype:
        return expr, ()
    product, divisor = expr.args
    left, removed = _without(product, indices, dtype, dtypes)
    parts = _parts(divisor, dtype, dtypes)
    last = tuple(part for part in parts if not {*free_indices(part)}.intersection(indices))
    if not last:
        return (replace(expr, args=(left, divisor)) if removed else expr), removed
    return _divided(left, (part for part in parts if part not in last)), (*removed, *last)


def _parts(divisor: Expr, dtype: DType, dtypes: Mapping[str, DType]) -> list[Expr]:
    """Return the divisors that divide one after another in place of a product of them."""
    if not is_call_of(divisor, MUL):
        return [divisor]
    if expression_dtype(divisor, dtypes) != dtype:
        return [divisor]
    return [part for arg in divisor.args for part in _parts(arg, dtype, dtypes)]


def _divided(expr: Expr, divisors: Iterable[Expr]) -> Expr:
    """Return an expression divided by one after another."""
    for divisor in divisors:
        expr = Call(DIV, (expr, divisor))
    return expr
