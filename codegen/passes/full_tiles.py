"""Separate the full tiles from the last one where a loop in tiles is unrolled or vectorized.

    const end = min(i0 * 8 + 8, n)         if i0 * 8 + 8 <= n:
    for i in i0 * 8..end unroll 4:    ->     for i in i0 * 8..i0 * 8 + 8 unroll 4:
      …                                        …
                                           else:
                                             for i in i0 * 8..end unroll 4:
                                               …

The compiler then knows how often the loop runs in a full tile. Only loops that someone asked to be
unrolled or vectorized are doubled, for code has its price too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from codegen.build import and_, block, le, sub
from codegen.ir import Binary, Block, Const, Declare, Expr, For, If, Module, Stmt, Var
from codegen.tree import map_children
from codegen.variables import substitute

Known = Mapping[Var, Expr]


def separate_full_tiles(module: Module) -> Module:
    """Return `module` with a loop of constant length for full tiles beside the one for any tile."""
    return map_children(module, lambda function: _within(function, {}))


def _within(node: Any, known: Known) -> Any:
    """Return `node` with its loops separated, where `known` are the constants around it."""
    if isinstance(node, Block):
        return _block(node, known)
    if not isinstance(node, Stmt):
        return node if isinstance(node, Expr) else map_children(node, lambda n: _within(n, known))
    node = map_children(node, lambda child: _within(child, known))
    return _separated(node, known) if isinstance(node, For) else node


def _block(body: Block, known: Known) -> Block:
    inside = dict(known)
    statements = []
    for stmt in body.body:
        statements.append(_within(stmt, inside))
        if isinstance(stmt, Declare) and stmt.constant:
            inside[stmt.var] = substitute(stmt.value, inside)
    same = all(new is old for new, old in zip(statements, body.body, strict=True))
    return body if same else Block(tuple(statements))


def _separated(loop: For, known: Known) -> For | If:
    asked = loop.unroll > 1 or loop.is_vector
    if not asked or loop.step != 1:
        return loop
    ends = tuple(_operands(substitute(loop.stop, known)))
    start = substitute(loop.start, known)
    full = next((end for end in ends if _is_ahead(end, start)), None)
    if full is None or len(ends) == 1:
        return loop
    fits = and_(*(le(full, end) for end in ends if end is not full))
    note = f"{loop.var.name}: full tiles in a loop of their own"
    whole = replace(loop, start=start, stop=full, note=note)
    return If(fits, block(whole), block(loop))


def _operands(expr: Expr) -> Iterator[Expr]:
    """What `expr` is the minimum of."""
    match expr:
        case Binary(op="min", left=left, right=right):
            yield from _operands(left)
            yield from _operands(right)
        case _:
            yield expr


def _is_ahead(end: Expr, start: Expr) -> bool:
    """Tell whether `end` is a constant number of steps behind `start`."""
    match end, sub(end, start):
        case Binary(op="+", left=left, right=Const()), _ if left == start:
            return True
        case _, Const():
            return True
    return False
