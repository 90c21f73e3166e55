"""Finding the short way of a call (`fast` says what that is): in memory, or on disk.

    short way of a call  ──►  memory  ──►  disk, where the kernel is too  ──►  the long way

Nothing of the compiler is imported for a short way that is found.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from codegen.toolchain.errors import ToolchainError
from taco_py.kernels import KERNELS

ShortCall = Callable[..., Any]

COUNTS = (int, type(None))  # True is no number of threads, though it is equal to one


def find(key: tuple[object, ...] | None) -> ShortCall | None:
    """The short way of the calls with this key."""
    if key is None:
        return None
    found: ShortCall | None = KERNELS.memo.get(key)
    return recall(key) if found is None else found


def no_short_way(*_: Any) -> None:
    """What is remembered of keys that have none (yet)."""


def define(
    text: str,
    kernel: Callable[..., Any],
    covers: bool,
    dtypes: Sequence[str],
    limit: int,
    more: Mapping[str, Any],
) -> ShortCall:
    """The function of this text.

    covers  whether the kernel writes every element of a dense result
    dtypes  of the result, then of the operands
    """
    result, *operands = map(np.dtype, dtypes)
    namespace: dict[str, Any] = {
        "kernel": kernel,
        "threads": limit,
        "make": np.empty if covers else np.zeros,
        "dtype": result,
        "array": np.array,
        "asarray": np.asarray,
        "strided": strided,
        **{f"a{place}_dtype": dtype for place, dtype in enumerate(operands)},
        **more,
    }
    exec(text, namespace)
    call: ShortCall = namespace["call"]
    call.__doc__ = text
    return call


def strided(array: np.ndarray[Any, Any], last: int, unit: bool) -> bool:
    """Whether a kernel can read a dense array: aligned, strides in whole elements, and where the
    kernel is made for a `unit` stride along the mode `last`, that."""
    step = array.itemsize
    if not array.flags.aligned or any(stride % step for stride in array.strides):
        return False
    return not unit or array.strides[last] == step or array.shape[last] <= 1


# ---------------------------------------------------------------- on disk


def keep(
    key: tuple[object, ...],
    text: str,
    recipe: str,
    covers: bool,
    dtypes: Sequence[str],
    limit: int | None,
) -> None:
    """Store a short way that needs no more than these, for later processes.

    recipe  the key of its kernel
    limit   the threads that the call allows, None for as many as there are
    """
    KERNELS.write_note(repr(key), json.dumps([text, recipe, covers, list(dtypes), limit]))


def recall(key: tuple[object, ...]) -> ShortCall | None:
    """The short way that an earlier process stored, None if none did or its kernel is gone."""
    try:
        hash(key)
        note = KERNELS.note(repr(key))
        found = None if note is None else _restored(note)
    except (TypeError, ValueError, KeyError, SyntaxError, ToolchainError, OSError):
        return None
    KERNELS.memo.put(key, no_short_way if found is None else found)
    return found


def _restored(note: str) -> ShortCall | None:
    text, recipe, covers, dtypes, limit = json.loads(note)
    kernel = KERNELS.find(recipe)
    if kernel is None:
        return None
    (signature,) = kernel.signatures
    function = kernel.functions[signature.name]
    return define(text, function, covers, dtypes, limit or KERNELS.cores, {})
