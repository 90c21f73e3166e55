"""Reductions composed of others: means, variances and the places of extrema.

    mean(j, e)    sum(j, e) over the number of values of j, in the type of NumPy's mean
    var(j, e)     mean(j, abs(e - mean(j', e'))**2)
    argmax(j, e)  min(j, place(e == max(j', e') or e is NaN, j, size(j)))      the first, as NumPy's

Inside of a reduction over j, e' is e at an index j' of the same size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import NotationError
from taco_py.language.diagnostics.source import Span
from taco_py.language.notation.nodes import Access, Call, Expr, Reduce, Subscript
from taco_py.language.notation.operators import ADD, MUL, PLACE, QUOTIENT, SUB, Operator, power
from taco_py.language.notation.rewrites.index_numbers import INDEX, SIZE, index_number, index_size
from taco_py.language.notation.tree import map_children

Indices = tuple[str, ...]
PARTS = ("mean", "var", "argmin", "argmax")
"""Names of the composed reductions in texts."""


def spelled(expr: Call | Reduce) -> str:
    """Return the name of an operation in the text: argmax, of which a part is a reduction by
    max."""
    text = "" if expr.span is None else expr.span.source.text[expr.span.start : expr.span.stop]
    word = text.partition("(")[0].strip()
    return word if word in PARTS else str(expr.operator)


def mean(indices: Indices, body: Expr, span: Span) -> Expr:
    """Divide a sum by the number of its terms."""
    sizes: list[Expr] = [index_size(index, span) for index in indices]
    count = reduce(lambda one, other: Call(MUL, (one, other)), sizes)
    return Call(QUOTIENT, (_reduced(ADD, indices, body, span), count), span)


def variance(magnitude: Operator, indices: Indices, body: Expr, span: Span) -> Expr:
    """Return the mean of the squared distances from the mean.

    magnitude  the operator of absolute values
    """
    centre = mean(tuple(map(_other, indices)), _at_others(body, indices), span)
    distance = Call(magnitude, (Call(SUB, (body, centre)),))
    return mean(indices, Call(power(2), (distance,)), span)


@dataclass(frozen=True, slots=True)
class Places:
    """The operators that find the place of an extremum."""

    least: Operator
    equal: Operator
    unequal: Operator
    either: Operator

    def of(self, extremum: Operator, indices: Indices, body: Expr, span: Span) -> Expr:
        """Find the first index with an extremum or a NaN.

        Raises NotationError for several indices.
        """
        if len(indices) != 1:
            raise NotationError(
                f"Expected one index to find the place of an extremum in, found {len(indices)}",
                span,
                "name one index, and reduce over the others inside",
            )
        (index,) = indices
        best = _reduced(extremum, (_other(index),), _at_others(body, indices), span)
        is_best, is_nan = Call(self.equal, (body, best)), Call(self.unequal, (body, body))
        places = index_number(index, span), index_size(index, span)
        place = Call(PLACE, (Call(self.either, (is_best, is_nan)), *places))
        return Reduce(self.least, index, place, span)


def _other(index: str) -> str:
    """Return the name of a second index of the same size, for a reduction inside."""
    return f"{index}__"


def _at_others(expr: Expr, indices: Indices) -> Expr:
    """Rename `indices` of an expression to second indices."""
    new = {index: _other(index) for index in indices}

    def renamed(access: Access) -> Access:
        names = tuple(new.get(index, index) for index in access.indices)
        modes = tuple(_subscript(mode, new) for mode in access.subscripts)
        tensor = access.tensor
        for kind in (INDEX, SIZE):
            if tensor.startswith(kind):
                name = tensor.removeprefix(kind)
                tensor = kind + new.get(name, name)
        return replace(access, tensor=tensor, indices=names, subscripts=modes)

    if isinstance(expr, Access):
        return renamed(expr)
    below = map_children(expr, lambda part: _at_others(part, indices))
    if isinstance(below, Reduce) and below.index in new:
        return replace(below, index=new[below.index])
    return below


def _subscript(mode: Subscript, new: Mapping[str, str]) -> Subscript:
    names = tuple((new.get(name, name), factor) for name, factor in mode.indices)
    gathered = tuple(
        (replace(a, indices=tuple(new.get(i, i) for i in a.indices)), factor)
        for a, factor in mode.gathered
    )
    return replace(mode, indices=names, gathered=gathered)


def _reduced(operator: Operator, indices: Indices, body: Expr, span: Span) -> Expr:
    for index in reversed(indices):
        body = Reduce(operator, index, body, span)
    return body
