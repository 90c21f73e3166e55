"""Warnings about texts that mean something else than such texts are often meant to.

    s = (y[i] - X[i,a]*v[a]) * (y[i] - X[i,a]*v[a])     a is summed around the whole product
    g[k] = (y[i] - X[i,k]*v[k]) * X[i,k]                k inside is the k of the result
    y[i] = X[i,j] * v[k]                                v is summed separately
    d[i,j] = sqrt((X[i,k] - Y[j,k])**2)                 k is summed around (traps_of_functions)

These texts are valid. Explicit `sum(…)` and distinct letters state the intent and stop the warning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from codegen.records import dataclass
from taco_py.language.diagnostics.cautions import NotationWarning, caution
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Reduce
from taco_py.language.notation.operators import DIV, NEG
from taco_py.language.notation.printer import to_text
from taco_py.language.notation.rewrites.index_numbers import numbers_of
from taco_py.language.notation.rewrites.reduce import (
    Free,
    contracts,
    free_inside_functions,
    summed_here,
)
from taco_py.language.notation.traps_of_functions import summed_around_functions
from taco_py.language.notation.tree import (
    addends,
    all_reductions,
    children,
    is_additive,
    is_call_of,
)


def traps(assignment: Assignment) -> tuple[UserWarning, ...]:
    """Find the warnings of an assignment before its sums are inserted."""
    value = assignment.value
    free = free_inside_functions(value)
    explicit = {node.index for node in all_reductions(value)}
    terms = (*accesses(value), *numbers_of(assignment))
    uses = Counter(index for access in terms for index in access.indices)
    bound = {*assignment.target.indices, *explicit}
    used_once = frozenset(
        index for index, count in uses.items() if count == 1 and index not in bound
    )
    warnings: dict[str, UserWarning] = {}
    for product in _products(value, assignment.target.indices, free):
        warning = (
            _summed_around(product)
            or _left_inside(product, assignment.target)
            or _summed_alone(product, used_once, assignment.target)
        )
        if warning is not None:
            warnings.setdefault(str(warning), warning)
    reduces = assignment.operator is not None and not assignment.operator.additive
    outside = frozenset(assignment.target.indices).union(free[id(value)] if reduces else ())
    for warning in summed_around_functions(value, outside, free):
        warnings.setdefault(str(warning), warning)
    return tuple(warnings.values())


@dataclass(frozen=True, slots=True, eq=False)
class _Product:
    """A product or quotient with its factors, and the indices that are summed around it.

    summed  indices that its uses make it sum
    outer   these, and implicit sums further out
    """

    expr: Expr
    factors: tuple[Expr, ...]
    divisors: tuple[Expr, ...]
    summed: tuple[str, ...]
    outer: frozenset[str]
    free: Free


def _products(expr: Expr, left: Collection[str], free: Free) -> Iterator[_Product]:
    """Yield the maximal products of an expression."""

    def visit(expr: Expr, bound: frozenset[str], outer: frozenset[str]) -> Iterator[_Product]:
        match expr:
            case Call(operator, args) if operator.closes:
                more = frozenset(free[id(expr)]) - bound
                for arg in args:
                    yield from visit(arg, bound | more, outer | more)
            case Call(operator) if not operator.additive:
                factors, divisors, summed = _parts(expr, bound, free)
                yield _Product(expr, factors, divisors, summed, outer.union(summed), free)
                for factor in (*factors, *divisors):
                    yield from visit(factor, bound.union(summed), outer.union(summed))
            case Reduce():
                yield from visit(expr.body, bound | {expr.index}, outer)
            case _:
                for child in children(expr):
                    yield from visit(child, bound, outer)

    return visit(expr, frozenset(left), frozenset())


def _parts(
    expr: Expr, bound: Collection[str], free: Free
) -> tuple[tuple[Expr, ...], tuple[Expr, ...], tuple[str, ...]]:
    """Split a product into factors, divisors, and the indices summed at any of its nodes."""
    if not isinstance(expr, Call) or expr.operator.additive or expr.operator.closes:
        return (expr,), (), ()
    summed = summed_here(expr, bound, free)
    if expr.operator == DIV:
        factors, divisors, more = _parts(expr.args[0], {*bound, *summed}, free)
        return factors, (*divisors, expr.args[1]), (*summed, *more)
    parts = [_parts(arg, {*bound, *summed}, free) for arg in expr.args]
    return (
        tuple(factor for part in parts for factor in part[0]),
        tuple(divisor for part in parts for divisor in part[1]),
        (*summed, *(index for part in parts for index in part[2])),
    )


def _sums_inside(expr: Expr, index: str, free: Free) -> bool:
    """Tell whether a sum has terms without an index, and contracts it in all others."""
    if not is_additive(expr):
        return False
    terms = tuple(addends(expr))
    using = [term for term in terms if index in free[id(term)]]
    return 0 < len(using) < len(terms) and all(contracts(term, index, free) for term in using)


def _summed_around(product: _Product) -> UserWarning | None:
    """Return the warning about an index summed around a product of sums with terms without it.

    Where a tensor with the index is a factor too, the outer sum is intended.
    """
    parts = (*product.factors, *product.divisors)
    for index in product.summed:
        if any(index in access.indices for access in _bare(parts)):
            continue
        above, below = (
            [part for part in some if _sums_inside(part, index, product.free)]
            for some in (product.factors, product.divisors)
        )
        if len(above) + len(below) < 2:
            continue
        what, sign = ("quotient", "/") if below else ("product", "*")
        first = f"({to_text((above or below)[0])})"
        start = f"{first} {sign} …" if above else f"… / {first} / …"
        return caution(
            NotationWarning,
            f"{index} is summed around the whole {what}, for several parts of it use it: "
            f"sum({index}, {start})",
            product.expr.span,
            f"to sum inside each part write {_inside(above, below, index, product)}, or another "
            f"letter in each; to keep it as it is, write sum({index}, …) around the {what}",
        )
    return None


def _inside(above: list[Expr], below: list[Expr], index: str, product: _Product) -> str:
    """Write a product or quotient of sums with an index summed inside each.

    (y[i] - X[i,a]*v[a]) * -(y[i] - X[i,a]*v[a])   →   -(y[i] - X[i,a]*v[a])**2
    (y[i] - X[i,a]*v[a]) / (z[i] - X[i,a]*u[a])
    →   (y[i] - sum(a, X[i,a]*v[a])) / (z[i] - sum(a, X[i,a]*u[a]))
    """
    sums = [_without_minus(part) for part in (*above, *below)]
    minus = "-" * (sum(is_negated for _, is_negated in sums) % 2)
    alike = len({to_text(base) for base, _ in sums}) == 1
    if alike and not (above and below):
        power = f"({to_text(sums[0][0])})**{len(sums)}"
        return f"{minus}{power}" if above else f"… / {minus}{power}"
    factors = [f"({_with_sum(part, index, product)})" for part in (*above, *below)]
    upper = " * ".join(factors[: len(above)]) or "…"
    return " / ".join((upper, *factors[len(above) :]))


def _without_minus(expr: Expr) -> tuple[Expr, bool]:
    """Strip the minuses before an expression; tell whether their number was odd."""
    odd = False
    while is_call_of(expr, NEG):
        expr, odd = expr.args[0], not odd
    return expr, odd


def _with_sum(expr: Expr, index: str, product: _Product) -> str:
    """Write a sum of terms with `sum(…)` around the terms that have an index."""
    if is_additive(expr) and len(expr.args) == 2:
        left, right = (_with_sum(arg, index, product) for arg in expr.args)
        several = is_additive(expr.args[1])
        right = f"({right})" if several else right
        return f"{left} {expr.operator.symbol} {right}"
    if is_call_of(expr, NEG):
        base, _ = _without_minus(expr)
        inner = _with_sum(expr.args[0], index, product)
        several = is_additive(base)
        return f"-({inner})" if several else f"-{inner}"
    return f"sum({index}, {to_text(expr)})" if index in product.free[id(expr)] else to_text(expr)


def _left_inside(product: _Product, target: Access) -> UserWarning | None:
    """Return the warning about an index of the result that a factor seems to sum."""
    for factor in product.factors:
        other_factors = [other for other in product.factors if other is not factor]
        for index in target.indices:
            has = any(index in product.free[id(other)] for other in other_factors)
            summed = any(other in product.free[id(factor)] for other in product.outer)
            if has and summed and _sums_inside(factor, index, product.free):
                return caution(
                    NotationWarning,
                    f"{index} is an index of {target.tensor}, so nothing is summed over it in "
                    f"{to_text(factor)}",
                    factor.span,
                    f"to sum there, write another letter for {index} in that part, as {index}2; "
                    f"to keep it as it is, name the sum around: sum({_summed(product, factor)}, …)",
                )
    return None


def _summed(product: _Product, factor: Expr) -> str:
    return next(index for index in product.free[id(factor)] if index in product.outer)


def _summed_alone(
    product: _Product, used_once: Collection[str], target: Access
) -> UserWarning | None:
    """Return the warning about an index used once that leaves a factor separate.

    A factor with only such indices is a number; or two parts that share no summed index have one
    each, as in A[i,j] * B[l,k]. In A[i,j] * B[j,k] the sums over i and k belong to one product.
    """
    alone = [f for f in _bare(product.factors) if any(index in used_once for index in f.indices)]
    separate = [f for f in alone if all(index in used_once for index in f.indices)]
    if sum(bool(product.free[id(part)]) for part in (*product.factors, *product.divisors)) < 2:
        return None
    for divisor in _bare(product.divisors):
        if all(index in used_once for index in divisor.indices):
            return _quotient_of_sum(divisor)
    parts = [part for part in _independent_parts(product, target) if part.intersection(used_once)]
    if not alone or (not separate and len(parts) < 2):
        return None
    access = (separate or alone)[-1]
    index = next(index for index in access.indices if index in used_once)
    summed = ", ".join(index for index in access.indices if index in used_once)
    return caution(
        NotationWarning,
        f"{index} is used once, so {to_text(access)} is summed over it by itself: "
        f"sum({summed}, {to_text(access)}) is the factor",
        access.span,
        "give it the index of another factor if that was meant; where not, write "
        f"sum({summed}, {to_text(access)})",
    )


def _independent_parts(product: _Product, target: Access) -> list[frozenset[str]]:
    """Join the summed indices of factors that share one, directly or through others."""
    groups: list[frozenset[str]] = []
    for factor in (*product.factors, *product.divisors):
        indices = frozenset(product.free[id(factor)]).difference(target.indices)
        group = indices.union(*(part for part in groups if part & indices))
        groups = [*(part for part in groups if not part & indices), group]
    return groups


def _quotient_of_sum(divisor: Access) -> UserWarning:
    text, index = to_text(divisor), divisor.indices[0]
    return caution(
        NotationWarning,
        f"{index} is used once, so quotients by each element of {text} are added up",
        divisor.span,
        f"to divide by the sum write sum({index}, {text}); to keep it as it is, write "
        f"sum({index}, …) around the quotient",
    )


def _bare(parts: tuple[Expr, ...]) -> list[Access]:
    """Return the tensors with indices among the factors of a product, with or without a minus."""
    plain = [_without_minus(part)[0] for part in parts]
    return [part for part in plain if isinstance(part, Access) and part.indices]
