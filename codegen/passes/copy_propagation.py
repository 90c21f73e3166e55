"""Put the value of a variable that is only another name for something in the variable's place.

    j = p                     y[p] = x[p]
    y[j] = x[j]       ->

where nothing assigns j or p after their declaration. Constants are propagated alike.
"""

from __future__ import annotations

from typing import Any

from codegen.ir import Block, Const, Declare, Expr, Function, Module, Stmt, Var
from codegen.tree import find, map_children, map_fields
from codegen.variables import assigned_vars, map_values

Values = dict[Var, Expr]


def propagate_copies(module: Module) -> Module:
    """Return `module` without variables that merely name a constant or another unchanging
    variable."""
    return map_children(module, lambda f: _function(f) if isinstance(f, Function) else f)


def _function(function: Function) -> Function:
    assigned = assigned_vars(function.body)
    if not any(_is_copy(declare, assigned) for declare in find(function.body, Declare)):
        return function
    return map_fields(
        function,
        lambda name, value: _block(value, {}, assigned) if name == "body" else value,
    )


def _block(block: Block, outer: Values, assigned: frozenset[Var]) -> Block:
    values = dict(outer)
    body: list[Stmt] = []
    for stmt in block.body:
        stmt = _propagate(stmt, values, assigned)
        if isinstance(stmt, Declare) and _is_copy(stmt, assigned):
            values[stmt.var] = stmt.value
        else:
            body.append(stmt)
    if len(body) == len(block.body) and all(a is b for a, b in zip(body, block.body, strict=True)):
        return block
    return Block(tuple(body))


def _propagate(node: Any, values: Values, assigned: frozenset[Var]) -> Any:
    """Return `node` with `values` put in, and with the copies inside it propagated too."""

    def below(child: Any) -> Any:
        return _propagate(child, values, assigned)

    if isinstance(node, Block):
        return _block(node, values, assigned)
    if isinstance(node, Var):
        return values.get(node, node)
    return map_values(node, below)


def _is_copy(declare: Declare, assigned: frozenset[Var]) -> bool:
    """Tell whether the variable and its value stay equal and have one type."""
    if declare.var in assigned:
        return False
    match declare.value:
        case Const(type=scalar):
            return scalar == declare.var.type
        case Var(type=scalar) as source:
            return scalar == declare.var.type and source not in assigned
    return False
