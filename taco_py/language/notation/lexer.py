"""Tokens of index notation.

"y[i] += 2.5*x" -> name y, symbol [, name i, symbol ], symbol +=, number 2.5, symbol *, name x, end
"""

from __future__ import annotations

import re
from enum import Enum

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import NotationError
from taco_py.language.diagnostics.source import Source, Span


class TokenKind(Enum):
    NAME = "name"
    NUMBER = "number"
    SYMBOL = "symbol"
    END = "end"


@dataclass(frozen=True, slots=True)
class Token:
    kind: TokenKind
    text: str
    span: Span

    def __str__(self) -> str:
        if self.kind is not TokenKind.END:
            return repr(self.text)
        return {"": "the end of the text", "\n": "the end of the line"}.get(
            self.text, repr(self.text)
        )


# Compound symbols without a meaning are tokens too, so that a message shows the full symbol.
_TOKEN = re.compile(
    r"(?P<space>\s+|#[^\n]*)"
    r"|(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[jJ]?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<symbol>[-+*/&|^]=|[=!<>]=|\*\*|//|->|<<|>>|[-+*/%&|^~<>=()\[\],;])"
)

_HINTS = {
    "@": "write the sum with indices, as in y[i] = A[i,j] * x[j]",
    ":": "slice the operand before, as in A=A[:, 0], and write its other indices alone",
    "'": "names stand without quotes",
    '"': "names stand without quotes",
    ".": "call functions before, and pass their result as an operand",
    "{": "indices stand in square brackets, as in A[i,j]",
}


def tokenize(text: str) -> tuple[Token, ...]:
    """Split `text` into tokens, the last of kind END.

    Raises:
        NotationError: a character that no token contains.
    """
    source, tokens, position = Source(text), [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _unknown_character(source, position)
        if match.lastgroup != "space":
            span = Span(source, match.start(), match.end())
            tokens.append(Token(TokenKind(match.lastgroup), match.group(), span))
        position = match.end()
    return (*tokens, Token(TokenKind.END, "", Span(source, len(text), len(text) + 1)))


def _unknown_character(source: Source, position: int) -> NotationError:
    character = source.text[position]
    hint = _HINTS.get(character)
    if source.text.startswith("...", position):
        hint = "name every index; tp.einsum takes '...'"
    if character == "." and source.text[:position].endswith(("np", "numpy")):
        hint = "NumPy's functions go by their names alone, as in exp(x[i])"
    if hint is None and character.isidentifier():
        hint = "names consist of the letters a-z and A-Z, digits and underscores"
    return NotationError(
        f"Expected a name, a number, brackets or one of + - * / = +=, found {character!r}",
        Span(source, position, position + 1),
        hint or 'an example of the notation is "y[i] = A[i,j] * x[j] + 2.5 * b[i]"',
    )
