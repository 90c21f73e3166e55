"""Programs of several statements over arrays that are changed in place.

    for t in T:                                  For("t", Range((0,), (T,)), …)
        B[i] = 0.5 * (A[i-1] + A[i+1])           Update(B[i], None, …)
        A[i] = B[i]

A statement's value is an expression of index notation (`notation.nodes`) in which the indices of an
access are affine expressions as text, `"i - 1"`; `subscripts` returns them as values. Spans are the
origins of nodes in the text and take no part in equality.
"""

from __future__ import annotations

from dataclasses import field

import numpy as np

from codegen.records import dataclass
from polyhedral.affine import Affine, parse_affine
from taco_py.language.diagnostics.source import Span
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access, Expr
from taco_py.language.notation.operators import Operator


def _function(name: str, arity: int, evaluate: np.ufunc, floats: bool = False) -> Operator:
    return Operator(name, name, arity, name, 4, true_division=floats, evaluate=evaluate)


FUNCTIONS = {
    function.name: function
    for function in (
        _function("sqrt", 1, np.sqrt, floats=True),
        _function("min", 2, np.minimum),
        _function("max", 2, np.maximum),
    )
}
"""The functions that a program may call, beside the operators of index notation."""


LARGEST_SIZE = 2**31
"""The largest integer in ranges and subscripts, sizes and tiles: a product of two fits 64 bits."""


@dataclass(frozen=True, slots=True)
class Range:
    """From the greatest of `lower` to the least of `upper`, which is excluded.

    No bounds on one side leave that side open: there the loop ends where accesses leave their
    arrays.
    """

    lower: tuple[Affine, ...] = ()
    upper: tuple[Affine, ...] = ()


@dataclass(frozen=True, slots=True)
class Update:
    """`target = value`, or `target op= value` when `operator` is given."""

    target: Access
    operator: Operator | None
    value: Expr
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def accesses(self) -> tuple[Access, ...]:
        """Return the target, then the accesses of the value, left to right."""
        return (self.target, *accesses(self.value))


@dataclass(frozen=True, slots=True)
class For:
    """`body` for each value of `index`, in ascending order."""

    index: str
    range: Range
    body: tuple[Item, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


Item = Update | For


@dataclass(frozen=True, slots=True)
class Program:
    body: tuple[Item, ...]


def subscripts(access: Access) -> tuple[Affine, ...]:
    """Return the subscripts of an access as values."""
    return tuple(parse_affine(text) for text in access.indices)
