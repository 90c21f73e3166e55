"""Count the places at which units of a GPU append by the loop that they share.

    threads for p in 0..n:             const ahead = q - 0
      y[q] = w[p]                 →    threads for p in 0..n:
      q++                                y[p + ahead] = w[p]
                                       q += max(n - 0, 0)

No iteration then needs what the one before it has made, and the order is that of the loop.
"""

from __future__ import annotations

from typing import Any

from codegen import build
from codegen.ir import For, Function, LoopKind, Module
from codegen.passes.counted_places import counted_by_loop
from codegen.tree import map_children, rewrite
from codegen.variables import names_beside

_PARTS = (LoopKind.WARPS, LoopKind.THREADS, LoopKind.GROUPS, LoopKind.LANES)


def count_by_units(module: Module) -> Module:
    """Return `module` whose shared loops append at places that each iteration knows."""
    return map_children(module, lambda f: _function(f) if isinstance(f, Function) else f)


def _function(function: Function) -> Function:
    names = names_beside(function)

    def count(node: Any) -> Any:
        if not isinstance(node, For) or node.kind not in _PARTS or node.step != 1:
            return node
        counted = counted_by_loop(node, names)
        if counted is None:
            return node
        before, loop, after = counted
        return build.block(*before, loop, *after)

    return rewrite(function, count)
