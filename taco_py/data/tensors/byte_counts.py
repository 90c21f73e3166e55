"""Numbers of bytes as users write them, and calls and results that may take no more.

    np.tile(T, (20, 20))    400 times the bytes of T: refused before any work
    T[positions]            refused once it is there, for nobody knows before what is stored

What is computed by kernels is looked at before each of them (`execute.within_limit`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from taco_py.data.kernels import KERNELS
from taco_py.data.storage.room import room
from taco_py.data.storage.tensor_data import TensorData, arrays_of
from taco_py.data.tensors.traced_operands import taken_over, taker_of
from taco_py.language.diagnostics.errors import OperandError
from taco_py.language.diagnostics.memory_errors import Part, over_limit

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
    """Return the operands that an argument holds, or it is."""
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
    """Return how many values an object stores, None of one that does not tell; nothing is
    counted."""
    found = getattr(obj, "value_count", None)
    return getattr(obj, "nnz", None) if found is None else found


# ---------------------------------------------------------------- results of NumPy's functions

COPIES = frozenset((
    "argsort", "cumprod", "cumsum", "cumulative", "cumulative_prod", "cumulative_sum", "flip",
    "roll", "sort", "tril", "triu",
))  # fmt: skip
"""Functions whose results have as many elements as a dense argument has."""


def limited_result(name: str, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a function. Raises OutOfMemoryError where its result takes more than is allowed, before
    it is called as far as that can be told."""
    limit = KERNELS.memory.limit
    if limit is None:
        return function(*args, **options)
    called, given = name, args
    if name == "array_function":  # np.sort(T), with NumPy's function and its arguments
        called, given, options_of = args[0].__name__, args[1], args[2]
    else:
        options_of = options
    what = f"the result of {called}"
    with room(what, least_bytes(called, given, options_of)):
        found = function(*args, **options)
    made = new_bytes(found, (*args, *given))
    if made > limit:
        raise over_limit([Part(what, made)], limit)
    return found


def least_bytes(name: str, args: Sequence[Any], options: Mapping[str, Any]) -> int:
    """Return bytes that the result of a function takes at least; 0 where that is not known."""
    rule = LEAST.get(name, _copy if name in COPIES else None)
    try:
        return 0 if rule is None else int(rule(*args, **options))
    except (TypeError, ValueError, AttributeError, IndexError):
        return 0  # arguments that the function itself refuses


def _bytes(obj: Any) -> int:
    """Return bytes of the values of a tensor or array."""
    count = getattr(obj, "value_count", None)
    return int(obj.nbytes) if count is None else int(count) * int(obj.dtype.itemsize)


def _copy(*args: Any, **_: Any) -> int:
    array = next(each for each in args if hasattr(each, "dtype"))
    return _bytes(array) if array.format.is_dense else 0


def _tile(array: Any, reps: Any, *_: Any, **__: Any) -> int:
    return _bytes(array) * prod(map(int, np.atleast_1d(reps)))


def _joined(arrays: Sequence[Any], *_: Any, **__: Any) -> int:
    return sum(_bytes(each) for each in arrays if hasattr(each, "dtype"))


def _repeat(array: Any, repeats: Any, *_: Any, **__: Any) -> int:
    return _bytes(array) * int(repeats) if np.ndim(repeats) == 0 else 0


LEAST: Mapping[str, Callable[..., int]] = MappingProxyType({
    "concatenate": _joined, "concat": _joined, "repeat": _repeat, "stack": _joined, "tile": _tile,
})  # fmt: skip
"""Bytes of results, by the names of functions."""


def new_bytes(found: Any, args: Sequence[Any]) -> int:
    """Return bytes of a result's arrays that share no memory with those of arguments."""
    old = list(_arrays(args))
    return sum(
        array.nbytes
        for array in _arrays(found)
        if not any(np.may_share_memory(array, each) for each in old)
    )


def _arrays(found: Any) -> Iterator[np.ndarray[Any, Any]]:
    """Yield the arrays of a result, or of several."""
    data = found if isinstance(found, TensorData) else getattr(found, "_data", None)
    if isinstance(data, TensorData):
        yield from arrays_of(data)
    elif isinstance(found, np.ndarray):
        yield found
    elif isinstance(found, list | tuple):
        for each in found:
            yield from _arrays(each)
    elif hasattr(found, "nnz") and isinstance(getattr(found, "data", None), np.ndarray):
        yield found.data  # of scipy.sparse
