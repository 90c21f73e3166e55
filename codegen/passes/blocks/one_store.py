"""What passes over sums share: loops rewritten wherever they stand, bodies that make one store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import is_
from typing import Any

from codegen.ir import (
    Block,
    Comment,
    Declare,
    Expr,
    For,
    Function,
    If,
    Module,
    Stmt,
    Store,
    Var,
)
from codegen.names import Names
from codegen.passes.simplify import simplify_tree
from codegen.tree import map_children, map_fields
from codegen.variables import names_beside, substitute

Rewrite = Callable[[For, Names], list[Stmt] | None]


def rewrite_loops(module: Module, change: Rewrite) -> Module:
    """Return `module` with each loop, the outermost first, that `change` has statements for."""

    def function(function_: Function) -> Function:
        names = names_beside(function_)
        return map_fields(
            function_, lambda name, value: _below(value, names, change) if name == "body" else value
        )

    return map_children(
        module, lambda child: function(child) if isinstance(child, Function) else child
    )


def _below(node: Any, names: Names, change: Rewrite) -> Any:
    if not isinstance(node, Block):
        return map_children(node, lambda child: _below(child, names, change))
    body: list[Stmt] = []
    for stmt in node.body:
        new_body = change(stmt, names) if isinstance(stmt, For) else None
        body += [_below(stmt, names, change)] if new_body is None else new_body
    same = len(body) == len(node.body) and all(map(is_, body, node.body))
    return node if same else map_fields(node, lambda _, old: tuple(body))


def declared_and_last(body: Block) -> tuple[tuple[Declare, ...], Stmt] | None:
    """Return the declarations of a block and its last statement; None for other blocks."""
    statements = [stmt for stmt in body.body if not isinstance(stmt, Comment)]
    if not statements:
        return None
    *before, last = statements
    declares = tuple(stmt for stmt in before if isinstance(stmt, Declare) and stmt.constant)
    return (declares, last) if len(declares) == len(before) else None


def one_store(body: Block, outer: Mapping[Var, Expr]) -> tuple[Store, Expr | None] | None:
    """Return the only store of a body, and its condition; None for other bodies.

    outer  values of variables, which are put in
    """
    split = declared_and_last(body)
    if split is None:
        return None
    declares, last = split
    values = dict(outer)
    for declare in declares:
        values[declare.var] = simplify_tree(substitute(declare.value, values))
    if isinstance(last, Store):
        return simplify_tree(substitute(last, values)), None
    if not isinstance(last, If) or last.orelse.body:
        return None
    inner = one_store(last.then, values)
    if inner is None or inner[1] is not None:
        return None
    return inner[0], simplify_tree(substitute(last.condition, values))
