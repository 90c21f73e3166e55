"""The table of the options that each call takes.

Each name is a keyword of the call, or refused: an operand with that name has to be passed in a
mapping.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from taco_py.language.diagnostics.errors import OperandError

_PLANNED = ("schedule", "threads", "static", "libraries", "schedule_budget", "price", "forbid")
_MEANT = ("border", "shape", "semiring", "mask")
_EVALUATE = (
    "format", "out", "dtype", "casting", *_PLANNED, "allow", "path", "outputs", *_MEANT, "replace",
    "target", "memory_limit",
)  # fmt: skip
_DERIVED = ("wrt", "outputs", *_MEANT, "threads", "memory_limit")

CALLS: Mapping[str, frozenset[str]] = MappingProxyType({
    name: frozenset(options)
    for name, options in {
        "evaluate": _EVALUATE,
        "explain": (*(option for option in _EVALUATE if option not in ("out", "replace")),
                    "optimize", "frontier_budget"),
        "einsum": ("out", "dtype", "order", "casting", "optimize", "format", *_PLANNED,
                   "semiring", "mask", "replace", "target", "memory_limit"),
        "evaluate_dense": ("initial", "stored", "outputs", *_MEANT, "memory_limit"),
        "compile": ("dtypes", "index_dtype", *_PLANNED, "allow", "outputs", *_MEANT, "replace",
                    "target", "memory_limit"),
        "a kernel's call": ("out", "threads", "memory_limit"),
        "vjp": _DERIVED, "jvp": _DERIVED,
        "frontier": ("scope", "schedule_budget", *_MEANT, "target", "memory_limit"),
        "tune": ("trials", "seconds", "search", "seed", "store", "progress", "format", "outputs",
                 "dtype", "casting", *(option for option in _PLANNED if option != "schedule"),
                 "allow", "semiring", "mask"),
        "fuse": ("optimize", "backends", "regions", "price"),
        "lazy": ("optimize", "backends", "price"),
        "grad": ("wrt", "optimize", "price"), "value_and_grad": ("wrt", "optimize", "price"),
        "train_step": ("optimizer", "in_place", "value", "optimize", "price"),
    }.items()
})  # fmt: skip
"""The options of each call, by its name."""


_OF_TEXTS = ("allow", "path", "outputs", "border", "shape")
"""The options of `explain` that einsum does not have."""


def options_of(call: str) -> frozenset[str]:
    """Return the options that a call takes."""
    return CALLS[call]


def calls_with(option: str) -> tuple[str, ...]:
    """Return the calls that take an option."""
    return tuple(call for call, options in CALLS.items() if option in options)


def refuse_others(what: str, options: Mapping[str, Any]) -> None:
    """Raise OperandError for an option that was passed but has no meaning here.

    what     the subject that the option has no meaning for
    options  with their values
    """
    usual = {"allow": (), "border": "error"}
    for name, value in options.items():
        if value is not usual.get(name) and (name not in usual or value != usual[name]):
            raise OperandError(
                f"Expected no {name}= for {what}, found one", hint="leave it out of the call"
            )


def refuse_of_other_kind(
    subscripts: bool, operands: Mapping[str, Any], keywords: Mapping[str, Any]
) -> None:
    """Raise OperandError for an option of `explain` that texts of the other kind have.

    subscripts  whether it is einsum's, whose operands go by position
    operands    operands by name
    keywords    the arguments of the call by parameter
    """
    if subscripts:
        options = {name: keywords[name] for name in _OF_TEXTS}
        refuse_others("einsum's subscripts", {**options, **dict.fromkeys(operands, ...)})
    else:
        refuse_others("index notation", {"optimize": keywords["optimize"]})
