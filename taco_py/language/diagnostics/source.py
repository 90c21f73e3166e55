"""Places in a user's text, and the line with carets that points at one."""

from __future__ import annotations

from codegen.records import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """A text with its name in messages ("expression", a file name)."""

    text: str
    name: str = "expression"


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` (included) to `stop` (excluded) of `source`."""

    source: Source
    start: int
    stop: int

    def carets(self) -> str:
        """Return the line that holds the span, shortened if long, with carets below the span.

        >>> print(Span(Source("y = 2x"), 5, 6).carets())
          y = 2x
               ^
        """
        text = self.source.text
        first = text.rfind("\n", 0, self.start) + 1
        last = text.find("\n", self.start)
        last = len(text) if last < 0 else last
        left = max(first, self.start - _CONTEXT)
        right = min(last, max(self.start + 2 * _CONTEXT, left + 3 * _CONTEXT))
        before = ("…" if left > first else "") + text[left : self.start]
        after = text[self.start : right] + ("…" if right < last else "")
        padding = "".join("\t" if character == "\t" else " " for character in before)
        width = max(1, min(self.stop, right) - self.start)
        return f"  {before}{after}\n  {padding}{'^' * width}"


_CONTEXT = 40  # characters shown before the carets; twice as many after them
