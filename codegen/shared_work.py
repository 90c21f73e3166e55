"""Functions that many modules share: what is made of one is made once in a process.

For `tile_6` of the products of a network that is its loop IR after all passes, its C text, and the
headers that it needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, wraps
from typing import Any, Generic, ParamSpec, TypeVar

from codegen.ir import Function

Value = TypeVar("Value")
Arguments = ParamSpec("Arguments")

MOST_FUNCTIONS = 256
"""The most functions that are kept, and of which values are kept."""


def shared_function(make: Callable[Arguments, Function]) -> Callable[Arguments, Function]:
    """Mark the functions that `make` returns as shared; equal arguments give the same object."""

    @wraps(make)
    @lru_cache(MOST_FUNCTIONS)
    def make_once(*args: Arguments.args, **keywords: Arguments.kwargs) -> Function:
        return replace(make(*args, **keywords), shared=True)

    return make_once  # type: ignore[return-value]  # of arguments that can be hashed


class SharedWork(Generic[Value]):
    """Apply `work` to functions and one argument more, once to those that are shared.

    Threads may call it at once: at worst a value is made twice.
    """

    def __init__(self, work: Callable[[Function, Any], Value]) -> None:
        self._work = work
        self._values: dict[tuple[int, Any], tuple[Function, Value]] = {}

    def __call__(self, function: Function, argument: Any = None) -> Value:
        """Return the value for `function`; of a shared one the same object each time."""
        if not function.shared:
            return self._work(function, argument)
        key = id(function), argument  # of an object that is kept beside the value
        entry = self._values.get(key)
        if entry is None:
            if len(self._values) >= MOST_FUNCTIONS:
                self._values.clear()
            entry = self._values[key] = function, self._work(function, argument)
        return entry[1]
