"""Who is told of calls: of each call's assignment and operands, before it is computed.

While somebody is, calls take the long way, for the short one knows no text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Watcher = Callable[[Any, Mapping[str, Any], Any, Mapping[str, Any]], None]


class CallWatch:
    """Watchers of the calls of this process, in all of its threads."""

    __slots__ = ("watchers",)

    def __init__(self) -> None:
        self.watchers: tuple[Watcher, ...] = ()

    def add(self, watcher: Watcher) -> None:
        """Let a function be told of calls."""
        self.watchers = (*self.watchers, watcher)

    def remove(self, watcher: Watcher) -> None:
        """Tell it no longer."""
        self.watchers = tuple(other for other in self.watchers if other is not watcher)

    def tell(
        self, assignment: Any, objects: Mapping[str, Any], options: Any, more: Mapping[str, Any]
    ) -> None:
        """Report a call; `more` has its further options."""
        for watcher in self.watchers:
            watcher(assignment, objects, options, more)


WATCH = CallWatch()
"""The watchers of this process."""
