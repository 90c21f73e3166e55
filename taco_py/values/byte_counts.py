"""Numbers of bytes as users write them, and calls that may take no more."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np

from taco_py.diagnostics.errors import OperandError
from taco_py.kernels import KERNELS
from taco_py.values.traced_operands import taken_over, taker_of

T = TypeVar("T")
UNITS: Mapping[str, int] = {
    "": 1,
    "b": 1,
    **{f"{letter}b": 1000**n for n, letter in enumerate("kmgtp", 1)},
    **{f"{letter}ib": 1024**n for n, letter in enumerate("kmgtp", 1)},
}
"""What a letter stands for, in lower case."""
_TEXT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", re.IGNORECASE)
_VARIADIC, _KEYWORDS = 0x04, 0x08  # of code objects: *args, **kwargs


def check_memory_limit(limit: int | str | None) -> int | None:
    """Read a number of bytes, None for no limit.

    >>> check_memory_limit("2GB"), check_memory_limit("512 MiB"), check_memory_limit(10**6)
    (2000000000, 536870912, 1000000)

    Raises OperandError, a ValueError.
    """
    if limit is None:
        return None
    count = _parsed(limit) if isinstance(limit, str) else None
    if isinstance(limit, int | np.integer) and not isinstance(limit, bool):
        count = int(limit)
    if count is None or count < 1:
        raise OperandError(
            f"Expected memory_limit to be a positive number of bytes, found {limit!r}",
            hint='as in memory_limit="2GB", "512MiB" or 2 * 10**9; None for four fifths of what '
            "is free",
        )
    return count


def _parsed(text: str) -> int | None:
    found = _TEXT.fullmatch(text)
    unit = UNITS.get(found[2].lower()) if found else None
    return None if found is None or unit is None else int(float(found[1]) * unit)


def limited(function: Callable[..., T], arguments: Mapping[str, Any]) -> T:
    """Call a function again with the arguments that it was called with, under their memory_limit.

    evaluate(text, A=A, memory_limit="2GB")   →   within 2 GB: evaluate(text, A=A)

    arguments  by parameter, as locals() has them where the function begins
    """
    limit = check_memory_limit(arguments["memory_limit"])
    assert limit is not None
    given = [each for value in arguments.values() for each in _spread(value)]
    if (taker := taker_of(given)) is not None:
        taken_over(taker, "tp.kernel", ((), {}, ()), {"memory_limit": limit})
    with KERNELS.memory.within(limit):
        return call_again(function, arguments, memory_limit=None)


def _spread(value: Any) -> Iterable[Any]:
    """The operands that an argument holds, or it is."""
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, tuple) else (value,)


def call_again(function: Callable[..., T], arguments: Mapping[str, Any], **changed: Any) -> T:
    """Call a function with arguments by parameter, some of them others than before."""
    arguments = {**arguments, **changed}
    code: Any = function.__code__
    named = code.co_argcount + code.co_kwonlyargcount
    spread = bool(code.co_flags & _VARIADIC)  # what stands before these goes by position
    count = code.co_argcount if spread else code.co_posonlyargcount
    first, rest = code.co_varnames[:count], code.co_varnames[named:]
    given = [arguments[name] for name in first]
    keywords = {name: arguments[name] for name in code.co_varnames[len(first) : named]}
    if spread:
        given += arguments[rest[0]]
        rest = rest[1:]
    if code.co_flags & _KEYWORDS:
        keywords |= arguments[rest[0]]
    return function(*given, **keywords)


def sizes_of_objects(objects: tuple[Any, ...]) -> tuple[object, ...]:
    """What the memory that a call takes may depend on: shapes, and how many entries are stored."""
    return tuple((type(obj), getattr(obj, "shape", None), _values_of(obj)) for obj in objects)


def _values_of(obj: Any) -> Any:
    """How many values an object stores, None of one that does not tell; nothing is counted."""
    found = getattr(obj, "value_count", None)
    return getattr(obj, "nnz", None) if found is None else found
