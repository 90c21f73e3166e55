"""Compute one long function after another of a block of elements, not all of them of one element.

    vector for i in a..b:          for block in a..b step 512:
      y[i] = exp(sin(x[i]))    ->    end = min(block + 512, b)
                                     vector for i in block..end:
                                       y[i] = sin(x[i])
                                     vector for i in block..end:
                                       y[i] = exp(y[i])

A function of tens of instructions waits for its own results; the processor fills the time with the
next elements, as far as it looks ahead: not past a chain of such functions (1.6 times the speed for
five, Zen 4). The result itself keeps what lies between, in the nearest cache, so the loop must not
read it, and what is kept must be of its type.

    parallel for i in 0..n:        parallel for block in 0..n step 512:
      y[i] = exp(x[i])       ->      end = min(block + 512, n)
                                     vector for i in block..end:
                                       y[i] = exp(x[i])

A loop whose iterations threads share takes no lanes by itself: gcc leaves it to scalars (7 times
the time for exp, 1.6 times that of a large array times a number, gcc 12, AVX-512). So it is cut
where it has one such function or none, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from codegen.build import add, block, minimum
from codegen.infer import c_function, type_of
from codegen.ir import (
    TRUE,
    Apply,
    Comment,
    Declare,
    Expr,
    For,
    Function,
    Load,
    LoopKind,
    Module,
    Stmt,
    Store,
    Var,
)
from codegen.names import Names
from codegen.passes.vectorize import lanes_of
from codegen.tree import find, map_children, rewrite
from codegen.variables import names_beside

BLOCK = 512
"""Elements computed at once: they stay in the nearest cache."""


def split_function_chains(module: Module) -> Module:
    """Return `module` with loops over several long functions cut into loops over one each."""
    return map_children(module, lambda f: _function(f) if isinstance(f, Function) else f)


def _function(function: Function) -> Function:
    names = names_beside(function)
    return rewrite(function, lambda node: _split(node, names))


def _split(node: Any, names: Names) -> Any:
    store = _only_store(node) if isinstance(node, For) else None
    if store is None:
        return node
    values = list(_parts(store, store.value))
    if len(values) == 1 and node.is_vector:
        return node
    first, last = Var(names.fresh("block")), Var(names.fresh("end"))
    declarations = [stmt for stmt in node.body.body if stmt is not store]
    stores = [Store(store.array, store.index, value, role=store.role) for value in values]
    lanes = LoopKind.VECTOR
    loops = [For(node.var, first, last, block(*declarations, s), kind=lanes) for s in stores]
    end = Declare(last, minimum(add(first, BLOCK), node.stop), constant=True)
    kind = LoopKind.SERIAL if node.is_vector else node.kind
    return For(first, node.start, node.stop, block(end, *loops), BLOCK, kind, note=node.note)


def _only_store(loop: For) -> Store | None:
    """Return the only store of a loop that lanes or threads share; None for other loops."""
    if not _may_be_cut(loop):
        return None
    stores: list[Store] = []
    declarations: list[Stmt] = []
    for stmt in loop.body.body:
        if isinstance(stmt, Store):
            stores.append(stmt)
        else:
            declarations.append(stmt)
    simple = all(isinstance(stmt, Declare | Comment) for stmt in declarations)
    if len(stores) != 1 or not simple or any(_long_functions(stmt) for stmt in declarations):
        return None
    store = stores[0]
    reads_it = any(load.array == store.array for load in find(loop.body, Load))
    return None if store.op is not None or reads_it else store


def _may_be_cut(loop: For) -> bool:
    if loop.step != 1 or loop.reductions:
        return False
    return loop.is_vector or (loop.is_parallel and not loop.unroll and lanes_of(loop) == ())


def _long_functions(node: object) -> list[Apply]:
    return [call for call in find(node, Apply) if c_function(call).is_long]


def _parts(store: Store, value: Expr) -> Iterator[Expr]:
    """Yield the values to store in turn, each later one as a function of the stored value."""
    functions = _long_functions(value)
    stored = Load(store.array, store.index)
    for inner in functions if len(functions) > 1 else ():
        one = len(_long_functions(inner)) == 1 and type_of(inner) == store.array.element
        if one and stored not in find(_replaced(value, inner, TRUE), Load):
            yield inner
            yield from _parts(store, _replaced(value, inner, stored))
            return
    yield value


def _replaced(value: Expr, part: Expr, by: Expr) -> Expr:
    """Return the value with something else for a part.

    From the outside in: f(2 * f(2 * y)) with y for f(2 * y) is f(2 * y), and not y.
    """
    if value == part:
        return by
    return map_children(value, lambda child: _replaced(child, part, by))
