"""Compute a function once where two loops over the same numbers do, and keep it in the result.

    for p in a..b:                         reserve y[b]
      t += exp(x[p] - m)                   for p in a..b:
    z[i] = t                                 y[p] = exp(x[p] - m)
    reserve y[b]                    ->     for p in a..b:
    for p in a..b:                           t += y[p]
      y[p] = exp(x[p] - m) / t             z[i] = t
                                           for p in a..b:
                                             y[p] = y[p] / t

Statements between the loops that have nothing to do with the first come before it. What is kept
has the type of the result, whose elements nothing else reads or writes meanwhile. Functions are
those that take tens of instructions: others are computed as fast as they are read again. They have
a loop of their own, whose last numbers take vector lanes too; compilers leave those of a loop that
sums to scalars (1.7 times the time of both loops in rows of ten, gcc 12, Zen 5).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from codegen.build import block
from codegen.infer import c_function, type_of
from codegen.ir import (
    Apply,
    Array,
    Assign,
    Block,
    Comment,
    Declare,
    Expr,
    For,
    Function,
    Load,
    Module,
    Reserve,
    Stmt,
    Storage,
    Store,
    Table,
    Var,
)
from codegen.passes.vectorize import stride
from codegen.tree import find, map_children, rewrite, walk
from codegen.variables import arrays_of, assigned_vars, declared_vars, substitute


def keep_functions(module: Module) -> Module:
    """Return `module` with functions that two loops compute kept in the result by the first one."""
    return map_children(module, lambda f: _function(f) if isinstance(f, Function) else f)


def _function(function: Function) -> Function:
    return rewrite(function, lambda node: _block(node) if isinstance(node, Block) else node)


def _block(node: Block) -> Block:
    """Return a block whose loops store functions that later loops recompute."""
    flat = block(*node.body).body
    body = list(flat)
    for last, second in enumerate(flat):
        if not isinstance(second, For) or not _is_plain(second):
            continue
        for place in range(last - 1, -1, -1):
            first, between = body[place], body[place + 1 : last]
            if isinstance(first, For) and _run_alike(first, between, second):
                shared = _keeping(first, between, second)
                if shared is not None:
                    body[place : last + 1] = shared
                    break
    return node if tuple(body) == flat else Block(tuple(body))


def _is_plain(loop: For) -> bool:
    """Tell whether a loop is straight-line code over its range, with long functions."""
    if not loop.is_serial or loop.step != 1 or loop.unroll:
        return False
    if not all(isinstance(s, Declare | Assign | Store | Comment) for s in loop.body.body):
        return False
    local = declared_vars(loop.body)
    return local.isdisjoint(assigned_vars(loop.body)) and any(_long_functions(loop.body))


def _long_functions(node: object) -> Iterator[Apply]:
    """Yield the functions in a node that cost more than a load."""
    for call in find(node, Apply):
        spelled = c_function(call)
        if spelled.is_long or not spelled.vectorizes:
            yield call


def _run_alike(first: For, between: Sequence[Stmt], second: For) -> bool:
    """Tell whether two loops go through the same numbers."""
    if not _is_plain(first) or (first.start, first.stop) != (second.start, second.stop):
        return False
    limits = block(Declare(first.var, first.start), Declare(first.var, first.stop))
    modified = _modified(block(*between)) | assigned_vars(first) | assigned_vars(second)
    constant = all(array.storage is Storage.INPUT for array in arrays_of(limits))
    return constant and modified.isdisjoint(find(limits, Var))


def _modified(node: Block) -> frozenset[Var]:
    return assigned_vars(node) | declared_vars(node)


def _parted(first: Stmt, between: Sequence[Stmt]) -> tuple[list[Stmt], list[Stmt]]:
    """Return the statements that may move before the first one, and the remaining ones."""
    before: list[Stmt] = []
    after: list[Stmt] = []
    for stmt in between:
        free = all(_commute(stmt, other) for other in (first, *after))
        (before if free else after).append(stmt)
    return before, after


def _commute(one: Stmt, other: Stmt) -> bool:
    """Tell whether it does not matter which of two statements comes first."""
    shared = arrays_of(one) & arrays_of(other)
    tables = {*find(one, Table)} & {*find(other, Table)}
    return (
        not tables
        and _modified(block(one)).isdisjoint(find(other, Var))
        and _modified(block(other)).isdisjoint(find(one, Var))
        and all(array.storage is Storage.INPUT for array in shared)
    )


def _keeping(first: For, between: Sequence[Stmt], second: For) -> list[Stmt] | None:
    """Return two loops where the first stores a common function; None where that is illegal."""
    before, after = _parted(first, between)
    used = arrays_of(block(first, *after, *(s for s in before if not isinstance(s, Reserve))))
    at_first, at_second = {second.var: first.var}, {first.var: second.var}
    computed, later = _in_line(first), _in_line(second)
    for number, store in enumerate(later):
        if not isinstance(store, Store) or store.op is not None or store.array in used:
            continue
        place = substitute(store.index, at_first)
        value = substitute(store.value, at_first)
        aligned = replace(store, index=place, value=value)
        part = _shared_part(first, block(*after, second), computed, aligned)
        if part is None:
            continue
        store_, load = Store(store.array, place, part, role=store.role), Load(store.array, place)
        first_loop = replace(first, body=block(store_), note=_note(part, store.array))
        reader = Block(tuple(_exchanged(stmt, part, load) for stmt in computed))
        later[number] = replace(store, value=substitute(_exchanged(value, part, load), at_second))
        last = replace(second, body=Block(tuple(later)))
        return [*before, first_loop, replace(first, body=reader), *after, last]
    return None


def _shared_part(first: For, after: Block, computed: Sequence[Stmt], store: Store) -> Expr | None:
    """Return the largest common part that the first loop may store; None without one.

    after  what follows, with the loop that stores
    """
    modified = assigned_vars(first) | assigned_vars(after)
    modified |= {stmt.var for stmt in after.body if isinstance(stmt, Declare)}
    is_single = sum(node_ == store.array for node_ in find(after, Array)) == 1
    if not is_single or not modified.isdisjoint(find(store.index, Var)):
        return None
    if stride(store.index, {first.var: 1}) != 1:
        return None
    stored = frozenset(node_.array for node in (first, after) for node_ in find(node, Store))
    parts = {part for stmt in computed for part in walk(stmt)}
    part: Expr
    for part in walk(store.value):
        if part not in parts or not any(_long_functions(part)):
            continue
        fixed = modified.isdisjoint(find(part, Var)) and stored.isdisjoint(find(part, Array))
        if fixed and type_of(part) == store.array.element:
            return part
    return None


def _in_line(loop: For) -> list[Stmt]:
    """Return the statements of a loop, with its own variables inlined."""
    values: dict[Var, Expr] = {}
    statements: list[Stmt] = []
    for stmt in loop.body.body:
        stmt = substitute(stmt, values)
        if isinstance(stmt, Declare):
            values[stmt.var] = stmt.value
        elif not isinstance(stmt, Comment):
            statements.append(stmt)
    return statements


def _note(part: Expr, array: Array) -> str:
    functions = ", ".join(dict.fromkeys(call.function for call in _long_functions(part)))
    return f"{functions} once for two loops, kept in {array} between them"


def _exchanged(node: Any, part: Expr, by: Expr) -> Any:
    return rewrite(node, lambda below: by if below == part else below)
