"""The kernels of a process: the cache of compiled ones, and library routines by names under which a
later process finds them.

    "routine codegen.runtime.blas:library_product float64 ab,bc->ac"
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import polyhedral
from codegen.runtime.kernel_cache import KernelCache

KERNELS = KernelCache(sources=(Path(__file__).parents[1], Path(polyhedral.__file__).parent))
"""The kernels of this process; `KERNELS.clear()` removes them, also on disk."""
_ROUTINE = "routine "
MAKERS = frozenset(("codegen.runtime.blas:library_product",))
"""The functions that build routines from texts; names on disk have no others."""


def routine_name(maker: str, text: str) -> str:
    """Return the name of the routine that `maker`, "module:function", builds from a text."""
    return f"{_ROUTINE}{maker} {text}"


def is_routine(name: str) -> bool:
    """Tell whether a name is the name of a routine."""
    return name.startswith(_ROUTINE)


def find_routine(name: str) -> Callable[..., Any]:
    """Return the routine with a name. Raises ValueError for an unknown maker."""
    maker, _, text = name.removeprefix(_ROUTINE).partition(" ")
    if maker not in MAKERS:
        raise ValueError(f"no routine: {maker:.80}")
    module, _, function = maker.partition(":")
    routine: Callable[..., Any] = getattr(import_module(module), function)(text)
    return routine if KERNELS.substitute is None else KERNELS.substitute.routine(name, routine)
