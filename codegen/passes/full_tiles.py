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

Constants = Mapping[Var, Expr]


def separate_full_tiles(module: Module) -> Module:
    """Return `module` with a loop of constant length for full tiles beside the one for any tile."""
    return map_children(module, lambda function: _separate_below(function, {}))


def _separate_below(node: Any, constants: Constants) -> Any:
    """Return `node` with its loops separated, where `constants` are the constants around it."""
    if isinstance(node, Block):
        return _block(node, constants)
    if not isinstance(node, Stmt):
        return (
            node
            if isinstance(node, Expr)
            else map_children(node, lambda n: _separate_below(n, constants))
        )
    node = map_children(node, lambda child: _separate_below(child, constants))
    return _separated(node, constants) if isinstance(node, For) else node


def _block(body: Block, constants: Constants) -> Block:
    inside = dict(constants)
    statements = []
    for stmt in body.body:
        statements.append(_separate_below(stmt, inside))
        if isinstance(stmt, Declare) and stmt.constant:
            inside[stmt.var] = substitute(stmt.value, inside)
    same = all(new is old for new, old in zip(statements, body.body, strict=True))
    return body if same else Block(tuple(statements))


def _separated(loop: For, constants: Constants) -> For | If:
    is_marked = loop.unroll > 1 or loop.is_vector
    if not is_marked or loop.step != 1:
        return loop
    ends = tuple(_operands(substitute(loop.stop, constants)))
    start = substitute(loop.start, constants)
    full = next((end for end in ends if _is_ahead(end, start)), None)
    if full is None or len(ends) == 1:
        return loop
    fits = and_(*(le(full, end) for end in ends if end is not full))
    note = f"{loop.var.name}: full tiles in a loop of their own"
    full_tile = replace(loop, start=start, stop=full, note=note)
    return If(fits, block(full_tile), block(loop))


def _operands(expr: Expr) -> Iterator[Expr]:
    """Yield the operands of a minimum."""
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
