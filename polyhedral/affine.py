"""Integer combinations of loop variables and parameters.

>>> i, n = variable("i"), variable("N")
>>> print(2 * i - n + 1)
-N + 2*i + 1
>>> parse_affine("2*(i + j) - i").evaluate({"i": 3, "j": 10})
23
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from keyword import iskeyword
from typing import Any

from codegen.records import dataclass
from polyhedral.errors import NonAffineError


@dataclass(frozen=True, slots=True)
class Affine:
    """`sum(coefficient * name) + constant`; terms in the order of their names, none with 0.

    Make one with `affine`, `variable` or `parse_affine`, or from others by `+ - *`.
    """

    terms: tuple[tuple[str, int], ...] = ()
    constant: int = 0

    def coefficient(self, name: str) -> int:
        """Return the factor of `name`, 0 where it does not occur."""
        return dict(self.terms).get(name, 0)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.terms)

    @property
    def is_constant(self) -> bool:
        return not self.terms

    def evaluate(self, values: Mapping[str, int]) -> int:
        """Return the number that the expression stands for where every name has a value."""
        return self.constant + sum(factor * values[name] for name, factor in self.terms)

    def substitute(self, values: Mapping[str, Affine]) -> Affine:
        """Return the expression with each name of `values` replaced, all at once."""
        parts = [values.get(name, variable(name)) * factor for name, factor in self.terms]
        return sum(parts, Affine((), self.constant))

    def __add__(self, other: Affine | int) -> Affine:
        right = affine(other)
        return _normal([*self.terms, *right.terms], self.constant + right.constant)

    def __mul__(self, factor: int) -> Affine:
        return _normal([(n, c * factor) for n, c in self.terms], self.constant * factor)

    def __neg__(self) -> Affine:
        return self * -1

    def __sub__(self, other: Affine | int) -> Affine:
        return self + -affine(other)

    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, other: int) -> Affine:
        return -self + other

    def __str__(self) -> str:
        parts = [_term(factor, name) for name, factor in self.terms]
        if self.constant or not parts:
            parts.append(str(self.constant))
        return " + ".join(parts).replace("+ -", "- ")


def _term(factor: int, name: str) -> str:
    return {1: name, -1: f"-{name}"}.get(factor, f"{factor}*{name}")


def _normal(terms: Iterable[tuple[str, int]], constant: int) -> Affine:
    total: dict[str, int] = {}
    for name, factor in terms:
        total[name] = total.get(name, 0) + factor
    return Affine(tuple(sorted((n, c) for n, c in total.items() if c)), constant)


def variable(name: str) -> Affine:
    """Return the loop variable or parameter `name`."""
    return Affine(((name, 1),))


def affine(value: Affine | int | str) -> Affine:
    """Return `value` itself, a constant, or the value of a text (`parse_affine`).

    Raises NonAffineError for anything else.
    """
    match value:
        case int():
            return Affine((), value)
        case str():
            return parse_affine(value)
        case Affine():
            return value
        case _:
            raise NonAffineError(f"Expected an affine expression, found {value!r}.")


def parse_affine(text: str) -> Affine:
    """Return the value of `text`: integers, names, `+`, `-`, `*` by an integer, and parentheses.

    Raises NonAffineError that quotes the first part that is not allowed.
    """
    text = text.strip()
    words = [word for word in re.findall(r"[^\W\d]\w*", text) if iskeyword(word)]
    if words:
        raise NonAffineError(
            f"Expected names that are no keywords of Python, found {words[0]}.",
            f"give it another name, for instance {words[0]}_",
        )
    try:
        return _value(ast.parse(text, mode="eval").body)
    except (SyntaxError, RecursionError, MemoryError) as error:
        quoted = repr(text) if len(text) <= 80 else f"{text[:60]!r}… ({len(text)} characters)"
        raise NonAffineError(f"Expected an affine expression, found {quoted}.") from error


def _value(node: Any) -> Affine:
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return Affine((), value)
        case ast.Name(id=name):
            return variable(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _value(left) + _value(right)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return _value(left) - _value(right)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _product(_value(left), _value(right), node)
    raise _not_affine(node)


def _product(left: Affine, right: Affine, node: ast.BinOp) -> Affine:
    if left.is_constant:
        return right * left.constant
    if right.is_constant:
        return left * right.constant
    raise _not_affine(node)


def _not_affine(node: ast.expr) -> NonAffineError:
    return NonAffineError(
        f"Expected an integer combination of loop variables and parameters, "
        f"found {ast.unparse(node)}."
    )
