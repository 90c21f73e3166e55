"""C and CUDA C++ with syntax highlighting: comments, directives, types, keywords and numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from taco_py.language.notebook.markup import CODE

COLOURS = {
    "comment": "#7a8288", "directive": "#a05a9c", "string": "#4f8a3c", "type": "#2a7f9e",
    "keyword": "#b0622b", "number": "#3a76c4",
}  # fmt: skip
"""Colours that are legible on white and on black."""

TYPES = (
    r"(?:u?int(?:8|16|32|64)?_t|size_t|u?intptr_t|double|float|int|char|void|bool|long|short|"
    r"unsigned|signed|_Bool|_Complex)"
)
KEYWORDS = (
    "for|while|do|if|else|return|break|continue|const|restrict|static|inline|struct|typedef|switch|"
    "case|default|goto|sizeof|extern|__restrict__|__global__|__device__|__shared__|__launch_bounds__"
)
TOKENS = re.compile(
    r"(?P<comment>/\*.*?(?:\*/|\Z)|//[^\n]*)"
    r"|(?P<directive>^[ \t]*\#[^\n]*)"
    r'|(?P<string>"(?:\\.|[^"\\\n])*")'
    rf"|\b(?P<type>{TYPES})\b"
    rf"|\b(?P<keyword>{KEYWORDS})\b"
    r"|\b(?P<number>0[xX][0-9a-fA-F]+[uUlL]*|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?[uUlLfF]*)\b",
    re.MULTILINE | re.DOTALL,
)


def coloured(source: str) -> str:
    """Return the source as highlighted HTML with unchanged text."""
    return f'<pre style="{CODE}">{"".join(_pieces(source))}</pre>'


def _pieces(source: str) -> Iterator[str]:
    end = 0
    for token in TOKENS.finditer(source):
        yield escape(source[end : token.start()])
        kind = token.lastgroup or "comment"
        yield f'<span style="color:{COLOURS[kind]}">{escape(token[0])}</span>'
        end = token.end()
    yield escape(source[end:])
