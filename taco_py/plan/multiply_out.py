"""Sums inside products, multiplied out where the whole plan then costs clearly less.

    y[i] = sum(k, (sum(j, A[i,j] * B[j,k]) + C[i,k]) * x[k])
    → y[i] = sum(k, sum(j, A[i,j] * B[j,k]) * x[k]) + sum(k, C[i,k] * x[k])

which is A·(B·x) + C·x where A·B was made before. Each sum may be multiplied out or left, as in the
rewrites of Ahrens et al. 2022, section 7; the forms are compared by what all their kernels cost.

Integers and booleans are exact either way, for all of it is computed in one type. Real numbers are
rounded at other places, as where a product is contracted in pairs. A difference of theirs stays as
it is written: (A - B) · x keeps digits that A·x - B·x cancels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from taco_py.autoschedule.effort import Effort
from taco_py.concrete.terms import split_terms
from taco_py.cost.machine import GAIN
from taco_py.diagnostics.errors import NumberOverflowError
from taco_py.notation.checks import free_indices
from taco_py.notation.dtypes import DType, expression_dtype
from taco_py.notation.nodes import Assignment, Call, Expr, Literal, Reduce
from taco_py.notation.operators import ADD, NEG, SUB
from taco_py.notation.printer import to_text
from taco_py.notation.tree import children, walk

TERMS, OPTIONS, ROUNDS = 8, 6, 3
"""Terms up to which an assignment is multiplied out; forms that are compared at a time, and sums
that are multiplied out after the first."""
Signed = tuple[bool, Expr]
"""A term, and whether it is subtracted."""
Price = Callable[[Assignment], float]


@dataclass(frozen=True, slots=True)
class Forms:
    """The form that was chosen, and the one that it was compared with, None where there is none.

    kept  the differences that are left in their products, and why
    """

    chosen: Assignment
    other: Assignment | None
    kept: tuple[str, ...]


def cheapest_form(
    assignment: Assignment,
    dtypes: Mapping[str, DType],
    price: Price,
    effort: Effort,
    asked: bool = False,
) -> Forms:
    """The assignment with sums multiplied out where its price is clearly less then.

    price  what all kernels of an assignment are expected to cost
    asked  whether they are to be multiplied out, whatever it costs
    """
    kept = tuple(_kept(assignment, dtypes))
    options = (*_once(assignment, dtypes), *_everywhere(assignment, dtypes))
    found = _priced(options, price, effort)
    if not found:
        return Forms(assignment, None, kept)
    best = min(found, key=found.__getitem__)
    least = found[best]
    for _ in range(ROUNDS):
        more = _priced(_once(best, dtypes), price, effort)
        if not more or min(more.values()) >= least:
            break
        best = min(more, key=more.__getitem__)
        least = more[best]
    if asked or least * GAIN < price(assignment):
        return Forms(best, assignment, kept)
    return Forms(assignment, best, kept)


def _priced(options: Iterable[Assignment], price: Price, effort: Effort) -> dict[Assignment, float]:
    """What the first few forms cost, as far as there is time."""
    found: dict[Assignment, float] = {}
    for option in dict.fromkeys(islice(options, OPTIONS)):
        if effort.over:
            effort.cut("before all sums that may be were multiplied out")
            break
        found[option] = price(option)
    return found


def may_multiply_out(assignment: Assignment, dtypes: Mapping[str, DType]) -> bool:
    """Whether there is a sum that may be multiplied out."""
    return any(True for _ in _once(assignment, dtypes))


def _once(assignment: Assignment, dtypes: Mapping[str, DType]) -> Iterator[Assignment]:
    """The assignment with one of its sums multiplied out, for each that may be."""
    whole = expression_dtype(assignment.value, dtypes)
    for site in _sites(assignment.value):
        if not _loses_digits(site, whole):
            value = _out(assignment.value, site, whole, dtypes)
            if value is not None and len(split_terms(value)) <= TERMS:
                yield replace(assignment, value=value)


def _everywhere(assignment: Assignment, dtypes: Mapping[str, DType]) -> Iterator[Assignment]:
    """The assignment with all of its sums multiplied out that may be, where these are several."""
    found: list[Assignment] = []
    for _ in range(TERMS):
        option = next(_once(found[-1] if found else assignment, dtypes), None)
        if option is None:
            break
        found.append(option)
    yield from found[1:][-1:]


def _kept(assignment: Assignment, dtypes: Mapping[str, DType]) -> Iterator[str]:
    """The differences that are left in their products, and why."""
    whole = expression_dtype(assignment.value, dtypes)
    for site in _sites(assignment.value):
        if _loses_digits(site, whole) and _out(assignment.value, site, whole, dtypes) is not None:
            yield (
                f"{to_text(site)} is not multiplied out: differences keep digits that those of "
                "products lose; distribute(…) does it"
            )


# ---------------------------------------------------------------- sums in products


def _sites(expr: Expr) -> Iterator[Call]:
    """The sums that a product, or the numerator of a quotient, has among its factors, where any
    index is summed around or inside them: without loops more nothing is to be gained."""
    products = (n for n, _ in walk(expr) if isinstance(n, Call) and not n.operator.additive)
    for product in products:
        for arg, linear in zip(product.args, product.operator.linear, strict=False):
            inside = arg
            while isinstance(inside, Reduce) and inside.operator.additive:
                inside = inside.body
            several = isinstance(inside, Call) and len(tuple(_terms(inside))) > 1
            if linear and several and free_indices(inside) and _is_summed(expr, inside):
                assert isinstance(inside, Call)
                yield inside


def _is_summed(expr: Expr, site: Expr) -> bool:
    """Whether there is a sum over an index around or beside a site, or in it."""
    term = next(t for t in _outer_terms(expr) if _has(t, site))
    return any(isinstance(node, Reduce) for node, _ in walk(term))


def _outer_terms(expr: Expr) -> Iterator[Expr]:
    if isinstance(expr, Call) and expr.operator.additive:
        for arg in expr.args:
            yield from _outer_terms(arg)
    else:
        yield expr


def _has(expr: Expr, site: Expr) -> bool:
    return any(node is site for node, _ in walk(expr))


def _terms(expr: Expr, negative: bool = False) -> Iterator[Signed]:
    """The terms of nested sums: a - (b + c) → + a, - b, - c."""
    if isinstance(expr, Call) and expr.operator.additive:
        for arg, sign in zip(expr.args, expr.operator.signs, strict=True):
            yield from _terms(arg, negative != (sign < 0))
    else:
        yield negative, expr


def _loses_digits(site: Call, whole: DType) -> bool:
    """Whether there are terms of both signs, in a type that is rounded."""
    signs = {minus != _is_negative(term) for minus, term in _terms(site)}
    return whole.kind in "fc" and len(signs) > 1


def _is_negative(expr: Expr) -> bool:
    """Whether a product has an odd number of negative numbers among its factors, as far as the text
    says."""
    match expr:
        case Literal(value):
            return not isinstance(value, complex) and value < 0
        case Call(operator, (arg,)) if operator == NEG:
            return not _is_negative(arg)
        case Call(operator, args) if not operator.additive:
            return sum(map(_is_negative, args)) % 2 == 1
        case Reduce(_, _, body):
            return _is_negative(body)
    return False


# ---------------------------------------------------------------- multiplying out


def _out(expr: Expr, site: Call, whole: DType, dtypes: Mapping[str, DType]) -> Expr | None:
    """`expr` with one of its sums multiplied out, as far as the products and sums around it are
    linear; None where that changes nothing, or a part is computed in another type than the whole.
    """
    if _type_of(site, dtypes) != whole:
        return None
    parts = _lifted(expr, site, whole, dtypes)
    value = None if parts is None else _joined(parts, whole, dtypes)
    return None if value == expr else value


def _type_of(expr: Expr, dtypes: Mapping[str, DType]) -> DType | None:
    """The type that an expression is computed in; None where it has a number that its operands have
    no room for, but those of the sum that it was a part of had."""
    try:
        return expression_dtype(expr, dtypes)
    except NumberOverflowError:
        return None


def _lifted(
    expr: Expr, site: Call, whole: DType, dtypes: Mapping[str, DType]
) -> tuple[Signed, ...] | None:
    """The terms that `expr` becomes: one where the site ends inside of what is not linear in it."""
    if expr is site:
        return tuple(_terms(site))
    below = children(expr)
    place = next(k for k, child in enumerate(below) if _has(child, site))
    parts = _lifted(below[place], site, whole, dtypes)
    if parts is None:
        return None
    if _moves_through(expr, place, parts):
        return tuple((minus, _with(expr, place, part)) for minus, part in parts)
    if isinstance(expr, Reduce) and len(parts) > 1:
        return None  # a part without its index would be added up as often as it has coordinates
    ended = _joined(parts, whole, dtypes)
    return None if ended is None else ((False, _with(expr, place, ended)),)


def _moves_through(expr: Expr, place: int, parts: tuple[Signed, ...]) -> bool:
    """Whether `expr` of a sum is the sum of `expr` of its terms."""
    if isinstance(expr, Reduce):
        return expr.operator.additive and all(expr.index in free_indices(p) for _, p in parts)
    return isinstance(expr, Call) and not expr.operator.additive and expr.operator.linear[place]


def _with(expr: Expr, place: int, part: Expr) -> Expr:
    """`expr` with another of the expressions directly below it."""
    if isinstance(expr, Reduce):
        return replace(expr, body=part)
    assert isinstance(expr, Call)
    return replace(expr, args=(*expr.args[:place], part, *expr.args[place + 1 :]))


def _joined(parts: tuple[Signed, ...], whole: DType, dtypes: Mapping[str, DType]) -> Expr | None:
    """The sum of terms; None where one is of another type than the whole."""
    (negative, first), *others = parts
    if others and any(_type_of(part, dtypes) != whole for _, part in parts):
        return None
    found: Expr = Call(NEG, (first,)) if negative else first
    for minus, part in others:
        found = Call(SUB if minus else ADD, (found, part))
    return found
