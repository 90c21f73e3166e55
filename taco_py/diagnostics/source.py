"""Places in a text the user wrote, and the line with carets that points at one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """A text and what to call it in a message ("expression", a file name)."""

    text: str
    name: str = "expression"


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` (included) to `stop` (excluded) of `source`."""

    source: Source
    start: int
    stop: int

    def carets(self) -> str:
        """The line that holds the span, and below it carets under the span."""
        text = self.source.text
        first = text.rfind("\n", 0, self.start) + 1
        last = text.find("\n", self.start)
        last = len(text) if last < 0 else last
        width = max(1, min(self.stop, last) - self.start)
        return f"  {text[first:last]}\n  {' ' * (self.start - first)}{'^' * width}"
