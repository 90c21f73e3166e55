"""Sums of a vector loop, in variables while the loop runs.

    vector for k in a..b:                  s = 0
      y[i] += A[i, k] * x[k]        ->     vector for k in a..b reducing + s:
                                             s += A[i, k] * x[k]
                                           y[i] += s

For loops whose iterations are independent except for sums: the elements that they read are then
different from those that they add to, though possibly in the same array.
"""

from __future__ import annotations

from codegen.build import block, zero
from codegen.ir import (
    Array,
    Assign,
    Block,
    Declare,
    Expr,
    For,
    Reduction,
    Stmt,
    Store,
    Unary,
    Var,
)
from codegen.names import Names
from codegen.tree import find, rewrite, walk


def hoist_sums(node: Block, names: Names) -> Block:
    """Return `node` with the sums of its vector loops in variables."""
    return rewrite(node, lambda child: _loop(child, names) if isinstance(child, For) else child)


def _loop(loop: For, names: Names) -> Stmt:
    if not loop.is_vector:
        return loop
    sums = {
        stmt: Var(names.fresh("sum"), stmt.array.element)
        for stmt in loop.body.body
        if isinstance(stmt, Store) and _stays(stmt, loop)
    }
    if not sums:
        return loop
    body = block(*(_to_variable(stmt, sums) for stmt in loop.body.body))
    reductions = tuple(Reduction("+", var) for var in sums.values())
    return block(
        *(Declare(var, zero(var.type)) for var in sums.values()),
        For(loop.var, loop.start, loop.stop, body, loop.step, loop.kind, reductions, loop.unroll),
        *(Store(store.array, store.index, var, "+") for store, var in sums.items()),
    )


def _stays(store: Store, loop: For) -> bool:
    return store.op in ("+", "-") and loop.var not in set(find(store.index, Var))


def _to_variable(stmt: Stmt, sums: dict[Store, Var]) -> Stmt:
    if not isinstance(stmt, Store) or stmt not in sums:
        return stmt
    value: Expr = Unary("-", stmt.value) if stmt.op == "-" else stmt.value
    return Assign(sums[stmt], value, "+")


def used_names(node: Block) -> set[str]:
    """Return the names of variables and arrays in `node`."""
    return {part.name for part in walk(node) if isinstance(part, Var | Array)}
