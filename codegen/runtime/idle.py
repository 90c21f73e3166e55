"""A thread that gives back what nothing uses, for as long as there is anything to give back.

It is started when something is kept and ends when nothing is: no process waits for it, at its exit
or anywhere. A process that was forked begins with another watch. It is one of `_thread`, for what
is kept comes from finalizers, which may run while `threading` holds the locks that a Thread takes.
"""

from __future__ import annotations

import _thread
import atexit
import time
import weakref
from typing import Protocol

_LONGEST = 1.0
"""Seconds between two looks at most."""


class Keeper(Protocol):
    """What keeps something for a while."""

    def expire(self) -> float | None:
        """Release old memory; return the seconds until the next release, None for none."""

    def close(self) -> None:
        """Give back everything, and keep nothing from now on."""


class Watch:
    """Whether a thread watches `keeper`, whose lock is held when a method is called.

    Once it is `closed`, nobody may wait for that lock any more: a thread may have been stopped that
    holds it.
    """

    __slots__ = ("_keeper", "_known", "_runs", "closed")

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = weakref.ref(keeper)
        self.closed = False
        self._known = False
        self._runs = False

    def start(self) -> bool:
        """Let a thread call `expire`; return False where none can start."""
        if self._runs:
            return True
        if self.closed:
            return False
        if not self._known:
            self._known = True
            atexit.register(_close, self._keeper)
        self._runs = True
        try:
            _thread.start_new_thread(_expire, (self._keeper,))
        except RuntimeError:  # as many threads as the system allows, or the process is going down
            self._runs = False
        return self._runs

    def stop(self) -> None:
        """Note that the thread has ended, since nothing is left to expire."""
        self._runs = False

    def close(self) -> None:
        """Let no thread start any more."""
        self.closed = True
        self._runs = False


def _expire(keeper: weakref.ref[Keeper]) -> None:
    wait: float | None = _LONGEST
    while wait is not None:
        time.sleep(min(wait, _LONGEST))
        keeper_ = keeper()
        wait = None if keeper_ is None else keeper_.expire()
        del keeper_


def _close(keeper: weakref.ref[Keeper]) -> None:
    """Stop the watch at exit, while threads still run."""
    keeper_ = keeper()
    if keeper_ is not None:
        keeper_.close()
