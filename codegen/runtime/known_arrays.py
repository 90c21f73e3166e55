"""Arrays that were looked at before, by their identities, for as long as they exist.

known.add(key, (pos, crd))     key in known.keys until pos or crd is gone
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any

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
