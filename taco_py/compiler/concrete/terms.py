"""The additive terms of an expression, with the sums around each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np

from codegen.names import Names
from codegen.records import dataclass
from taco_py.language.notation.checks import all_indices
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import ADD, FILLED, SUB, Operator
from taco_py.language.notation.tree import (
    children,
    is_additive,
    is_reduction_by,
    is_sum,
    map_accesses,
    map_children,
    peel_reductions,
)


@dataclass(frozen=True, slots=True)
class Term:
    """± sum over `reduced` of `body`, or the reduction by another operator."""

    negative: bool
    reduced: tuple[str, ...]
    body: Expr
    operator: Operator = ADD

    def signed(self, dtype: str) -> Expr:
        """Return the body, subtracted from zero in `dtype` if the term is negative.

        In the body's own type a difference of unsigned numbers would wrap too early.
        """
        zero = Literal(0, dtype=dtype)
        return Call(SUB, (zero, self.body)) if self.negative else self.body

    def as_sum(self, dtype: str) -> Expr:
        """Return the body with 0 in place of the identity that its fill value is in the reduction.

        min over j of filled(A[i,j] + x[j], inf)  →  filled(A[i,j] + x[j], 0)
        """
        match self.body:
            case Call(operator, (arg, Literal(value))) if operator == FILLED:
                if value == self.operator.identity_of(np.dtype(dtype)):
                    return Call(FILLED, (arg, Literal(0)))
        return self.body


def split_terms(expr: Expr) -> tuple[Term, ...]:
    """Split an expression into its terms: `a - sum(j, b) + c` → +a, -sum(j) b, +c.

    A sum over several added products stays one term: its loop runs over their union. A reduction by
    another operator is one term where it is the full expression, or is combined with others by its
    operator: min(d, min(i, b)) → the terms d and min over i of b. Elsewhere it is inside of one.
    """
    if (reduce := top_reduction(expr)) is not None:
        return (_reduced_by(reduce),)
    if (operator := accumulating(expr)) is not None:
        return tuple(_accumulated(part, operator) for part in children(expr))
    return _split_sum(expr)


def accumulating(expr: Expr) -> Operator | None:
    """Return the operator, not a sum, by which a value and a reduction by it are combined.

    min(d[j], min(i, A[i,j]))  →  min
    """
    match expr:
        case Call(operator, args) if operator.associative and operator.commutative:
            matches = [is_reduction_by(arg, operator) for arg in args]
            return operator if any(matches) and not operator.additive else None
    return None


def _accumulated(part: Expr, operator: Operator) -> Term:
    if is_reduction_by(part, operator):
        return _reduced_by(part)
    return Term(False, (), part, operator)


def _split_sum(expr: Expr) -> tuple[Term, ...]:
    match expr:
        case Call(operator, args) if operator.additive:
            return tuple(
                Term(term.negative != (sign < 0), term.reduced, term.body)
                for arg, sign in zip(args, operator.signs, strict=True)
                for term in _split_sum(arg)
            )
        case Reduce(operator, index, body) if operator.additive:
            inner = _split_sum(body)
            if len(inner) == 1:
                (term,) = inner
                return (Term(term.negative, (index, *term.reduced), term.body),)
            return (Term(False, (index,), body),)
    return (Term(False, (), expr),)


def top_reduction(expr: Expr) -> Reduce | None:
    """Return the reduction by another operator than a sum that an expression is, if any.

    The reduction may be filled with 0 where nothing is reduced.
    """
    match expr:
        case Reduce(operator) if not operator.additive:
            return expr
        case Call(operator, (Reduce() as inside, Literal(value))) if operator == FILLED:
            return inside if value == 0 and not inside.operator.additive else None
    return None


def _reduced_by(reduce: Reduce) -> Term:
    """Return the term of a reduction: `max(i, max(j, b))` → max over i and j of b."""
    indices, body = peel_reductions(reduce, reduce.operator)
    return Term(False, indices, body, reduce.operator)


def terms_in_turn(expr: Expr, is_full: Callable[[Expr], bool]) -> tuple[Term, ...]:
    """Return the terms of `expr` in an order in which adding them up rounds as `expr` does.

    a - b + c          →  +a, -b, +c
    a + (b - c)        →  +b, -c, +a
    (a + b) - (c + d)  →  +a, +b, -(c + d)

    is_full  whether a sum has the type of the full expression: it does not wrap or round earlier
    """
    if not (is_additive(expr) and is_full(expr)):
        return (Term(False, (), expr),)
    parts = [
        _negated(terms_in_turn(arg, is_full)) if sign < 0 else terms_in_turn(arg, is_full)
        for arg, sign in zip(expr.args, expr.operator.signs, strict=True)
    ]
    if len(parts) == 1:
        return parts[0]
    left, right = parts
    if len(left) > 1 and len(right) > 1:
        return (*left, Term(expr.operator.signs[1] < 0, (), expr.args[1]))
    return (*right, *left) if len(right) > 1 else (*left, *right)


def _negated(terms: Iterable[Term]) -> tuple[Term, ...]:
    return tuple(replace(term, negative=not term.negative) for term in terms)


def summed(expr: Expr, indices: Iterable[str]) -> Expr:
    """Return `expr` under a sum over each of the indices, the first outermost."""
    for index in reversed(tuple(indices)):
        expr = Reduce(ADD, index, expr)
    return expr


def map_terms(expr: Expr, function: Callable[[Expr], Expr]) -> Expr:
    """Return `function` applied to each additive term with its sums, in the order of `split_terms`.

    map_terms(a - sum(j, b), f) = f(a) - f(sum(j, b))
    """
    if is_additive(expr):
        return map_children(expr, lambda arg: map_terms(arg, function))
    if accumulating(expr) is not None:
        return map_children(expr, function)
    return function(expr)


def sums_apart(assignment: Assignment) -> Assignment:
    """Return the assignment with distinct names for the indices of all sums of a term.

    y = x * (sum(i, sum(k, A[i,k])) + sum(k, sum(i, B[k,i])))
    → y = x * (sum(i, sum(k, A[i,k])) + sum(k_1, sum(i_1, B[k_1,i_1])))

    One loop order for the full term can then bind every index after those of outer sums.
    """
    names = Names(all_indices(assignment))
    value = map_terms(assignment.value, lambda term: _with_distinct_indices(term, set(), names))
    return assignment if value is assignment.value else replace(assignment, value=value)


def _with_distinct_indices(expr: Expr, used: set[str], names: Names) -> Expr:
    if isinstance(expr, Reduce) and expr.index in used:
        old, fresh = expr.index, names.fresh(expr.index)
        body = map_accesses(expr.body, lambda access: _renamed(access, old, fresh))
        expr = replace(expr, index=fresh, body=body)
    if isinstance(expr, Reduce):
        used.add(expr.index)
    return map_children(expr, lambda child: _with_distinct_indices(child, used, names))


def _renamed(access: Access, old: str, new: str) -> Access:
    if old not in access.indices:
        return access
    return replace(access, indices=tuple(new if i == old else i for i in access.indices))


def sums_outside(assignment: Assignment) -> Assignment:
    """Return the assignment with sums moved out of the products that are linear in them.

    y[i] = A[i,k] * sum(j, B[k,j] * x[j])  →  y[i] = sum(j, A[i,k] * B[k,j] * x[j])

    Its loops then come in any order. No sum may have the index of another (`sums_apart`).
    """
    value = _outside(assignment.value)
    return assignment if value is assignment.value else replace(assignment, value=value)


def _outside(expr: Expr) -> Expr:
    expr = map_children(expr, _outside)
    if not isinstance(expr, Call) or expr.operator.additive or not all(expr.operator.linear):
        return expr
    for place, arg in enumerate(expr.args):
        if is_sum(arg):
            args = (*expr.args[:place], arg.body, *expr.args[place + 1 :])
            return replace(arg, body=_outside(replace(expr, args=args)))
    return expr


def reductions(expr: Expr) -> Iterator[Reduce]:
    """Yield the outermost reductions of `expr`, left to right."""
    if isinstance(expr, Reduce):
        yield expr
        return
    for child in children(expr):
        yield from reductions(child)
