"""What passes over sums share: loops rewritten wherever they stand, bodies that make one store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import is_
from typing import Any

from codegen.ir import (
    Array,
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
    Table,
    Var,
)
from codegen.names import Names
from codegen.passes.simplify import simplify_tree
from codegen.tree import map_children, map_fields, walk
from codegen.variables import substitute

Rewrite = Callable[[For, Names], list[Stmt] | None]


def rewrite_loops(module: Module, change: Rewrite) -> Module:
    """Return `module` with each loop, the outermost first, that `change` has statements for."""

    def function(each: Function) -> Function:
        names = Names(n.name for n in walk(each) if isinstance(n, Var | Array | Table))
        return map_fields(
            each, lambda name, value: _below(value, names, change) if name == "body" else value
        )

    return map_children(module, lambda each: function(each) if isinstance(each, Function) else each)


def _below(node: Any, names: Names, change: Rewrite) -> Any:
    if not isinstance(node, Block):
        return map_children(node, lambda child: _below(child, names, change))
    body: list[Stmt] = []
    for stmt in node.body:
        found = change(stmt, names) if isinstance(stmt, For) else None
        body += [_below(stmt, names, change)] if found is None else found
    same = len(body) == len(node.body) and all(map(is_, body, node.body))
    return node if same else map_fields(node, lambda _, old: tuple(body))


def declared_and_last(body: Block) -> tuple[tuple[Declare, ...], Stmt] | None:
    """What a block declares, and the one statement behind; None where it has others."""
    found = [stmt for stmt in body.body if not isinstance(stmt, Comment)]
    if not found:
        return None
    *before, last = found
    declares = tuple(stmt for stmt in before if isinstance(stmt, Declare) and stmt.constant)
    return (declares, last) if len(declares) == len(before) else None


def one_store(body: Block, known: Mapping[Var, Expr]) -> tuple[Store, Expr | None] | None:
    """Return the one store of a body, without what it declares, and the condition that it stands
    under; None where it does more.

    known  values of variables, which are put in
    """
    split = declared_and_last(body)
    if split is None:
        return None
    declares, last = split
    values = dict(known)
    for each in declares:
        values[each.var] = simplify_tree(substitute(each.value, values))
    if isinstance(last, Store):
        return simplify_tree(substitute(last, values)), None
    if not isinstance(last, If) or last.orelse.body:
        return None
    inner = one_store(last.then, values)
    if inner is None or inner[1] is not None:
        return None
    return inner[0], simplify_tree(substitute(last.condition, values))
