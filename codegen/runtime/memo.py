"""What is remembered: values by key, a bounded number, for what callers derive from kernels; and
arrays that were looked at, by their identities, for as long as they exist."""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any


class Memo:
    """At most `2 * limit` values; those that were not asked for lately go first.

    Two generations: a value that is asked for moves to the young one; when that is full it becomes
    the old one, and what was old is forgotten. A hit costs one look into a dict. Keys that cannot
    be hashed are not remembered. Threads may use it at once: at worst a value is made twice.
    """

    __slots__ = ("_limit", "_old", "_young")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._young: dict[Hashable, Any] = {}
        self._old: dict[Hashable, Any] = {}

    def __len__(self) -> int:
        return len(self._young.keys() | self._old.keys())

    def get(self, key: Any) -> Any:
        """Return the value put under `key`, or None."""
        try:
            value = self._young.get(key)
        except TypeError:
            return None
        if value is None:
            value = self._old.get(key)
            if value is not None:
                self.put(key, value)
        return value

    def put(self, key: Any, value: Any) -> None:
        """Remember `value`, which is not None."""
        try:
            hash(key)
        except TypeError:
            return
        if len(self._young) >= self._limit:
            self._old, self._young = self._young, {}
        self._young[key] = value

    def clear(self) -> None:
        """Forget everything."""
        self._young, self._old = {}, {}


Key = tuple[Hashable, ...]


class KnownArrays:
    """Keys of arrays, forgotten with the arrays.

    on    whether arrays are looked at
    keys  of those that were; the dict itself never changes, so that a look-up may be held
    """

    def __init__(self) -> None:
        self.on = True
        self.keys: dict[Key, tuple[Any, ...]] = {}

    def add(self, key: Key, arrays: Sequence[Any]) -> None:
        """Remember a key, which has the identities of these arrays. An object that cannot be
        referred to weakly is not remembered."""
        forget = partial(self.keys.pop, key)  # the reference that is gone is the default of `pop`
        try:
            self.keys[key] = tuple(weakref.ref(array, forget) for array in arrays)
        except TypeError:
            return

    def clear(self) -> None:
        """Forget all, so that arrays are looked at again."""
        self.keys.clear()
