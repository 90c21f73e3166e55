"""Keep a sum into one element of an array in a variable while its loop runs.

    for k in a..b:                         s = 0
      y[i] += A[i, k] * x[k]        ->     for k in a..b:
                                             s += A[i, k] * x[k]
                                           y[i] += s

The loop then has a reduction, which `vectorize` may run in lanes. Only where the loop holds nothing
but such sums, with places that it does not change, and reads none of the arrays that it adds to.
"""

from __future__ import annotations

from codegen.build import block, zero
from codegen.ir import (
    Array,
    Assign,
    Declare,
    Expr,
    For,
    Function,
    Load,
    Module,
    Stmt,
    Store,
    Unary,
    Var,
)
from codegen.names import Names
from codegen.tree import find, map_children, rewrite, walk


def hoist_sums(module: Module) -> Module:
    """`module` with the sums of its innermost loops in variables."""
    return map_children(module, lambda f: _function(f) if isinstance(f, Function) else f)


def _function(function: Function) -> Function:
    names = Names(n.name for n in walk(function) if isinstance(n, Var | Array))
    return rewrite(function, lambda node: _loop(node, names) if isinstance(node, For) else node)


def _loop(loop: For, names: Names) -> Stmt:
    stores = [stmt for stmt in loop.body.body if isinstance(stmt, Store)]
    if not stores or len(stores) < len(loop.body.body):
        return loop
    if not all(_is_sum(store, loop) for store in stores):
        return loop
    sums = [Var(names.fresh("sum"), store.array.element) for store in stores]
    pairs = list(zip(sums, stores, strict=True))
    body = block(*(Assign(var, _signed(store), "+") for var, store in pairs))
    return block(
        *(Declare(var, zero(var.type)) for var in sums),
        For(loop.var, loop.start, loop.stop, body, loop.step, loop.kind, (), loop.unroll),
        *(Store(store.array, store.index, var, "+") for var, store in pairs),
    )


def _is_sum(store: Store, loop: For) -> bool:
    stays = all(var != loop.var for var in find(store.index, Var))
    stays = stays and not any(True for _ in find(store.index, Load))
    others = any(load.array == store.array for load in find(loop.body, Load))
    return store.op in ("+", "-") and stays and not others


def _signed(store: Store) -> Expr:
    return Unary("-", store.value) if store.op == "-" else store.value
