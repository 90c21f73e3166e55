"""The grammar of subscripts, by recursive descent.

subscript = ["-" | "+"] multiple (("+" | "-") multiple)*
multiple  = part ("*" part)*                 at most one part is no number
part      = integer | index | access with brackets | "(" subscript ")"

2*(i+1) - p[j]  ->  Subscript((("i", 2),), ((p[j], -1),), 2)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from taco_py.language.diagnostics.errors import NotationError
from taco_py.language.notation.cursor import Cursor
from taco_py.language.notation.lexer import Token, TokenKind
from taco_py.language.notation.nodes import Access, Subscript

Term = TypeVar("Term")

_WHAT = "the name of an index"
_MULTIPLES = "a subscript is a sum of whole multiples, as in 2*i + k - 1 or p[i] + 1"
_LARGEST = 2**62
"""The largest factor; beyond it a position exceeds 64 bits."""


class SubscriptRules(Cursor):
    """Methods that parse the subscripts between square brackets."""

    def subscripts(self, opening: Token) -> tuple[Subscript, ...]:
        """Parse subscripts with commas between them, up to the ']', which is not consumed."""
        result: list[Subscript] = []
        while not self.at("]"):
            if self.ended:
                raise unclosed(opening, "]", self.token)
            if result:
                self.expect(",", "',' or ']'", self.subscript_hint())
            result.append(self.subscript())
        return tuple(result)

    def subscript(self) -> Subscript:
        """Parse a sum of multiples."""
        first, total = self.token, Subscript()
        sign = -1 if self.at("-") else 1
        if self.at("-", "+"):
            self.take()
        while True:
            total = _sum(total, _times(self.multiple(), sign))
            if not self.at("+", "-"):
                break
            sign = -1 if self.take().text == "-" else 1
        factors = (factor for _, factor in (*total.indices, *total.gathered))
        if any(abs(number) > _LARGEST for number in (total.constant, *factors)):
            raise NotationError(
                "Expected a subscript of at most 62 bits, found a larger number",
                self.since(first),
                "no operand has such a position",
            )
        return total

    def multiple(self) -> Subscript:
        """Parse parts with `*` between them."""
        product = self.part()
        while self.at("*"):
            times = self.take()
            other = self.part()
            if _is_varied(product) and _is_varied(other):
                raise NotationError(
                    "Expected a whole multiple of an index, found a product of two",
                    times.span,
                    f"{_MULTIPLES}; if it was meant to stand behind the brackets, close them "
                    "before it",
                )
            number, varied = (other, product) if _is_varied(product) else (product, other)
            product = _times(varied, number.constant)
        return product

    def part(self) -> Subscript:
        """Parse a number, an index, a gathered element, or a sum in parentheses."""
        token = self.token
        if token.kind is TokenKind.NUMBER:
            return Subscript(constant=self.integer())
        if token.kind is TokenKind.NAME:
            self.take()
            if not self.at("["):
                return Subscript(((token.text, 1),))
            return Subscript((), ((self.indexed(token), 1),))
        if self.at("("):
            self.take()
            inner = self.subscript()
            self.expect(")", "an operator or ')'", _MULTIPLES)
            return inner
        raise self.error(_WHAT, self.subscript_hint())

    def integer(self) -> int:
        """Parse an integer."""
        token = self.token
        if not token.text.isdigit():
            raise self.error("a whole number in a subscript", _MULTIPLES)
        value = self.number().value
        assert isinstance(value, int)
        return value

    def indexed(self, name: Token) -> Access:
        """Parse the subscripts of the tensor `name`; the cursor is at its opening bracket."""
        opening = self.take()
        modes = self.subscripts(opening)
        self.take()
        span = self.since(name)
        plain = [mode.index for mode in modes]
        if None not in plain:
            return Access(name.text, tuple(index for index in plain if index), span)
        names = dict.fromkeys(index for mode in modes for index in mode.names)
        return Access(name.text, tuple(names), span, modes)

    def subscript_hint(self) -> str | None:
        """Suggest a spelling where a subscript ends or begins with an unexpected token."""
        if self.at("/", "//", "**"):
            return _MULTIPLES
        if self.at("("):
            return "numbers that an operand holds are written with square brackets, as in A[p[i],j]"
        return None


def unclosed(opening: Token, closing: str, token: Token) -> NotationError:
    """Build the error of a bracket that is never closed."""
    return NotationError(
        f"Expected {closing!r} for this {opening.text!r}, found {token}",
        opening.span,
        f"close it with {closing!r}",
    )


def _is_varied(subscript: Subscript) -> bool:
    return bool(subscript.indices or subscript.gathered)


def _sum(one: Subscript, other: Subscript) -> Subscript:
    """Add two subscripts and drop terms that cancel."""
    return Subscript(
        _sum_terms((*one.indices, *other.indices)),
        _sum_terms((*one.gathered, *other.gathered)),
        one.constant + other.constant,
    )


def _sum_terms(terms: Iterable[tuple[Term, int]]) -> tuple[tuple[Term, int], ...]:
    sums: dict[Term, int] = {}
    for term, factor in terms:
        sums[term] = sums.get(term, 0) + factor
    return tuple((term, factor) for term, factor in sums.items() if factor)


def _times(subscript: Subscript, number: int) -> Subscript:
    """Multiply a subscript by a number."""
    return Subscript(
        _sum_terms((name, factor * number) for name, factor in subscript.indices),
        _sum_terms((access, factor * number) for access, factor in subscript.gathered),
        subscript.constant * number,
    )
