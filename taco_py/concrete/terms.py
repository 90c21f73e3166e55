"""The additive terms of an expression, with the sums around each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from taco_py.notation.nodes import Call, Expr, Reduce
from taco_py.notation.operators import ADD, NEG, SUB
from taco_py.notation.tree import children, map_children

NEGATES = {ADD: (False, False), SUB: (False, True), NEG: (True,)}
"""The operators between terms: per argument, whether it is subtracted."""


@dataclass(frozen=True, slots=True)
class Term:
    """± sum over `reduced` of `body`."""

    negative: bool
    reduced: tuple[str, ...]
    body: Expr

    @property
    def signed(self) -> Expr:
        """The body, negated if the term is."""
        return Call(NEG, (self.body,)) if self.negative else self.body


def split_terms(expr: Expr) -> tuple[Term, ...]:
    """`a - sum(j, b) + c` → the terms +a, -sum(j) b, +c.

    A sum over several added products stays one term: its loop runs over their union.
    """
    match expr:
        case Call(operator, args) if operator in NEGATES:
            return tuple(
                Term(term.negative != negated, term.reduced, term.body)
                for arg, negated in zip(args, NEGATES[operator], strict=True)
                for term in split_terms(arg)
            )
        case Reduce(operator, index, body) if operator == ADD:
            inner = split_terms(body)
            if len(inner) == 1:
                (term,) = inner
                return (Term(term.negative, (index, *term.reduced), term.body),)
            return (Term(False, (index,), body),)
    return (Term(False, (), expr),)


def map_terms(expr: Expr, function: Callable[[Expr], Expr]) -> Expr:
    """`function` applied to each additive term with its sums, in the order of `split_terms`.

    map_terms(a - sum(j, b), f) = f(a) - f(sum(j, b))
    """
    if isinstance(expr, Call) and expr.operator in NEGATES:
        return map_children(expr, lambda arg: map_terms(arg, function))
    return function(expr)


def reductions(expr: Expr) -> Iterator[Reduce]:
    """The outermost reductions of `expr`, left to right."""
    if isinstance(expr, Reduce):
        yield expr
        return
    for child in children(expr):
        yield from reductions(child)
