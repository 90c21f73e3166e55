"""The kernels of a process: the one cache of those that are compiled, and routines that are there
already, by names under which a later process finds them.

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
"""Every kernel of this process; `KERNELS.clear()` forgets them, on disk too."""
_ROUTINE = "routine "
MAKERS = frozenset(("codegen.runtime.blas:library_product",))
"""What makes routines of texts: a name that is kept on disk has no other."""


def routine_name(maker: str, text: str) -> str:
    """Return the name of what `maker`, "module:function", gives for a text."""
    return f"{_ROUTINE}{maker} {text}"


def is_routine(name: str) -> bool:
    """Tell whether a name is that of a routine."""
    return name.startswith(_ROUTINE)


def find_routine(name: str) -> Callable[..., Any]:
    """Return the function with a name. Raises ValueError where it is not there."""
    maker, _, text = name.removeprefix(_ROUTINE).partition(" ")
    if maker not in MAKERS:
        raise ValueError(f"no routine: {maker:.80}")
    module, _, function = maker.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), function)(text)
    return found
