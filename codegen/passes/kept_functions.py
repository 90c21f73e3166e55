"""Compute a function once where two loops over the same numbers do, and keep it in the result.

    for p in a..b:                         reserve y[b]
      t += exp(x[p] - m)                   for p in a..b:
    reserve y[b]                    ->       y[p] = exp(x[p] - m)
    for p in a..b:                         for p in a..b:
      y[p] = exp(x[p] - m) / t               t += y[p]
                                           for p in a..b:
                                             y[p] = y[p] / t

The first loop moves to the second, over statements that have nothing to do with it. What is kept
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
    LoopKind,
    Module,
    Reserve,
    Stmt,
    Storage,
    Store,
    Var,
)
from codegen.passes.vectorize import stride
from codegen.tree import find, map_children, rewrite, walk
from codegen.variables import arrays_of, assigned_vars, declared_vars, substitute


def keep_functions(module: Module) -> Module:
    """`module` with functions that two loops compute kept in the result by the first one."""
    return map_children(module, lambda f: _function(f) if isinstance(f, Function) else f)


def _function(function: Function) -> Function:
    return rewrite(function, lambda node: _block(node) if isinstance(node, Block) else node)


def _block(node: Block) -> Block:
    """A block in which each loop keeps what a later one computes again."""
    flat = block(*node.body).body
    body = list(flat)
    for last, second in enumerate(flat):
        if not isinstance(second, For) or not _is_plain(second):
            continue
        for place in range(last - 1, -1, -1):
            first, between = body[place], body[place + 1 : last]
            if isinstance(first, For) and _may_meet(first, between, second):
                loops = _keeping(first, between, second)
                if loops is not None:
                    body[place : last + 1] = [*between, *loops]
                    break
    return node if tuple(body) == flat else Block(tuple(body))


def _is_plain(loop: For) -> bool:
    """Whether a loop does one thing after the other, once for each number, with long functions."""
    if loop.kind is not LoopKind.SERIAL or loop.step != 1 or loop.unroll:
        return False
    if not all(isinstance(s, Declare | Assign | Store | Comment) for s in loop.body.body):
        return False
    local = declared_vars(loop.body)
    return local.isdisjoint(assigned_vars(loop.body)) and any(_long_functions(loop.body))


def _long_functions(node: object) -> Iterator[Apply]:
    """The functions in a node that take longer than reading what they give."""
    for call in find(node, Apply):
        spelled = c_function(call)
        if spelled.is_long or not spelled.vectorizes:
            yield call


def _may_meet(first: For, between: Sequence[Stmt], second: For) -> bool:
    """Whether a loop may move over statements, to one over the same numbers."""
    if not _is_plain(first) or (first.start, first.stop) != (second.start, second.stop):
        return False
    others = block(*between)
    own = {var.name for var in declared_vars(first)}
    here, there = assigned_vars(first), assigned_vars(others) | declared_vars(others)
    limits = block(Declare(first.var, first.start), Declare(first.var, first.stop))
    fixed = there | here | assigned_vars(second)
    arrays = (arrays_of(first) & arrays_of(others)) | arrays_of(limits)
    return (
        here.isdisjoint(find(others, Var))
        and there.isdisjoint(find(first, Var))
        and fixed.isdisjoint(find(limits, Var))
        and own.isdisjoint(var.name for var in there)
        and all(array.storage is Storage.INPUT for array in arrays)
    )


def _keeping(first: For, between: Sequence[Stmt], second: For) -> tuple[For, ...] | None:
    """A loop that keeps what both of two compute, and these; None where nothing may be kept."""
    apart = arrays_of(block(first, *(stmt for stmt in between if not isinstance(stmt, Reserve))))
    at_first = {second.var: first.var}
    computed, later = _in_line(first), _in_line(second)
    for number, store in enumerate(later):
        if not isinstance(store, Store) or store.op is not None or store.array in apart:
            continue
        place = substitute(store.index, at_first)
        value = substitute(store.value, at_first)
        part = _shared_part(first, second, computed, replace(store, index=place, value=value))
        if part is None:
            continue
        kept, held = Store(store.array, place, part, role=store.role), Load(store.array, place)
        own = replace(first, body=block(kept), note=_note(part, store.array))
        reader = Block(tuple(_exchanged(stmt, part, held) for stmt in computed))
        at_second = {first.var: second.var}
        again = substitute(_exchanged(value, part, held), at_second)
        later[number] = replace(store, value=again)
        return own, replace(first, body=reader), replace(second, body=Block(tuple(later)))
    return None


def _shared_part(first: For, second: For, computed: Sequence[Stmt], store: Store) -> Expr | None:
    """The largest part of what is stored, in the first loop's variable, that this loop computes and
    may keep there; None where there is none."""
    changed = assigned_vars(first) | assigned_vars(second)
    once = sum(each == store.array for each in find(second.body, Array)) == 1
    if not once or not changed.isdisjoint(find(store.index, Var)):
        return None
    if stride(store.index, {first.var: 1}) != 1:
        return None
    written = {each.array for loop in (first, second) for each in find(loop.body, Store)}
    given = {part for stmt in computed for part in walk(stmt)}
    part: Expr
    for part in walk(store.value):
        if part not in given or not any(_long_functions(part)):
            continue
        fixed = changed.isdisjoint(find(part, Var)) and written.isdisjoint(find(part, Array))
        if fixed and type_of(part) == store.array.element:
            return part
    return None


def _in_line(loop: For) -> list[Stmt]:
    """What a loop does, with the values of its own variables in their places."""
    values: dict[Var, Expr] = {}
    found: list[Stmt] = []
    for stmt in loop.body.body:
        stmt = substitute(stmt, values)
        if isinstance(stmt, Declare):
            values[stmt.var] = stmt.value
        elif not isinstance(stmt, Comment):
            found.append(stmt)
    return found


def _note(part: Expr, array: Array) -> str:
    functions = ", ".join(dict.fromkeys(call.function for call in _long_functions(part)))
    return f"{functions} once for two loops, kept in {array} between them"


def _exchanged(node: Any, part: Expr, by: Expr) -> Any:
    return rewrite(node, lambda below: by if below == part else below)
