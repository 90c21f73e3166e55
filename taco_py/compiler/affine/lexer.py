"""The text of a program as lines of tokens.

    for t in 0..T:          indent 0: for t in 0 .. T :
        x[t+1] += 0.5*x[t]  indent 4: x [ t + 1 ] += 0.5 * x [ t ]

A line continues where a bracket is open. Text after `#` is a comment.
"""

from __future__ import annotations

import re

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import NotationError
from taco_py.language.diagnostics.source import Source, Span
from taco_py.language.notation.lexer import Token, TokenKind

# `0..N` is a range: a number does not take a dot that another dot follows.
_TOKEN = re.compile(
    r"(?P<space>[ \t\r]+|\#[^\n]*)"
    r"|(?P<newline>\n)"
    r"|(?P<number>(?:[0-9]+(?:\.(?!\.)[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<symbol>\.\.|[-+*/]=|==|\*\*|//|[-+*/=()\[\],:;])"
)
_EXAMPLE = 'an example is "for t in T: B[i] = 0.5 * (A[i-1] + A[i+1]); A[i] = B[i]"'


@dataclass(frozen=True, slots=True)
class Line:
    """Tokens, the last of kind END, and the column of the first one."""

    indent: int
    tokens: tuple[Token, ...]


def lines(text: str) -> tuple[Line, ...]:
    """Return the lines of `text` that have tokens.

    Raises:
        NotationError: a character that no token has.
    """
    source, result, current, depth = Source(text, "program"), [], list[Token](), 0
    for kind, match in _matches(source):
        if kind == "newline":
            if depth == 0 and current:
                result.append(_line(current))
                current = []
            continue
        token = Token(TokenKind(kind), match.group(), Span(source, match.start(), match.end()))
        depth = max(0, depth + (token.text in "([") - (token.text in ")]"))
        current.append(token)
    return (*result, _line(current)) if current else tuple(result)


def _matches(source: Source) -> list[tuple[str, re.Match[str]]]:
    position, matches = 0, []
    while position < len(source.text):
        match = _TOKEN.match(source.text, position)
        if match is None:
            raise NotationError(
                f"Expected a name, a number, brackets or an operator, found "
                f"{source.text[position]!r}",
                Span(source, position, position + 1),
                _EXAMPLE,
            )
        if match.lastgroup not in (None, "space"):
            matches.append((str(match.lastgroup), match))
        position = match.end()
    return matches


def _line(tokens: list[Token]) -> Line:
    first, last = tokens[0].span, tokens[-1].span
    text = first.source.text
    start = text.rfind("\n", 0, first.start) + 1
    end = Token(TokenKind.END, "", Span(first.source, last.stop, last.stop + 1))
    return Line(first.start - start, (*tokens, end))
