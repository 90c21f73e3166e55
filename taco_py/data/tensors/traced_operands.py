"""Operands that stand for arrays while a function is traced: they intercept calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

OPTIONS = (
    "format", "schedule", "threads", "dtype", "casting", "static", "libraries", "schedule_budget",
    "price", "forbid", "allow", "target", "border", "shape", "path", "outputs", "out",
)  # fmt: skip
"""The names of the options of settings, in their order."""

USUAL: Mapping[str, Any] = MappingProxyType({
    "casting": "safe", "libraries": True, "price": "analytic", "forbid": (), "allow": (),
    "border": "error",
})  # fmt: skip
"""The defaults of options other than None."""


def explicit_options(keywords: Mapping[str, Any], over: Any) -> dict[str, Any]:
    """Return the options of a call that differ from their defaults.

    keywords  the arguments of the call by parameter
    over      its semiring and mask, None without
    """
    options = {name: keywords[name] for name in OPTIONS if name in keywords}
    if over is not None:
        options["mask"] = over.mask
        options["semiring"] = None if over.semiring.is_arithmetic else over.semiring
    return {name: value for name, value in options.items() if _is_said(name, value)}


def _is_said(name: str, value: Any) -> bool:
    usual = USUAL.get(name)
    return value is not None and (type(value) is not type(usual) or value != usual)


def taker_of(values: Iterable[Any]) -> Any:
    """Return the first operand that intercepts calls, None without one."""
    return next(filter(is_traced, values), None)


def is_traced(value: Any) -> bool:
    """Tell whether an operand stands for an array while a function is traced."""
    return hasattr(type(value), "__taco_function__")


def taken_over(taker: Any, name: str, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """Leave a call to an operand that intercepts it, with the options other than None."""
    options_set = {key: value for key, value in options.items() if value is not None}
    return taker.__taco_function__(name, args, options_set)
