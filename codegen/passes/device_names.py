"""Other names for what is called by a word of CUDA, C++ or Python.

    grid for new in 0..n: y[new] = x[new]   →   grid for new_1 in 0..n: y[new_1] = x[new_1]

Parameters of functions keep theirs, for callers know them; they are no such words.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from codegen.ir import Array, Function, Module, Table, Var
from codegen.names import Names, is_reserved_on_devices
from codegen.tree import map_children, walk


def _parameters(function: Function) -> list[str]:
    return [*(a.name for a in function.arrays), *(v.name for v in function.scalars)]


def rename_words(module: Module) -> Module:
    """Give variables and arrays other names where a language of devices has theirs."""
    names_ = list(dict.fromkeys(n.name for n in walk(module) if isinstance(n, Var | Array | Table)))
    parameters = {name for f in module.functions for name in _parameters(f)}
    words = [name for name in names_ if is_reserved_on_devices(name) and name not in parameters]
    if not words:
        return module
    names = Names(names_)
    replacements = {name: names.fresh(name) for name in words}

    def renamed(node: Any) -> Any:
        node = map_children(node, renamed)
        if isinstance(node, Var | Array | Table) and node.name in replacements:
            return replace(node, name=replacements[node.name])
        return node

    return renamed(module)  # type: ignore[no-any-return]
