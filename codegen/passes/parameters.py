"""Take from a function's parameters the arrays and scalars that its body never names.

    f(a: in float64[], b: in float64[], n: int64)          f(a: in float64[], n: int64)
      for i in 0..n: ... a[i] ...                    ->      for i in 0..n: ... a[i] ...

`threads` stays: callers give it to every kernel that could be parallel.
"""

from __future__ import annotations

from codegen.ir import Array, Function, Module, Var
from codegen.tree import map_children, walk


def prune_parameters(module: Module) -> Module:
    """Return `module` with the parameters of each function reduced to those it uses."""
    return map_children(module, lambda f: prune(f) if isinstance(f, Function) else f)


def prune(function: Function) -> Function:
    """Return `function` without unused parameters; an internal one as its callers expect it."""
    if function.internal:
        return function
    used = {node for node in walk(function.body) if isinstance(node, Var | Array)}
    arrays = tuple(array for array in function.arrays if array in used)
    scalars = tuple(scalar for scalar in function.scalars if scalar in used)
    if len(arrays) == len(function.arrays) and len(scalars) == len(function.scalars):
        return function
    return Function(function.name, arrays, scalars, function.body, function.threaded)
