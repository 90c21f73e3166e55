"""An explanation: text, which a notebook shows in parts that fold.

runs      1 kernel, 0 copies          a row of a table
kernel    y[i] = sum(j, A[i,j]*x[j])  a head, for lines that are indented follow
  loop order  i,j                     what is folded below it
"""

from __future__ import annotations

from collections.abc import Iterator

from taco_py.language.notebook.markup import block, fold, pre, table


class Report(str):
    """Hold an explanation's text; a notebook shows it folded."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """Show the first lines as a table, and each kernel as a part that folds."""
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
    """Yield each line that is not indented, with the indented ones behind it."""
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
    """Return a name of one word and what is told of it, None of a line that is none of these."""
    name, gap, rest = line.partition("  ")
    return (name, rest.strip()) if gap and rest and " " not in name else None
