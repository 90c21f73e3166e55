"""The subscripts of an access, by recursive descent.

subscript = ["-" | "+"] multiple (("+" | "-") multiple)*
multiple  = part ("*" part)*                 of which one at most is no number
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
_WHOLE = "a subscript is a sum of whole multiples, as in 2*i + k - 1 or p[i] + 1"
_LARGEST = 2**62
"""Beyond it a position passes 64 bits."""


class SubscriptRules(Cursor):
    """Methods that consume the subscripts between square brackets."""

    def subscripts(self, opening: Token) -> tuple[Subscript, ...]:
        """Return subscripts with commas between them, up to the ']', which is not consumed."""
        found: list[Subscript] = []
        while not self.at("]"):
            if self.ended:
                raise unclosed(opening, "]", self.token)
            if found:
                self.expect(",", "',' or ']'", self.subscript_hint())
            found.append(self.subscript())
        return tuple(found)

    def subscript(self) -> Subscript:
        """Return a sum of multiples."""
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
        if any(abs(each) > _LARGEST for each in (total.constant, *factors)):
            raise NotationError(
                "Expected a subscript of at most 62 bits, found a larger number",
                self.since(first),
                "no operand has such a position",
            )
        return total

    def multiple(self) -> Subscript:
        """Return parts with `*` between them."""
        product = self.part()
        while self.at("*"):
            times = self.take()
            other = self.part()
            if _is_varied(product) and _is_varied(other):
                raise NotationError(
                    "Expected a whole multiple of an index, found a product of two",
                    times.span,
                    f"{_WHOLE}; if it was meant to stand behind the brackets, close them before it",
                )
            number, whole = (other, product) if _is_varied(product) else (product, other)
            product = _times(whole, number.constant)
        return product

    def part(self) -> Subscript:
        """Return a number, an index, a number that an operand holds, or a sum in parentheses."""
        token = self.token
        if token.kind is TokenKind.NUMBER:
            return Subscript(constant=self.whole_number())
        if token.kind is TokenKind.NAME:
            self.take()
            if not self.at("["):
                return Subscript(((token.text, 1),))
            return Subscript((), ((self.indexed(token), 1),))
        if self.at("("):
            self.take()
            inner = self.subscript()
            self.expect(")", "an operator or ')'", _WHOLE)
            return inner
        raise self.error(_WHAT, self.subscript_hint())

    def whole_number(self) -> int:
        """Return the integer that stands here."""
        token = self.token
        if not token.text.isdigit():
            raise self.error("a whole number in a subscript", _WHOLE)
        value = self.number().value
        assert isinstance(value, int)
        return value

    def indexed(self, name: Token) -> Access:
        """Return the access of the tensor `name`, at whose opening bracket the cursor is."""
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
        """What to write in place of what stands where a subscript has to end or to begin."""
        if self.at("/", "//", "**"):
            return _WHOLE
        if self.at("("):
            return "numbers that an operand holds are written with square brackets, as in A[p[i],j]"
        return None


def unclosed(opening: Token, closing: str, found: Token) -> NotationError:
    """Make the error about a bracket that nothing closes."""
    return NotationError(
        f"Expected {closing!r} for this {opening.text!r}, found {found}",
        opening.span,
        f"close it with {closing!r}",
    )


def _is_varied(subscript: Subscript) -> bool:
    return bool(subscript.indices or subscript.gathered)


def _sum(one: Subscript, other: Subscript) -> Subscript:
    """Add two subscripts; what cancels is left out."""
    return Subscript(
        _added((*one.indices, *other.indices)),
        _added((*one.gathered, *other.gathered)),
        one.constant + other.constant,
    )


def _added(terms: Iterable[tuple[Term, int]]) -> tuple[tuple[Term, int], ...]:
    found: dict[Term, int] = {}
    for term, factor in terms:
        found[term] = found.get(term, 0) + factor
    return tuple((term, factor) for term, factor in found.items() if factor)


def _times(subscript: Subscript, number: int) -> Subscript:
    """Multiply a subscript by a number."""
    return Subscript(
        _added((name, factor * number) for name, factor in subscript.indices),
        _added((access, factor * number) for access, factor in subscript.gathered),
        subscript.constant * number,
    )
