"""Statements of the loop IR as text that C and CUDA C++ have in common.

How loops are shared and what is atomic differs: a `Dialect` says it.
"""

from __future__ import annotations

from typing import assert_never

from codegen.emit.expressions import PRECEDENCE, expression, helper, vector_place, widened
from codegen.emit.memory import Lines, Scope, indent, memory, table
from codegen.infer import LOGICAL, UPDATES, type_of
from codegen.ir import (
    AddRuns,
    Allocate,
    Assign,
    AtomicFetch,
    AtomicStore,
    Barrier,
    Block,
    ClearTable,
    Combine,
    Comment,
    Const,
    Declare,
    Expect,
    Expr,
    Fill,
    For,
    If,
    Insert,
    Invoke,
    Launch,
    Load,
    NewTable,
    Prefetch,
    Reserve,
    SetLength,
    Sort,
    SortTable,
    Stmt,
    Store,
    Team,
    VectorStore,
    While,
)
from codegen.libraries.scalar_functions import CFunction, spelling_of
from codegen.types import ScalarType

COMPARED = PRECEDENCE["=="]
LOCALITY_OF_NEAREST = 3
"""The number that `__builtin_prefetch` has for the nearest cache; farther ones have less."""


def body_lines(block: Block, scope: Scope) -> Lines:
    return [line for statement in block.body for line in _statement(statement, scope)]


def _statement(stmt: Stmt, scope: Scope) -> Lines:
    match stmt:
        case Block():
            return ["{", *indent(body_lines(stmt, scope)), "}"]
        case Comment(text=text):
            return _comment(text)
        case If():
            return _if(stmt, scope)
        case While(condition=condition, body=body):
            head = f"while ({expression(condition)}) {{"
            return [head, *indent(body_lines(body, scope)), "}"]
        case For() | Team() | Launch():
            return scope.dialect.loop(stmt, scope)
        case Declare() | Assign() | Store() | VectorStore() | Prefetch():
            return [_assignment(stmt)]
        case AtomicStore() | AtomicFetch() | AddRuns() | Combine() | Barrier():
            return scope.dialect.shared(stmt, scope)
        case Allocate() | Reserve() | SetLength() | Fill() | Sort() | Invoke() | Expect():
            return memory(stmt, scope)
        case NewTable() | Insert() | SortTable() | ClearTable():
            return table(stmt, scope)
        case _:
            assert_never(stmt)


def _comment(text: str) -> Lines:
    return [f"// {line}".rstrip().rstrip("\\") for line in text.splitlines()]


def _if(stmt: If, scope: Scope) -> Lines:
    lines = [f"if ({expression(stmt.condition)}) {{", *indent(body_lines(stmt.then, scope))]
    match stmt.orelse.body:
        case ():
            return [*lines, "}"]
        case (If() as chained,):
            first, *rest = _if(chained, scope)
            return [*lines, f"}} else {first}", *rest]
    return [*lines, "} else {", *indent(body_lines(stmt.orelse, scope)), "}"]


# ---------------------------------------------------------------- assignments


def _assignment(stmt: Declare | Assign | Store | VectorStore | Prefetch) -> str:
    match stmt:
        case Declare(var=var, value=value, constant=constant):
            return f"{'const ' if constant else ''}{var.type.c} {var.name} = {widened(value)};"
        case Assign(var=var, value=value, op=op):
            return update_lines(var.name, var, var.type, op, value)
        case Store(array=array, index=index, value=value, op=op):
            place = Load(array, index)
            return update_lines(expression(place), place, array.element, op, value)
        case VectorStore(array=array, index=index, value=value):
            lanes = type_of(value).bits // array.element.bits
            lvalue = vector_place(array, index, lanes)
            if stmt.streaming:
                return f"TACO_STREAM({lvalue}, {expression(value)});"
            return f"{lvalue} = {expression(value)};"
        case Prefetch(array=array, index=index, level=level):
            address = f"{array.name} + {expression(index, PRECEDENCE['+'])}"
            near = "" if level == 1 else f", 0, {LOCALITY_OF_NEAREST + 1 - level}"
            return f"__builtin_prefetch({address}{near});"
        case _:
            assert_never(stmt)


def update_lines(place: str, old: Expr, scalar: ScalarType, op: str | None, value: Expr) -> str:
    """Return `place = value`, or `place op= value` in the shortest words that C has for it."""
    if op is None:
        return f"{place} = {widened(value)};"
    if op not in UPDATES:
        function = spelling_of(op, scalar)
        assert isinstance(function, CFunction)
        return f"{place} = {function.name}({expression(old)}, {widened(value)});"
    if scalar.kind == "bool":
        return f"{place} {_BOOL_UPDATES[op]} {expression(value)};"
    if op in LOGICAL:  # C has no `||=`
        return f"{place} = {expression(old)} {op} {expression(value, COMPARED)};"
    if op in ("min", "max"):
        return f"{place} = {helper(op, scalar)}({expression(old)}, {expression(value)});"
    if op in ("+", "-") and isinstance(value, Const) and value.value == 1 and scalar.is_integer:
        return f"{place}{op}{op};"
    return f"{place} {op}= {widened(value)};"


_BOOL_UPDATES = {
    "+": "|=", "max": "|=", "||": "|=", "|": "|=",
    "*": "&=", "min": "&=", "&&": "&=", "&": "&=",
    "^": "^=",
}  # fmt: skip


# ---------------------------------------------------------------- loops


def for_lines(loop: For, body: Lines) -> Lines:
    var = loop.var.name
    step = f"{var}++" if loop.step == 1 else f"{var} += {loop.step}"
    test = f"{var} < {widened(loop.stop, PRECEDENCE['+'])}"
    start = f"{loop.var.type.c} {var} = {widened(loop.start)}"
    return [f"for ({start}; {test}; {step}) {{", *indent(body), "}"]
