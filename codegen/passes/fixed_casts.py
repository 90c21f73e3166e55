"""Convert numbers before a loop in lanes that all its iterations read.

    vector for j in a..b reducing + t:           m = T[0] / (float) (n * k)
      t += x[j] - T[0] / (float) (n * k)   ->    vector for j in a..b reducing + t:
                                                   t += x[j] - m

Processors without AVX-512 convert no integers of 64 bits in lanes, and the C compiler leaves a loop
that holds such a conversion without lanes before it looks whether the loop changes its operand.
What moves cannot fail where the loop has no iteration: it divides no integers, and reads variables
and single elements at constant places of inputs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from codegen.build import block
from codegen.infer import type_of
from codegen.ir import (
    Binary,
    Block,
    Cast,
    Const,
    Declare,
    Expr,
    For,
    Function,
    Load,
    Module,
    Role,
    Storage,
    Unary,
    Var,
)
from codegen.names import Names
from codegen.tree import children, find, map_children, rewrite
from codegen.variables import assigned_vars, declared_vars, names_beside


def hoist_fixed_casts(module: Module) -> Module:
    """Return `module` with conversions of unchanging numbers before the loops in lanes that hold
    them."""
    return map_children(module, lambda f: _function(f) if isinstance(f, Function) else f)


def _function(function: Function) -> Function:
    names = names_beside(function)
    return rewrite(function, lambda node: _before(node, names) if isinstance(node, For) else node)


def _before(loop: For, names: Names) -> For | Block:
    """Return a loop, with its fixed conversions in front of it."""
    if not loop.is_vector:
        return loop
    assigned = assigned_vars(loop) | declared_vars(loop.body) | {loop.var}
    values: dict[Expr, Var] = {}

    def hoist(node: Any) -> Any:
        if isinstance(node, Expr) and _is_conversion(node) and _is_fixed(node, assigned):
            if node not in values:
                values[node] = Var(names.fresh("fixed"), type_of(node))
            return values[node]
        return map_children(node, hoist)

    body = hoist(loop.body)
    if not values:
        return loop
    declared = (
        Declare(var, value, constant=True, role=Role.VALUES) for value, var in values.items()
    )
    return block(*declared, replace(loop, body=body))


def _is_conversion(expr: Expr) -> bool:
    """Tell whether a float is computed from an integer."""
    return type_of(expr).kind == "float" and any(
        cast.type.kind == "float" and type_of(cast.operand).is_integer for cast in find(expr, Cast)
    )


def _is_fixed(expr: Expr, assigned: frozenset[Var]) -> bool:
    """Tell whether an expression cannot fail and reads nothing that an iteration assigns."""
    match expr:
        case Const():
            return True
        case Var():
            return expr not in assigned
        case Load(array, Const()):
            return array.storage is Storage.INPUT
        case Binary(op) if op in ("/", "%") and type_of(expr).is_integer:
            return False
        case Binary() | Unary() | Cast():
            return all(
                _is_fixed(child, assigned) for child in children(expr) if isinstance(child, Expr)
            )
    return False
