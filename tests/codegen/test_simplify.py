"""The table in the docstring of `passes.simplify` is the test."""

from __future__ import annotations

import ast
import re

import pytest

from codegen.ir import (
    Array,
    Assign,
    Binary,
    Block,
    Cast,
    Const,
    Declare,
    Expr,
    For,
    If,
    LoopKind,
    Select,
    Storage,
    Store,
    Unary,
    Var,
    While,
)
from codegen.passes import simplify as module
from codegen.passes.simplify import simplify_tree
from codegen.types import BOOL, FLOAT32, FLOAT64, INT8, INT32, INT64

assert module.__doc__ is not None
TABLE = re.findall(r"^    (.+) -> (.+)$", module.__doc__, re.MULTILINE)

_TYPES = {"i": INT64, "j": INT64, "k": INT64, "x": FLOAT64, "y": FLOAT64, "p": BOOL, "q": BOOL}
_BINARY = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "/", ast.Mod: "%",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.And: "&&", ast.Or: "||",
}  # fmt: skip


def read(text: str) -> Expr:
    """A line of the table, which is Python, as loop IR."""
    return convert(ast.parse(text, mode="eval").body)


def convert(node: ast.expr) -> Expr:  # noqa: C901 - one case a node
    match node:
        case ast.Name(id=name):
            return Var(name, _TYPES[name])
        case ast.Constant(value=bool(value)):
            return Const(value, BOOL)
        case ast.Constant(value=float(value)):
            return Const(value, FLOAT64)
        case ast.Constant(value=int(value)):
            return Const(value, INT64)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
            return Const(-value, INT64)
        case ast.UnaryOp(op=op, operand=operand):
            return Unary("!" if isinstance(op, ast.Not) else "-", convert(operand))
        case ast.BinOp(left=left, op=op, right=right):
            return Binary(_BINARY[type(op)], convert(left), convert(right))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return Binary(_BINARY[type(op)], convert(left), convert(right))
        case ast.BoolOp(op=op, values=[left, right]):
            return Binary(_BINARY[type(op)], convert(left), convert(right))
        case ast.Call(func=ast.Name(id=op), args=[left, right]):
            return Binary(op, convert(left), convert(right))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return Select(convert(test), convert(body), convert(orelse))
    raise AssertionError(ast.dump(node))


def test_the_table_is_found() -> None:
    assert len(TABLE) > 40


@pytest.mark.parametrize(("before", "after"), TABLE)
def test_rule(before: str, after: str) -> None:
    assert simplify_tree(read(before)) == read(after)


def test_constants_that_leave_their_type_stay() -> None:
    big = Const(127, INT8)
    sum_ = Binary("+", big, Const(1, INT8))
    assert simplify_tree(sum_) is sum_


def test_division_by_zero_stays() -> None:
    quotient = Binary("/", Const(1), Const(0))
    assert simplify_tree(quotient) is quotient


def test_a_rule_keeps_the_width_of_the_result() -> None:
    narrow = Var("m", INT32)
    assert simplify_tree(Binary("+", narrow, Const(0, INT64))) == Cast(INT64, narrow)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Cast(INT64, Const(3, INT32)), Const(3, INT64)),
        (Cast(FLOAT64, Const(3, INT64)), Const(3.0, FLOAT64)),
        (Cast(FLOAT32, Const(2**24 + 1, INT64)), Cast(FLOAT32, Const(2**24 + 1, INT64))),
        (Cast(INT8, Const(300, INT64)), Cast(INT8, Const(300, INT64))),
        (Cast(INT64, Cast(INT32, Var("m", INT8))), Cast(INT64, Var("m", INT8))),
        (Cast(INT64, Cast(INT8, Var("m", INT32))), Cast(INT64, Cast(INT8, Var("m", INT32)))),
        (Cast(INT64, Var("n")), Var("n")),
        (Binary("!=", Cast(INT64, Var("p", BOOL)), Const(0, INT64)), Var("p", BOOL)),
        (Binary("==", Cast(INT8, Var("p", BOOL)), Const(0, INT8)), Unary("!", Var("p", BOOL))),
        (
            Binary("!=", Cast(INT64, Var("m", INT8)), Const(0, INT64)),
            Binary("!=", Cast(INT64, Var("m", INT8)), Const(0, INT64)),
        ),
    ],
)
def test_casts(before: Expr, after: Expr) -> None:
    assert simplify_tree(before) == after


Y = Array("y", INT64, Storage.OUTPUT)
N = Var("n")
S, T = Store(Y, Const(0), N), Store(Y, Const(1), N)


def one(*body: object) -> Block:
    return Block(body)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (one(If(Const(True, BOOL), one(S), one(T))), one(S)),
        (one(If(Const(False, BOOL), one(S), one(T))), one(T)),
        (one(While(Const(False, BOOL), one(S))), one()),
        (one(For(Var("i"), Const(3), Const(3), one(S))), one()),
        (
            one(For(Var("i"), Const(2), Const(3), one(S))),
            one(Declare(Var("i"), Const(2), constant=True), S),
        ),
        (one(Assign(N, Binary("+", N, Const(2)))), one(Assign(N, Const(2), "+"))),
        (one(one(S), T), one(S, T)),
    ],
)
def test_statements(before: Block, after: Block) -> None:
    assert simplify_tree(before) == after


def test_blocks_stay_apart_where_names_would_clash() -> None:
    declare = Declare(Var("t"), Const(1))
    before = one(one(declare, S), one(declare, T))
    assert simplify_tree(before) == before


def test_a_parallel_loop_of_one_iteration_stays_a_loop() -> None:
    before = one(For(Var("i"), Const(0), Const(1), one(S), kind=LoopKind.PARALLEL))
    assert simplify_tree(before) is before
