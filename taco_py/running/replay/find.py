"""Finding the short way of a call (`fast` says what that is): in memory, or on disk.

    short way of a call  ──►  memory  ──►  disk, where the kernel is too  ──►  the long way

Nothing of the compiler is imported for a short way that is found.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from codegen.records import dataclass
from codegen.toolchain.errors import ToolchainError
from taco_py.data.kept_calibration import calibration_identity
from taco_py.data.kernels import KERNELS, find_routine, is_routine
from taco_py.data.tensors.byte_counts import sizes_of_objects
from taco_py.language.diagnostics.errors import InternalError
from taco_py.running.replay.call_watch import WATCH
from taco_py.running.replay.source_text import BUILTINS, call_code

ShortCall = Callable[..., Any]

MOST_WORK = 1 << 16
"""Steps of the search for an element that two arrays have in common: some 100 µs."""


def find(key: tuple[object, ...] | None) -> ShortCall | None:
    """Return the short way of the calls with this key; None while calls are watched."""
    if key is None or WATCH.watchers:
        return None
    call: ShortCall | None = KERNELS.memo.get(key)
    if call is None:
        call = recall(key)
    return call if not KERNELS.memory.on or call is None else known_to_fit(key, call)


def call_fast_path(key: tuple[object, ...] | None, operands: Iterable[Any]) -> Any:
    """Take the fast path of calls with this key; None where there is none for these operands.

    operands  the operands, the mask, and the arrays for results
    """
    call = find(key)
    return None if call is None else call(*operands)


def known_to_fit(key: tuple[object, ...], call: ShortCall) -> ShortCall:
    """Return the short way where a user limits memory: for operands of sizes for which it is known
    that they fit, whatever they store. Others take the long way, which looks."""

    if KERNELS.memory.limit is None:  # it is of another thread
        return call

    def call_if_it_fits(*values: Any) -> Any:
        fits = KERNELS.memo.get(fit_key(key, values))
        return call(*values) if fits else None

    return call_if_it_fits


def fit_key(key: tuple[object, ...], values: tuple[Any, ...]) -> tuple[object, ...]:
    """Return the key under which the cache notes whether calls with such operands fit."""
    return ("fits", KERNELS.memory.limit, key, sizes_of_objects(values))


def array_maker(kind: str) -> Callable[..., Any]:
    """Return the function that allocates a kernel's array."""
    pool = KERNELS.pool
    makers: Mapping[str, Any] = {"written": pool.empty, "cleared": pool.zeros, "zero": np.zeros}
    maker: Callable[..., Any] = makers[kind]
    return maker


def no_short_way(*_: Any) -> None:
    """Return the marker of keys without a fast path."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What a short way is made of, besides the user's machine: plain data.

    recipes  the keys of its kernels: those of recipes, or names of routines
    results  for each kernel its number in the text, where a dense result comes from, a name of
             `array_maker`, and the dtype of that
    dtypes   other dtypes, by the names they have in the text
    more     what else it calls (`helpers.to_plain`)
    """

    text: str
    recipes: tuple[str, ...]
    results: tuple[tuple[int, str, str], ...]
    dtypes: Mapping[str, str]
    more: Mapping[str, Any]


def define(
    parts: Parts,
    kernels: Sequence[Callable[..., Any]],
    limit: int,
    more: Mapping[str, Any],
) -> ShortCall:
    """Return the function that the text defines.

    limit  threads to use at most
    more   what the text calls besides what is here

    Raises InternalError for a text that is none of a short way.
    """
    namespace: dict[str, Any] = {
        "threads": limit,
        "apart": is_disjoint,
        "array": np.array,
        "asarray": np.asarray,
        "copyto": np.copyto,
        "meets": np.may_share_memory,
        "no_room": no_room,
        "ndarray": np.ndarray,
        "require": KERNELS.pool.require,
        "shares": shares_memory,
        "strided": strided,
        "uint16": np.uint16,
        **({"together": KERNELS.run_jobs} if "together(" in parts.text else {}),
        **{name: np.dtype(dtype) for name, dtype in parts.dtypes.items()},
        **more,
    }
    for kernel, (number, kind, dtype) in zip(kernels, parts.results, strict=True):
        namespace[f"kernel{number}"] = kernel
        namespace[f"make{number}"] = array_maker(kind)
        namespace[f"dtype{number}"] = np.dtype(dtype)
    code = call_code(parts.text, namespace)
    namespace["__builtins__"] = dict(BUILTINS)
    exec(code, namespace)
    call: ShortCall = namespace["call"]
    call.__doc__ = parts.text
    return call


def shares_memory(one: Any, other: Any) -> bool:
    """Tell whether two arrays have an element in common; columns of one array have none."""
    try:
        return bool(np.shares_memory(one, other, max_work=MOST_WORK))  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def no_room(error: MemoryError) -> Exception:
    """Return the error of a kernel that runs out of memory while it adds to `out`."""
    from taco_py.running.execute import guard

    return guard.no_room("what is added to the result", error)


def is_disjoint(out: np.ndarray[Any, Any], *arrays: np.ndarray[Any, Any]) -> bool:
    """Tell whether `out` surely shares no memory with the arrays."""
    return not any(np.may_share_memory(out, array) for array in arrays)


def strided(array: np.ndarray[Any, Any], last: int, unit: bool) -> bool:
    """Tell whether a kernel can read a dense array: aligned, strides in whole elements, and where
    the kernel is made for a `unit` stride along the mode `last`, that."""
    step = array.itemsize
    if not array.flags.aligned or any(stride % step for stride in array.strides):
        return False
    return not unit or array.strides[last] == step or array.shape[last] <= 1


# ---------------------------------------------------------------- on disk


def keep(key: tuple[object, ...], parts: Parts, limit: int | None) -> None:
    """Store a short way for later processes.

    limit   the threads that the call allows, None for as many as there are
    """
    rows = [
        parts.text, list(parts.recipes), list(parts.results), dict(parts.dtypes), dict(parts.more),
        limit,
    ]  # fmt: skip
    KERNELS.write_note(_note_name(key), json.dumps(rows))


def _note_name(key: tuple[object, ...]) -> str:
    """Return the name of a short way on disk: plans by other prices are others."""
    return repr(key) + calibration_identity()


def recall(key: tuple[object, ...]) -> ShortCall | None:
    """Return the short way that an earlier process stored, None if none did or its kernel is
    gone."""
    try:
        hash(key)
        note = KERNELS.note(_note_name(key))
        if note is None:
            KERNELS.prepare()  # beside the planning that comes next
        call = None if note is None else _restored(note)
    except (
        TypeError, ValueError, KeyError, SyntaxError, ToolchainError, OSError, AttributeError,
        ImportError, InternalError, RecursionError, IndexError, OverflowError,
    ):  # fmt: skip
        return None
    KERNELS.memo.put(key, no_short_way if call is None else call)
    return call


def _kernel(recipe: str) -> Callable[..., Any] | None:
    """Return the function of a recipe's kernel or a routine, None where it is gone."""
    if is_routine(recipe):
        return find_routine(recipe)
    kernel = KERNELS.find(recipe)
    if kernel is None:
        return None
    (signature,) = kernel.signatures
    return kernel.functions[signature.name]


def _restored(note: str) -> ShortCall | None:
    text, recipes, results, dtypes, plain, limit = json.loads(note)
    kernels = []
    for recipe in recipes:
        function = _kernel(recipe)
        if function is None:
            return None
        kernels.append(function)
    more = {}
    if plain:
        from taco_py.running.replay.helpers import from_plain, resolved

        more = resolved(from_plain(plain))
    parts = Parts(text, recipes, results, dtypes, plain)
    return define(parts, kernels, limit or KERNELS.cores, more)
