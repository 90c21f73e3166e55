"""Numbers of bytes in users' notation, and memory limits of calls and results.

    np.tile(T, (20, 20))    400 times the bytes of T: refused before any work
    T[positions]            refused afterwards, for the number of stored entries is unknown before

Kernels are checked before each call (`execute.within_limit`).
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
"""The bytes of a unit, in lower case."""
_TEXT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", re.IGNORECASE)
_VARIADIC, _KEYWORDS = 0x04, 0x08  # of code objects: *args, **kwargs


def check_memory_limit(limit: int | str | None) -> int | None:
    """Parse a number of bytes, None for no limit.

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
    match = _TEXT.fullmatch(text)
    unit = UNITS.get(match[2].lower()) if match else None
    return None if match is None or unit is None else int(float(match[1]) * unit)


def limited(function: Callable[..., T], arguments: Mapping[str, Any]) -> T:
    """Repeat a function's call with the same arguments, under their memory_limit.

    evaluate(text, A=A, memory_limit="2GB")   →   within 2 GB: evaluate(text, A=A)

    arguments  by parameter, as locals() at the beginning of the function
    """
    limit = check_memory_limit(arguments["memory_limit"])
    assert limit is not None
    operands = [operand for value in arguments.values() for operand in _spread(value)]
    if (taker := taker_of(operands)) is not None:
        taken_over(taker, "tp.kernel", ((), {}, ()), {"memory_limit": limit})
    with KERNELS.memory.restricted_to(limit):
        return call_again(function, arguments, memory_limit=None)


def _spread(value: Any) -> Iterable[Any]:
    """Return the operands inside an argument, or the argument itself."""
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, tuple) else (value,)


def call_again(function: Callable[..., T], arguments: Mapping[str, Any], **replacements: Any) -> T:
    """Call a function with arguments by parameter, of which some are replaced."""
    arguments = {**arguments, **replacements}
    code: Any = function.__code__
    named_count = code.co_argcount + code.co_kwonlyargcount
    spread = bool(code.co_flags & _VARIADIC)  # what stands before these goes by position
    count = code.co_argcount if spread else code.co_posonlyargcount
    first, rest = code.co_varnames[:count], code.co_varnames[named_count:]
    positional = [arguments[name] for name in first]
    keywords = {name: arguments[name] for name in code.co_varnames[len(first) : named_count]}
    if spread:
        positional += arguments[rest[0]]
        rest = rest[1:]
    if code.co_flags & _KEYWORDS:
        keywords |= arguments[rest[0]]
    return function(*positional, **keywords)


def sizes_of_objects(objects: tuple[Any, ...]) -> tuple[object, ...]:
    """Return the facts that a call's memory depends on: shapes and numbers of stored entries."""
    return tuple((type(obj), getattr(obj, "shape", None), _values_of(obj)) for obj in objects)


def _values_of(obj: Any) -> Any:
    """Return the number of values that an object stores, None where it does not tell without
    counting."""
    count = getattr(obj, "value_count", None)
    return getattr(obj, "nnz", None) if count is None else count


# ---------------------------------------------------------------- results of NumPy's functions

COPIES = frozenset((
    "argsort", "cumprod", "cumsum", "cumulative", "cumulative_prod", "cumulative_sum", "flip",
    "roll", "sort", "tril", "triu",
))  # fmt: skip
"""Functions whose results have as many elements as a dense argument."""


def limited_result(name: str, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a function within the memory limit.

    Raises OutOfMemoryError where its result is too large, if possible before the call.
    """
    limit = KERNELS.memory.limit
    if limit is None:
        return function(*args, **options)
    called, operands = name, args
    if name == "array_function":  # np.sort(T), with NumPy's function and its arguments
        called, operands, options_of = args[0].__name__, args[1], args[2]
    else:
        options_of = options
    what = f"the result of {called}"
    with room(what, least_bytes(called, operands, options_of)):
        result = function(*args, **options)
    result_bytes = new_bytes(result, (*args, *operands))
    if result_bytes > limit:
        raise over_limit([Part(what, result_bytes)], limit)
    return result


def least_bytes(name: str, args: Sequence[Any], options: Mapping[str, Any]) -> int:
    """Return a lower bound of the bytes of a function's result; 0 where it is unknown."""
    rule = LEAST.get(name, _copy if name in COPIES else None)
    try:
        return 0 if rule is None else int(rule(*args, **options))
    except (TypeError, ValueError, AttributeError, IndexError):
        return 0  # arguments that the function itself refuses


def _bytes(obj: Any) -> int:
    """Return the bytes of the values of a tensor or array."""
    count = getattr(obj, "value_count", None)
    return int(obj.nbytes) if count is None else int(count) * int(obj.dtype.itemsize)


def _copy(*args: Any, **_: Any) -> int:
    array = next(arg for arg in args if hasattr(arg, "dtype"))
    return _bytes(array) if array.format.is_dense else 0


def _tile(array: Any, reps: Any, *_: Any, **__: Any) -> int:
    return _bytes(array) * prod(map(int, np.atleast_1d(reps)))


def _concat(arrays: Sequence[Any], *_: Any, **__: Any) -> int:
    return sum(_bytes(array) for array in arrays if hasattr(array, "dtype"))


def _repeat(array: Any, repeats: Any, *_: Any, **__: Any) -> int:
    return _bytes(array) * int(repeats) if np.ndim(repeats) == 0 else 0


LEAST: Mapping[str, Callable[..., int]] = MappingProxyType({
    "concatenate": _concat, "concat": _concat, "repeat": _repeat, "stack": _concat, "tile": _tile,
})  # fmt: skip
"""Lower bounds of bytes of results, by the names of functions."""


def new_bytes(result: Any, args: Sequence[Any]) -> int:
    """Return the bytes of a result's arrays that share no memory with arguments."""
    old = list(_arrays(args))
    return sum(
        array.nbytes
        for array in _arrays(result)
        if not any(np.may_share_memory(array, argument) for argument in old)
    )


def _arrays(result: Any) -> Iterator[np.ndarray[Any, Any]]:
    """Yield the arrays of a result, or of several results."""
    data = result if isinstance(result, TensorData) else getattr(result, "_data", None)
    if isinstance(data, TensorData):
        yield from arrays_of(data)
    elif isinstance(result, np.ndarray):
        yield result
    elif isinstance(result, list | tuple):
        for part in result:
            yield from _arrays(part)
    elif hasattr(result, "nnz") and isinstance(getattr(result, "data", None), np.ndarray):
        yield result.data  # of scipy.sparse
