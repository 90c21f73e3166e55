"""Limits of memory that users set: of a process, of what runs in a block, of one kernel's arrays.

MemoryLimit   limit   bytes that a call may take at once, None for what the machine allows
              budget  bytes that the arrays which a kernel grows may take together
              on      whether there is a limit anywhere; all that calls without one look at
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class MemoryLimit:
    """The limits that are in force. What a block sets holds for its thread alone."""

    __slots__ = ("_blocks", "_here", "_lock", "_process", "on")

    def __init__(self) -> None:
        self.on = False
        self._process: int | None = None
        self._blocks = 0
        self._here = threading.local()
        self._lock = threading.Lock()

    @property
    def process(self) -> int | None:
        """Return bytes that a call may take which says nothing itself."""
        return self._process

    def set(self, limit: int | None) -> None:
        """Let calls take at most `limit` bytes; None for the machine's limit."""
        with self._lock:
            self._process = limit
            self._look()

    @property
    def limit(self) -> int | None:
        """Return bytes that may be taken here."""
        stack = getattr(self._here, "limits", ())
        return stack[-1] if stack else self._process

    @property
    def budget(self) -> int | None:
        """Return bytes that the arrays which the next kernel grows may take together."""
        budget_: int | None = getattr(self._here, "budget", None)
        return budget_

    @contextmanager
    def restricted_to(self, limit: int) -> Iterator[None]:
        """Let the calls in a block take at most `limit` bytes, whatever the process may."""
        stack = self._here.__dict__.setdefault("limits", [])
        stack.append(limit)
        with self._lock:
            self._blocks += 1
            self._look()
        try:
            yield
        finally:
            stack.pop()
            with self._lock:
                self._blocks -= 1
                self._look()

    @contextmanager
    def spend(self, budget: int | None) -> Iterator[None]:
        """Limit the growing arrays of each kernel in a block to `budget` bytes."""
        before, self._here.budget = self.budget, budget
        try:
            yield
        finally:
            self._here.budget = before

    def _look(self) -> None:
        self.on = self._process is not None or self._blocks > 0
