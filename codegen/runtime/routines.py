"""Functions that are there without being compiled, by names under which a later process finds them.

    "routine codegen.runtime.blas:library_product float64 ab,bc->ac"

Nothing of the compiler is imported here.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

MARK = "routine "


def routine_name(maker: str, text: str) -> str:
    """The name of what `maker`, "module:function", gives for a text."""
    return f"{MARK}{maker} {text}"


def is_routine(name: str) -> bool:
    """Whether a name is one of a routine."""
    return name.startswith(MARK)


def find_routine(name: str) -> Callable[..., Any]:
    """The function with a name. Raises ValueError where it is not there."""
    maker, _, text = name.removeprefix(MARK).partition(" ")
    module, _, function = maker.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), function)(text)
    return found
