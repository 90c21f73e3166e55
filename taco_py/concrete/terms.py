"""The additive terms of an expression, with the sums around each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from taco_py.notation.nodes import Access, Call, Expr, Literal, Reduce
from taco_py.notation.operators import ADD, NEG, SUB


@dataclass(frozen=True, slots=True)
class Term:
    """± sum over `reduced` of `body`."""

    negative: bool
    reduced: tuple[str, ...]
    body: Expr


def split_terms(expr: Expr) -> tuple[Term, ...]:
    """`a - sum(j, b) + c` → the terms +a, -sum(j) b, +c.

    A sum over several added products stays one term: its loop runs over their union.
    """
    match expr:
        case Call(operator, (left, right)) if operator == ADD:
            return split_terms(left) + split_terms(right)
        case Call(operator, (left, right)) if operator == SUB:
            return split_terms(left) + tuple(_negated(t) for t in split_terms(right))
        case Call(operator, (operand,)) if operator == NEG:
            return tuple(_negated(t) for t in split_terms(operand))
        case Reduce(operator, index, body) if operator == ADD:
            inner = split_terms(body)
            if len(inner) == 1:
                (term,) = inner
                return (Term(term.negative, (index, *term.reduced), term.body),)
            return (Term(False, (index,), body),)
    return (Term(False, (), expr),)


def _negated(term: Term) -> Term:
    return Term(not term.negative, term.reduced, term.body)


def accesses(expr: Expr) -> Iterator[Access]:
    """Every access of `expr`, left to right, repeats included."""
    match expr:
        case Access():
            yield expr
        case Call(_, args):
            for arg in args:
                yield from accesses(arg)
        case Reduce(_, _, body):
            yield from accesses(body)
        case Literal():
            pass


def free_indices(expr: Expr) -> tuple[str, ...]:
    """Indices of `expr` that no reduction inside it binds, in order of first use."""
    match expr:
        case Access(_, indices):
            return tuple(dict.fromkeys(indices))
        case Call(_, args):
            return tuple(dict.fromkeys(i for arg in args for i in free_indices(arg)))
        case Reduce(_, index, body):
            return tuple(i for i in free_indices(body) if i != index)
        case Literal():
            return ()


def reductions(expr: Expr) -> Iterator[Reduce]:
    """The outermost reductions of `expr`, left to right."""
    match expr:
        case Reduce():
            yield expr
        case Call(_, args):
            for arg in args:
                yield from reductions(arg)


def all_indices(expr: Expr) -> tuple[str, ...]:
    """Every index of `expr`, bound or free, in order of first use."""
    return tuple(dict.fromkeys(i for access in accesses(expr) for i in access.indices))
