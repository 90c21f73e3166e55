"""Texts that mean something else than what such texts are often written for.

    s = (y[i] - X[i,a]*v[a]) * (y[i] - X[i,a]*v[a])     a is summed around the whole product
    g[k] = (y[i] - X[i,k]*v[k]) * X[i,k]                k inside is the k of the result
    y[i] = X[i,j] * v[k]                                v is summed by itself
    d[i,j] = sqrt((X[i,k] - Y[j,k])**2)                 k is summed around (traps_of_functions)

Nothing of it is wrong. `sum(…)` and letters of their own say what is meant, and end the warning.
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
    """Find what to warn of in an assignment as it is written, before its sums are inserted."""
    value = assignment.value
    free = free_inside_functions(value)
    named = {node.index for node in all_reductions(value)}
    met = (*accesses(value), *numbers_of(assignment))
    uses = Counter(index for access in met for index in access.indices)
    kept = {*assignment.target.indices, *named}
    once = frozenset(index for index, count in uses.items() if count == 1 and index not in kept)
    found: dict[str, UserWarning] = {}
    for product in _products(value, assignment.target.indices, free):
        each = (
            _summed_around(product)
            or _left_inside(product, assignment.target)
            or _summed_alone(product, once, assignment.target)
        )
        if each is not None:
            found.setdefault(str(each), each)
    reduces = assignment.operator is not None and not assignment.operator.additive
    outside = frozenset(assignment.target.indices).union(free[id(value)] if reduces else ())
    for each in summed_around_functions(value, outside, free):
        found.setdefault(str(each), each)
    return tuple(found.values())


@dataclass(frozen=True, slots=True, eq=False)
class _Product:
    """A product or quotient with its factors, and the indices that are summed around it.

    here    those that its own uses make it sum
    around  these, and those that are summed further out, but for sums that the text names
    """

    expr: Expr
    factors: tuple[Expr, ...]
    divisors: tuple[Expr, ...]
    here: tuple[str, ...]
    around: frozenset[str]
    free: Free


def _products(expr: Expr, left: Collection[str], free: Free) -> Iterator[_Product]:
    """Find the products of an expression that are no factors of others."""

    def visit(expr: Expr, kept: frozenset[str], around: frozenset[str]) -> Iterator[_Product]:
        match expr:
            case Call(operator, args) if operator.closes:
                more = frozenset(free[id(expr)]) - kept
                for arg in args:
                    yield from visit(arg, kept | more, around | more)
            case Call(operator) if not operator.additive:
                factors, divisors, here = _parts(expr, kept, free)
                yield _Product(expr, factors, divisors, here, around.union(here), free)
                for factor in (*factors, *divisors):
                    yield from visit(factor, kept.union(here), around.union(here))
            case Reduce():
                yield from visit(expr.body, kept | {expr.index}, around)
            case _:
                for child in children(expr):
                    yield from visit(child, kept, around)

    return visit(expr, frozenset(left), frozenset())


def _parts(
    expr: Expr, kept: Collection[str], free: Free
) -> tuple[tuple[Expr, ...], tuple[Expr, ...], tuple[str, ...]]:
    """Take a product apart: factors, divisors, and the indices summed at any of its nodes."""
    if not isinstance(expr, Call) or expr.operator.additive or expr.operator.closes:
        return (expr,), (), ()
    here = summed_here(expr, kept, free)
    if expr.operator == DIV:
        factors, divisors, more = _parts(expr.args[0], {*kept, *here}, free)
        return factors, (*divisors, expr.args[1]), (*here, *more)
    parts = [_parts(arg, {*kept, *here}, free) for arg in expr.args]
    return (
        tuple(factor for part in parts for factor in part[0]),
        tuple(divisor for part in parts for divisor in part[1]),
        (*here, *(index for part in parts for index in part[2])),
    )


def _sums_inside(expr: Expr, index: str, free: Free) -> bool:
    """Tell whether a sum of terms, one without an index, multiplies what has it in each other."""
    if not is_additive(expr):
        return False
    terms = tuple(addends(expr))
    using = [term for term in terms if index in free[id(term)]]
    return 0 < len(using) < len(terms) and all(contracts(term, index, free) for term in using)


def _summed_around(product: _Product) -> UserWarning | None:
    """Warn of an index summed around a product of sums, each of which has a term without it.

    Where a tensor with the index is a factor too, the sum around is what such a text is meant for.
    """
    parts = (*product.factors, *product.divisors)
    for index in product.here:
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
    written = [f"({_with_sum(part, index, product)})" for part in (*above, *below)]
    upper = " * ".join(written[: len(above)]) or "…"
    return " / ".join((upper, *written[len(above) :]))


def _without_minus(expr: Expr) -> tuple[Expr, bool]:
    """Take the minuses before an expression away, and tell whether they were odd in number."""
    odd = False
    while is_call_of(expr, NEG):
        expr, odd = expr.args[0], not odd
    return expr, odd


def _with_sum(expr: Expr, index: str, product: _Product) -> str:
    """Write a sum of terms with `sum(…)` around those that have an index."""
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
    """Warn of an index of the result that a factor seems to sum, where others have it too."""
    for factor in product.factors:
        others = [each for each in product.factors if each is not factor]
        for index in target.indices:
            has = any(index in product.free[id(other)] for other in others)
            summed = any(other in product.free[id(factor)] for other in product.around)
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
    return next(index for index in product.free[id(factor)] if index in product.around)


def _summed_alone(product: _Product, once: Collection[str], target: Access) -> UserWarning | None:
    """Warn of an index used once in the text, where that leaves a part of a product by itself.

    A factor of such indices alone is a number; or two parts that share no summed index have one
    each, as in A[i,j] * B[l,k]. In A[i,j] * B[j,k] the sums over i and k are those of a product.
    """
    alone = [f for f in _bare(product.factors) if any(index in once for index in f.indices)]
    whole = [f for f in alone if all(index in once for index in f.indices)]
    if sum(bool(product.free[id(part)]) for part in (*product.factors, *product.divisors)) < 2:
        return None
    for divisor in _bare(product.divisors):
        if all(index in once for index in divisor.indices):
            return _quotient_of_sum(divisor)
    apart = [part for part in _parts_apart(product, target) if part.intersection(once)]
    if not alone or (not whole and len(apart) < 2):
        return None
    access = (whole or alone)[-1]
    index = next(index for index in access.indices if index in once)
    own = ", ".join(index for index in access.indices if index in once)
    return caution(
        NotationWarning,
        f"{index} is used once, so {to_text(access)} is summed over it by itself: "
        f"sum({own}, {to_text(access)}) is the factor",
        access.span,
        "give it the index of another factor if that was meant; where not, write "
        f"sum({own}, {to_text(access)})",
    )


def _parts_apart(product: _Product, target: Access) -> list[frozenset[str]]:
    """Join the summed indices of factors that share one, directly or through others."""
    found: list[frozenset[str]] = []
    for factor in (*product.factors, *product.divisors):
        own = frozenset(product.free[id(factor)]).difference(target.indices)
        joined = own.union(*(part for part in found if part & own))
        found = [*(part for part in found if not part & own), joined]
    return found


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
