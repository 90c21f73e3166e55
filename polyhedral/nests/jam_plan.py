"""Unroll-and-jam: several iterations of a loop are fused inside the loops below it.

    for k in a..b (unroll 2):            m = a + (b - a) / 2 * 2
      for j in c..d:                     for k in a..m step 2:
        C[j] += A[k] * B[k, j]     ->      for j in c..d:
                                             C[j] = C[j] + A[k] * B[k, j] + A[k+1] * B[k+1, j]
                                         for k in m..b:
                                           for j in c..d: C[j] += A[k] * B[k, j]

A loaded element serves all jammed iterations, and a sum stays in a register between them. Where the
bounds of an inner loop depend on the jammed one, as in a triangle, they are compared at run time,
and iterations with different bounds run one after the other. The loops from the jammed one inwards
must be permutable, and the order of additions is kept.
"""

from __future__ import annotations

from collections.abc import Sequence

from codegen.build import add, and_, block, div, eq, if_, maximum, mul, sub
from codegen.ir import (
    Binary,
    Block,
    Declare,
    Expr,
    For,
    If,
    Load,
    LoopKind,
    Stmt,
    Store,
    Var,
)
from codegen.names import Names
from codegen.tree import find, map_children, rewrite


def unroll_and_jam(node: Block, names: Names) -> Block:
    """Return the code with every loop unrolled and jammed that asks for it and contains another."""
    return block(*(_statement(stmt, names) for stmt in node.body))


def _statement(stmt: Stmt, names: Names) -> Stmt:
    if isinstance(stmt, For) and stmt.unroll > 1:
        return _jam(stmt, names)
    return map_children(stmt, lambda child: _below(child, names))


def _below(node: Stmt | Expr, names: Names) -> Stmt | Expr:
    if isinstance(node, Block):
        return unroll_and_jam(node, names)
    return _statement(node, names) if isinstance(node, For | If) else node


def _jam(loop: For, names: Names) -> Stmt:
    factor = loop.unroll
    middle = Var(names.fresh(f"{loop.var.name}_rest"))
    full = mul(div(maximum(sub(loop.stop, loop.start), 0), factor), factor)
    copies = [_shifted(loop.body, loop.var, by) for by in range(factor)]
    jammed = unroll_and_jam(block(_fused(copies)), names)
    plain = unroll_and_jam(loop.body, names)
    return block(
        Declare(middle, add(loop.start, full), constant=True),
        For(loop.var, loop.start, middle, jammed, factor, LoopKind.SERIAL),
        For(loop.var, middle, loop.stop, plain, 1, LoopKind.SERIAL),
    )


def _shifted(body: Block, var: Var, by: int) -> Block:
    """Return `body` with `var + by` for `var`."""
    if by == 0:
        return body
    value = add(var, by)
    return rewrite(body, lambda node: value if node == var else node)


# ---------------------------------------------------------------- fusion


def _fused(copies: Sequence[Stmt]) -> Stmt:
    """Return the copies of one statement fused, as far as their loops agree."""
    first = copies[0]
    if isinstance(first, Block) and len(first.body) == 1:
        return _fused([copy.body[0] for copy in copies if isinstance(copy, Block)])
    if isinstance(first, For):
        return _fused_loops([copy for copy in copies if isinstance(copy, For)])
    if isinstance(first, If) and not first.orelse.body:
        branches = [copy for copy in copies if isinstance(copy, If)]
        if all(branch.condition == first.condition for branch in branches):
            return If(first.condition, block(_fused([branch.then for branch in branches])))
    return _merged(block(*copies))


def _fused_loops(copies: Sequence[For]) -> Stmt:
    first = copies[0]
    body = block(_fused([copy.body for copy in copies]))
    fused = For(first.var, first.start, first.stop, body, first.step, first.kind, (), first.unroll)
    same = [
        eq(getattr(copy, end), getattr(first, end))
        for copy in copies[1:]
        for end in ("start", "stop")
        if getattr(copy, end) != getattr(first, end)
    ]
    return fused if not same else if_(and_(*same), fused, block(*copies))


def _merged(body: Block) -> Block:
    """Merge `C[x] += a; C[x] += b` to `C[x] = (C[x] + a) + b`, where no other code reads C."""
    stores = [stmt for stmt in body.body if isinstance(stmt, Store) and stmt.op in ("+", "-")]
    targets = {store.array for store in stores}
    if len(stores) < len(body.body) or any(load.array in targets for load in find(body, Load)):
        return body
    places: dict[tuple[object, Expr], list[Store]] = {}
    for store in stores:
        places.setdefault((store.array, store.index), []).append(store)
    return block(*(_one_store(group) for group in places.values()))


def _one_store(group: Sequence[Store]) -> Store:
    first = group[0]
    if len(group) == 1:
        return first
    total: Expr = Load(first.array, first.index)
    for store in group:
        assert store.op is not None
        total = Binary(store.op, total, store.value)
    return Store(first.array, first.index, total)
