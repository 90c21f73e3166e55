"""Algebraic simplification of expressions and of the statements that they decide.

The table is the test (tests/codegen/test_simplify.py reads it). Letters: i j k are int64, x y are
float64, p q bool. Each rule is exact for all values, so floats have few.

    i + 0 -> i
    0 + i -> i
    i - 0 -> i
    i * 1 -> i
    1 * i -> i
    i * 0 -> 0
    0 * i -> 0
    i // 1 -> i
    i % 1 -> 0
    i - i -> 0
    i + j - j -> i
    i + j - i -> j
    i - j + j -> i
    j + (i - j) -> i
    2 + i -> i + 2
    i + (j + 2) -> i + j + 2
    i + 2 + 3 -> i + 5
    i + 2 - 3 -> i - 1
    i - 2 + 2 -> i
    i * 2 * 3 -> i * 6
    2 * 3 + 1 -> 7
    -7 // 2 -> -3
    -7 % 2 -> -1
    min(3, 4) -> 3
    max(3, 4) -> 4
    min(i, i) -> i
    3 < 4 -> True
    i == i -> True
    i < i -> False
    not i < j -> i >= j
    not i == j -> i != j
    not not p -> p
    -(-i) -> i
    True and p -> p
    p and False -> False
    p or False -> p
    True or p -> True
    p and p -> p
    p == True -> p
    p == False -> not p
    p != False -> p
    i if True else j -> i
    i if p else i -> i
    x * 1.0 -> x
    1.0 * x -> x
    x / 1.0 -> x
    x - 0.0 -> x
    -(-x) -> x

What must stay, for infinities, NaN and -0.0:

    x * 0.0 -> x * 0.0
    x + 0.0 -> x + 0.0
    x - x -> x - x
    x == x -> x == x
    not x < y -> not x < y

A truth that is widened and compared with 0 is that truth, or its negation: `(int64_t) p != 0`.

Statements: `if (true) s -> s`, `if (false) s else t -> t`, `while (false) s -> nothing`,
`i = i + e -> i += e`. A serial loop with constant bounds that leave no iteration goes, and one with
a single iteration is its body, in which a loop takes over its note.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from codegen.algebra import simplify_step
from codegen.ir import (
    FALSE,
    Allocate,
    Apply,
    Assign,
    AtomicFetch,
    Binary,
    Block,
    Broadcast,
    Call,
    Cast,
    Const,
    Count,
    Declare,
    For,
    If,
    Insert,
    Key,
    Lead,
    Load,
    Module,
    NewTable,
    Ranked,
    Search,
    Select,
    Shuffle,
    Stmt,
    Unary,
    Var,
    VectorLoad,
    While,
)
from codegen.tree import find, rewrite, rewrite_again
from codegen.variables import declared_vars

N = TypeVar("N")

_EXPRESSIONS = (
    Var, Const, Unary, Binary, Load, Search, Cast, Call, Apply, Select, Count, Key, Ranked,
    VectorLoad, Broadcast, Shuffle, Lead,
)  # fmt: skip


def simplify(module: Module, simple: dict[int, Any]) -> Module:
    """Return `module` with the rules above applied wherever they fit.

    simple  nodes that are simple already, by identity; others are added
    """
    return rewrite_again(module, _simplify_node, simple)


def simplify_tree(node: N) -> N:
    """Simplify an expression, a statement or a function."""
    return rewrite_again(node, _simplify_node, {})


def _simplify_node(node: Any) -> Any:
    if isinstance(node, _EXPRESSIONS):
        return simplify_step(node)
    match node:
        case If(condition=Const(value=value), then=then, orelse=orelse):
            return then if value else orelse
        case While(condition=condition) if condition == FALSE:
            return Block()
        case For(start=Const(value=start), stop=Const(value=stop)):
            return _short_loop(node, int(start.real), int(stop.real))
        case Assign(var=var, value=Binary("+" | "-" | "*" as op, left, right), op=None):
            if left == var:
                return Assign(var, right, op, node.role)
        case Block(body=body):
            return _splice(node, body)
    return node


def _short_loop(loop: For, start: int, stop: int) -> Stmt:
    if stop <= start:
        return Block()
    if stop <= start + loop.step and loop.is_serial:
        body = _noted(loop.body, loop.note) if loop.note else loop.body
        return Block((Declare(loop.var, loop.start, constant=True), *body.body))
    return loop


def _noted(body: Block, note: str) -> Block:
    """Return `body` with the outer loop's note on its first loop without one."""
    first = next((loop for loop in find(body, For) if not loop.note), None)
    return rewrite(body, lambda node: replace(first, note=note) if node is first else node)


def _splice(block: Block, body: tuple[Stmt, ...]) -> Block:
    """Merge inner blocks into the outer one, unless names or lifetimes forbid it.

    A block that owns memory keeps its braces, for there the memory is given back.
    """
    if not any(isinstance(stmt, Block) for stmt in body):
        return block
    merged: list[Stmt] = []
    for place, stmt in enumerate(body):
        rest = body[:place] + body[place + 1 :]
        if isinstance(stmt, Block) and _can_merge(stmt, rest):
            merged.extend(stmt.body)
        else:
            merged.append(stmt)
    return block if len(merged) == len(body) and merged == list(body) else Block(tuple(merged))


def _can_merge(block: Block, rest: tuple[Stmt, ...]) -> bool:
    if any(isinstance(stmt, Allocate | NewTable) for stmt in block.body):
        return False
    introduced = {stmt.var for stmt in block.body if isinstance(stmt, Declare)}
    introduced |= {stmt.entry for stmt in block.body if isinstance(stmt, Insert)}
    introduced |= {stmt.var for stmt in block.body if isinstance(stmt, AtomicFetch)}
    return not any(introduced & declared_vars(other) for other in rest)
