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

Statements: `if (true) s -> s`, `if (false) s else t -> t`, `while (false) s -> nothing`,
`i = i + e -> i += e`, and a loop whose bounds are constants that leave no iteration goes.
"""

from __future__ import annotations

from typing import Any, TypeVar

from codegen.algebra import simplify_step
from codegen.ir import (
    FALSE,
    Allocate,
    Assign,
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
    Load,
    Module,
    NewTable,
    Ranked,
    Select,
    Stmt,
    Unary,
    Var,
    VectorLoad,
    While,
)
from codegen.tree import rewrite

N = TypeVar("N")

_EXPRESSIONS = (
    Var, Const, Unary, Binary, Load, Cast, Call, Select, Count, Key, Ranked, VectorLoad, Broadcast,
)  # fmt: skip
_SCOPED = (Declare, Insert, Allocate, NewTable)


def simplify(module: Module) -> Module:
    """`module` with the rules above applied wherever they fit."""
    return simplify_tree(module)


def simplify_tree(node: N) -> N:
    """Any expression, statement or function, simplified."""
    return rewrite(node, _simplify_node)


def _simplify_node(node: Any) -> Any:
    if isinstance(node, _EXPRESSIONS):
        return simplify_step(node)
    match node:
        case If(condition=Const(value=value), then=then, orelse=orelse):
            return then if value else orelse
        case While(condition=condition) if condition == FALSE:
            return Block()
        case For(start=Const(value=start), stop=Const(value=stop)) if stop.real <= start.real:
            return Block()
        case Assign(var=var, value=Binary("+" | "-" | "*" as op, left, right), op=None):
            if left == var:
                return Assign(var, right, op, node.role)
        case Block(body=body):
            return _splice(node, body)
    return node


def _splice(block: Block, body: tuple[Stmt, ...]) -> Block:
    """Inner blocks that introduce nothing, merged into the one around them."""
    if not any(isinstance(s, Block) and _introduces_nothing(s) for s in body):
        return block
    merged: list[Stmt] = []
    for statement in body:
        if isinstance(statement, Block) and _introduces_nothing(statement):
            merged.extend(statement.body)
        else:
            merged.append(statement)
    return Block(tuple(merged))


def _introduces_nothing(block: Block) -> bool:
    """Whether `block` needs no scope of its own: for names, or for memory freed where it ends."""
    return not any(isinstance(s, _SCOPED) for s in block.body)
