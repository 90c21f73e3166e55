"""Loops that only count, without their rounds.

for p in a..b: n += 2          →  n += 2 * max(b - a, 0)
for i in p..p + 1: body        →  i = p;  body
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from codegen import build
from codegen.ir import (
    Assign,
    Block,
    Const,
    Declare,
    Expr,
    For,
    Function,
    LoopKind,
    Module,
    Var,
)
from codegen.tree import find, map_children, rewrite
from codegen.variables import variables_read


def count_at_once(module: Module) -> Module:
    """Return `module` without counting loops and loops of one round."""
    return map_children(module, lambda f: _function(f) if isinstance(f, Function) else f)


def _function(function: Function) -> Function:
    values: dict[Var, set[Expr]] = {}
    for stmt in find(function, Declare):
        if stmt.constant:
            values.setdefault(stmt.var, set()).add(stmt.value)
    ends = {var: next(iter(assigned)) for var, assigned in values.items() if len(assigned) == 1}
    return rewrite(function, lambda node: _at_once(node, ends))


def _at_once(node: Any, ends: Mapping[Var, Expr]) -> Any:
    """Return a loop of the forms above; `ends` are the values of constants."""
    kinds = (LoopKind.SERIAL, LoopKind.THREADS, LoopKind.LANES)
    if not isinstance(node, For) or node.kind not in kinds or node.step != 1:
        return node
    stop = ends.get(node.stop, node.stop) if isinstance(node.stop, Var) else node.stop
    if stop == build.add(node.start, 1) and node.is_serial:
        return Block((Declare(node.var, node.start, constant=True), *node.body.body))
    counts = tuple(_counts(node))
    if not counts or len(counts) < len(node.body.body):
        return node
    rounds = build.maximum(build.sub(node.stop, node.start), 0)
    return build.block(*(replace(c, value=build.mul(c.value, rounds)) for c in counts))


def _counts(loop: For) -> Iterator[Assign]:
    """Yield the statements of a loop that add the same number in each round."""
    read = variables_read(build.block(Declare(loop.var, build.add(loop.start, loop.stop))))
    for stmt in loop.body.body:
        if not isinstance(stmt, Assign) or stmt.op != "+" or not isinstance(stmt.value, Const):
            continue
        if stmt.var.type == loop.var.type and stmt.var not in read:
            yield stmt
