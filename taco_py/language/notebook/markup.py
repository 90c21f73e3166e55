"""Pieces of HTML: tables, foldable parts, and code. All text is escaped; colours follow the page.

table([("shape", "3 × 4")])      <table>…<th>shape</th><td>3 × 4</td>…</table>
fold("C", code("int i;"))        <details><summary>C</summary><pre>int i;</pre></details>
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

CODE = (
    "margin:0.3em 0;padding:0.5em;overflow:auto;max-height:30em;line-height:1.35;"
    "border:1px solid rgba(128,128,128,0.3);white-space:pre;text-align:left"
)
LEFT = "text-align:left;vertical-align:top"


def table(rows: Iterable[tuple[str, Any]]) -> str:
    """Return a table of names and values."""
    cells = "".join(
        f'<tr><th style="{LEFT}">{escape(name)}</th>'
        f'<td style="{LEFT}">{escape(str(value))}</td></tr>'
        for name, value in rows
    )
    return f"<table>{cells}</table>"


def fold(head: str, body: str, is_open: bool = False) -> str:
    """Return a part that unfolds at a click on its head; `body` is HTML."""
    state = ' open="open"' if is_open else ""
    summary = f'<summary style="cursor:pointer">{escape(head)}</summary>'
    return f"<details{state}>{summary}{body}</details>"


def pre(text: str) -> str:
    """Return preformatted text in a monospaced font."""
    return f'<pre style="{CODE}">{escape(text)}</pre>'


def side_by_side(*parts: str) -> str:
    """Return pieces side by side."""
    style = "display:flex;gap:1em;flex-wrap:wrap;align-items:flex-start"
    return f'<div style="{style}">{"".join(parts)}</div>'


def block(*parts: str) -> str:
    """Return pieces one below the other."""
    return f"<div>{''.join(parts)}</div>"
