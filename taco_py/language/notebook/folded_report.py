"""Explanations as text that a notebook shows in foldable parts.

runs      1 kernel, 0 copies          a row of a table
kernel    y[i] = sum(j, A[i,j]*x[j])  a head, because indented lines follow
  loop order  i,j                     folded below the head
"""

from __future__ import annotations

from collections.abc import Iterator

from taco_py.language.notebook.markup import block, fold, pre, table


class Report(str):
    """The text of an explanation, which a notebook shows folded."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """Return the first lines as a table, and each kernel as a foldable part."""
        return folded(self)


def folded(text: str) -> str:
    """Return an explanation as HTML."""
    parts: list[str] = []
    rows: list[tuple[str, str]] = []
    for head, below in sections(text):
        if not below and (pair := _pair(head)) is not None:
            rows.append(pair)
            continue
        if rows:
            parts.append(table(rows))
            rows = []
        parts.append(fold(head, pre("\n".join(below))) if below else pre(head))
    if rows:
        parts.append(table(rows))
    return block(*parts)


def sections(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each unindented line with the indented lines after it."""
    head: str | None = None
    below: list[str] = []
    for line in text.splitlines():
        if line[:1].isspace() and head is not None:
            below.append(line)
        elif line.strip():
            if head is not None:
                yield head, below
            head, below = line.strip(), []
    if head is not None:
        yield head, below


def _pair(line: str) -> tuple[str, str] | None:
    """Split a line into a one-word name and a description; None for other lines."""
    name, gap, rest = line.partition("  ")
    return (name, rest.strip()) if gap and rest and " " not in name else None
