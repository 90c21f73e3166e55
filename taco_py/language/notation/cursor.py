"""A cursor over tokens, the base of every recursive-descent parser."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from taco_py.language.diagnostics.errors import NotationError
from taco_py.language.diagnostics.source import Span
from taco_py.language.notation.checks import MAX_DEPTH
from taco_py.language.notation.lexer import Token, TokenKind
from taco_py.language.notation.nodes import Call, Expr, Literal
from taco_py.language.notation.operators import Operator

_LARGEST_INTEGER = 2**64 - 1


class Cursor:
    """A position in a sequence of tokens that ends with the END token. Each method of a parser
    consumes one rule of the grammar and returns its value."""

    too_deep = "compute a part of the expression first and use the result as an operand"
    """The hint where parentheses are nested too deep."""

    def __init__(self, tokens: tuple[Token, ...]) -> None:
        self.tokens = tokens
        self.position = 0
        self.depth = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    @property
    def ended(self) -> bool:
        return self.token.kind is TokenKind.END

    def ahead(self, count: int) -> Token:
        """Return the token `count` positions ahead; the END token beyond the last one."""
        return self.tokens[min(self.position + count, len(self.tokens) - 1)]

    def take(self) -> Token:
        token = self.token
        self.position = min(self.position + 1, len(self.tokens) - 1)
        return token

    def at(self, *texts: str) -> bool:
        """Tell whether the current token is a symbol or name among `texts`."""
        return self.token.kind in (TokenKind.SYMBOL, TokenKind.NAME) and self.token.text in texts

    def expect(self, symbol: str, what: str, hint: str | None = None) -> Token:
        if not self.at(symbol):
            raise self.error(what, hint)
        return self.take()

    def error(self, expected: str, hint: str | None = None) -> NotationError:
        return NotationError(f"Expected {expected}, found {self.token}", self.token.span, hint)

    def since(self, first: Token) -> Span:
        """Return the span from `first` to the token that was consumed last."""
        last = self.tokens[self.position - 1].span
        return Span(last.source, first.span.start, last.stop)

    def chain(self, operand: Callable[[], Expr], operators: Mapping[str, Operator]) -> Expr:
        """Parse operands with operators between them, grouped from the left."""
        first, left = self.token, operand()
        while self.token.text in operators:
            operator = operators[self.take().text]
            left = Call(operator, (left, operand()), self.since(first))
        return left

    def number(self) -> Literal:
        """Parse a number. Raises NotationError for more than 64 bits."""
        token = self.take()
        value = _value(token)
        if value is None:
            raise NotationError(
                f"Expected a number that fits 64 bits, found {_shortened(token.text)}",
                token.span,
                hint="write a large number as a floating-point one below 1.8e308",
            )
        return Literal(value, token.span)

    def nested(self, rule: Callable[[], Expr], opening: Token) -> Expr:
        """Parse `rule` inside the parentheses that `opening` begins."""
        if self.depth == MAX_DEPTH:
            raise NotationError(
                f"Expected parentheses nested at most {MAX_DEPTH} deep, found more",
                opening.span,
                self.too_deep,
            )
        self.depth += 1
        inner = rule()
        self.depth -= 1
        return inner


def _value(token: Token) -> int | float | complex | None:
    """Return the number that a token spells, None where it exceeds 64 bits."""
    text = token.text.lower()
    if text.endswith("j"):
        imaginary = float(text[:-1])
        return None if imaginary == float("inf") else complex(0.0, imaginary)
    if not text.isdigit():
        real = float(text)
        return None if real == float("inf") else real
    digits = text.lstrip("0") or "0"
    # the length first: int() itself refuses thousands of digits
    return int(digits) if len(digits) <= 20 and int(digits) <= _LARGEST_INTEGER else None


def _shortened(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:20]}… ({len(text)} characters)"
