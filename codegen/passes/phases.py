"""The structure of a result without its values, out of the function that makes both.

    both                               the structure only
    for p in 0..n:                     for p in 0..n:
      reserve crd q + 1                  reserve crd q + 1
      crd[q] = j                         crd[q] = j
      reserve vals q + 1   !values       q += 1
      vals[q] = a[p]       !values
      q += 1

(Kjolstad et al. 2017, section 6.3: the function that assembles.)
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from codegen.ir import Block, Declare, For, Function, If, Role, Team, Var
from codegen.passes.dead_code import clean
from codegen.passes.parameters import prune
from codegen.passes.simplify import simplify_tree
from codegen.tree import find, map_fields, rewrite


def structure_only(function: Function) -> Function:
    """Return `function` without the computation of values and its parameters."""
    structure = replace(function, body=without_values(function.body))
    return prune(clean(simplify_tree(structure)))


def without_values(body: Block) -> Block:
    """Return `body` without the statements that write values or ask them, and without parts of
    arrays of them."""
    sums = {declare.var for declare in find(body, Declare) if declare.role is Role.VALUES}

    def keep(node: Any) -> Any:
        match node:
            case Block(body=statements):
                statements_ = tuple(stmt for stmt in statements if not _depends_on(stmt, sums))
                return map_fields(node, lambda _, old: _other(statements_))
            case Team(parts=parts):
                return replace(node, parts=_other(parts))
            case For(reductions=reductions) if any(r.var in sums for r in reductions):
                return replace(node, reductions=tuple(r for r in reductions if r.var not in sums))
        return node

    return rewrite(body, keep)


def _depends_on(statement: Any, variables: Collection[Var]) -> bool:
    """Tell whether a statement runs where a condition holds that reads one of the variables."""
    if not variables or not isinstance(statement, If):
        return False
    return any(var in variables for var in find(statement.condition, Var))


def _other(nodes: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the nodes that do not compute values."""
    structure = tuple(node for node in nodes if getattr(node, "role", None) is not Role.VALUES)
    return nodes if len(structure) == len(nodes) else structure
