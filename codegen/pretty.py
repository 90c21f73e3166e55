"""Loop IR as short text for people: what `explain` shows and what error messages quote.

    spmv(A2_pos: in int32[], x: in float64[], y: out float64[], n_i: int64)
      for i in 0..n_i:
        acc: float64 = 0.0
        for p in A2_pos[i]..A2_pos[i + 1]:
          acc += A_vals[p] * x[A2_crd[p]]
        y[i] = acc

Casts between integers are left out; `!values` marks statements of that role.
"""

from __future__ import annotations

from typing import assert_never

from codegen.emit.expressions import CONDITIONAL, POSTFIX, PRECEDENCE, PREFIX
from codegen.infer import type_of
from codegen.ir import (
    AddRuns,
    Allocate,
    Apply,
    Array,
    Assign,
    AtomicFetch,
    AtomicStore,
    Barrier,
    Binary,
    Block,
    Broadcast,
    Call,
    Cast,
    ClearTable,
    Combine,
    Comment,
    Const,
    Count,
    Declare,
    Expect,
    Expr,
    Fill,
    For,
    Function,
    If,
    Insert,
    Invoke,
    Kernel,
    Key,
    Launch,
    Lead,
    Load,
    Module,
    NewTable,
    Prefetch,
    Ranked,
    Reserve,
    Role,
    Search,
    Select,
    SetLength,
    Shuffle,
    Sort,
    SortTable,
    Stmt,
    Store,
    Table,
    Team,
    Unary,
    Var,
    VectorLoad,
    VectorStore,
    While,
)

INDENT = "  "
_STORAGE = {"input": "in", "output": "out", "growing": "growing", "local": "local"}


def pretty(node: Module | Function | Stmt | Expr | Array | Table) -> str:
    """Return `node` as text, without a final newline."""
    match node:
        case Module(functions=functions, kernels=kernels):
            return "\n\n".join([*map(_function, functions), *map(_function, kernels)])
        case Function() | Kernel():
            return _function(node)
        case Array() | Table():
            return node.name
    if isinstance(node, _STATEMENTS):
        return "\n".join(_statement(node))
    return _expression(node)


_STATEMENTS = (
    Block, Comment, Declare, Assign, Store, If, While, For, Allocate, Reserve, SetLength, Fill,
    Sort, Prefetch, NewTable, Insert, SortTable, ClearTable, VectorStore, Invoke,
    AtomicFetch, AtomicStore, AddRuns, Team, Expect, Launch, Combine, Barrier,
)  # fmt: skip


def _function(function: Function | Kernel) -> str:
    arrays = [f"{a.name}: {_STORAGE[a.storage.value]} {a.element}[]" for a in function.arrays]
    scalars = [f"{v.name}: {v.type}" for v in function.scalars]
    threaded = isinstance(function, Function) and function.threaded
    threads = ["threads"] if threaded else []
    head = f"{function.name}({', '.join(arrays + scalars + threads)})"
    return "\n".join([head, *_body(function.body)])


# ---------------------------------------------------------------- expressions


def _expression(expr: Expr, binding: int = CONDITIONAL) -> str:
    text, precedence = _operator(expr)
    return f"({text})" if precedence < binding else text


def _operator(expr: Expr) -> tuple[str, int]:
    match expr:
        case Unary(op=op, operand=operand):
            return f"{op}{_expression(operand, PREFIX)}", PREFIX
        case Binary(op="min" | "max" as op, left=left, right=right):
            return f"{op}({_expression(left)}, {_expression(right)})", POSTFIX
        case Binary(op=op, left=left, right=right):
            precedence = PRECEDENCE[op]
            return (
                f"{_expression(left, precedence)} {op} {_expression(right, precedence + 1)}",
                precedence,
            )
        case Cast(type=scalar, operand=operand):
            if scalar.is_integer and type_of(operand).is_integer:
                return _operator(operand)
            return f"{scalar}({_expression(operand)})", POSTFIX
        case Select(condition=condition, then=then, orelse=orelse):
            branches = f"{_expression(then, 1)} : {_expression(orelse)}"
            return f"{_expression(condition, 1)} ? {branches}", CONDITIONAL
        case Const(value=int(value)) if value < 0:
            return str(value), PREFIX
    return _primary(expr), POSTFIX


def _primary(
    expr: Var
    | Const
    | Load
    | Search
    | Call
    | Apply
    | Count
    | Key
    | Ranked
    | VectorLoad
    | Broadcast
    | Shuffle
    | Lead,
) -> str:
    match expr:
        case Var(name=name):
            return name
        case Const(value=value):
            return str(value).lower() if isinstance(value, bool) else str(value)
        case Load(array=array, index=index):
            return f"{array.name}[{_expression(index)}]"
        case Search(array, start, stop, value, after, near):
            sign = ">" if after else ">="
            where = f"{array.name}[{_expression(start)}:{_expression(stop)}]"
            return f"{'next' if near else 'first'}({where} {sign} {_expression(value)})"
        case Call(function=function, args=args) | Apply(function=function, args=args):
            return f"{function}({', '.join(map(_expression, args))})"
        case Count(table=table):
            return f"count({table.name})"
        case Key(table=table, entry=entry):
            return f"key({table.name}, {_expression(entry)})"
        case Ranked(table=table, rank=rank):
            return f"ranked({table.name}, {_expression(rank)})"
        case VectorLoad() | Broadcast() | Shuffle() | Lead():
            return _vector(expr)
        case _:
            assert_never(expr)


def _vector(expr: VectorLoad | Broadcast | Shuffle | Lead) -> str:
    match expr:
        case VectorLoad(array=array, index=index, lanes=lanes):
            return f"{array.name}[{_expression(index)}:+{lanes}]"
        case Broadcast(value=value, lanes=lanes):
            return f"{{{_expression(value)} x {lanes}}}"
        case Shuffle(left=left, right=right, lanes=lanes):
            return f"shuffle({_expression(left)}, {_expression(right)}, {lanes})"
        case Lead(array=array, bytes=bytes):
            return f"lead({array.name}, {bytes})"
        case _:
            assert_never(expr)


# ---------------------------------------------------------------- statements


def _body(block: Block) -> list[str]:
    return [f"{INDENT}{line}" for stmt in block.body for line in _statement(stmt)]


def _statement(stmt: Stmt) -> list[str]:
    match stmt:
        case Block(body=body):
            return [line for inner in body for line in _statement(inner)] or ["pass"]
        case Comment(text=text):
            return [f"# {line}" for line in text.splitlines()]
        case If(condition=condition, then=then, orelse=orelse):
            lines = [f"if {_expression(condition)}:", *_body(then)]
            return [*lines, "else:", *_body(orelse)] if orelse.body else lines
        case While(condition=condition, body=inner):
            return [f"while {_expression(condition)}:", *_body(inner)]
        case For():
            return [_loop_head(stmt), *_body(stmt.body)]
        case Launch(kernel=kernel, threads=threads, block=block):
            return [f"launch {kernel} by {_expression(threads)} threads, {block} a block"]
        case Combine(var=var, op=op, kind=kind, width=width):
            return [f"combine {op} {var.name} over {f'{width} ' if width else ''}{kind.value}"]
        case Barrier(kind=kind):
            return [f"wait for all {kind.value}"]
        case Team():
            return [_team_head(stmt), *_body(stmt.setup), "  of each piece:", *_body(stmt.body)]
    return [_simple(stmt) + _role(getattr(stmt, "role", Role.CONTROL))]


def _loop_head(loop: For) -> str:
    kind = "" if loop.is_serial else f"{loop.kind.value} "
    extent = f"{_expression(loop.start, 5)}..{_expression(loop.stop, 5)}"
    step = f" step {loop.step}" if loop.step != 1 else ""
    reductions = "".join(f" reducing {r.op} {r.var.name}" for r in loop.reductions)
    unroll = f" unroll {loop.unroll}" if loop.unroll else ""
    return f"{kind}for {loop.var.name} in {extent}{step}{unroll}{reductions}:"


def _team_head(team: Team) -> str:
    parts = (
        part.array.name + ("" if part.counts is None else f" counting {part.counts.name}")
        for part in team.parts
    )
    appending = f" appending to {', '.join(parts)}" if team.parts else ""
    return f"team for {team.piece.name} in 0..{_expression(team.count, 5)}{appending}:"


def _role(role: Role) -> str:
    return "" if role is Role.CONTROL else f"  !{role.value}"


def _simple(
    stmt: Declare | Assign | Store | VectorStore | Allocate | Reserve | SetLength | Fill
    | Sort | Prefetch | NewTable | Insert | SortTable | ClearTable | Invoke | Expect | AtomicStore
    | AtomicFetch | AddRuns,
) -> str:  # fmt: skip
    match stmt:
        case Declare(var=var, value=value):
            return f"{var.name}: {var.type} = {_expression(value)}"
        case Assign(var=var, value=value, op=op):
            return f"{var.name} {op or ''}= {_expression(value)}"
        case Store(array=array, index=index, value=value, op=op):
            return f"{array.name}[{_expression(index)}] {op or ''}= {_expression(value)}"
        case AtomicStore() | AtomicFetch() | AddRuns():
            return _of_threads(stmt)
        case VectorStore(array=array, index=index, value=value):
            past = "stream " if stmt.streaming else ""
            return f"{past}{array.name}[{_expression(index)}:+] = {_expression(value)}"
        case Fill(array=array, start=start, count=count, value=value):
            return f"{array.name}[{_span(start, count)}] = {_expression(value)}"
        case Sort(array=array, start=start, count=count, marks=marks):
            by = "" if marks is None else f" by {marks.name}"
            return f"sort {array.name}[{_span(start, count)}]{by}"
        case Prefetch(array=array, index=index):
            return f"prefetch {array.name}[{_expression(index)}]"
        case Invoke():
            return _invoke(stmt)
    return _memory(stmt)


def _of_threads(stmt: AtomicStore | AtomicFetch | AddRuns) -> str:
    place, value = f"{stmt.array.name}[{_expression(stmt.index)}]", _expression(stmt.value)
    if isinstance(stmt, AtomicFetch):
        where = "" if stmt.expected is None else f" where it is {_expression(stmt.expected)}"
        op = "+" if stmt.expected is None else ""
        return f"{stmt.var.name} = fetch {place} {op}= {value}{where}"
    return f"{'atomic' if isinstance(stmt, AtomicStore) else 'add runs'} {place} {stmt.op}= {value}"


def _invoke(stmt: Invoke) -> str:
    places = [f"{p.array.name}[{_expression(p.start)}:]" for p in stmt.places]
    threads = [] if stmt.threads is None else [f"threads={_expression(stmt.threads)}"]
    return f"{stmt.function}({', '.join([*places, *map(_expression, stmt.scalars), *threads])})"


def _span(start: Expr, count: Expr) -> str:
    return f"{_expression(start)}:+{_expression(count)}"


def _memory(
    stmt: Allocate | Reserve | SetLength | NewTable | Insert | SortTable | ClearTable | Expect,
) -> str:
    match stmt:
        case Allocate(array=array, size=size, zero=zero):
            return f"{array.name} = new {array.element}[{_expression(size)}]{' zero' * zero}"
        case Reserve(array=array, size=size):
            return f"reserve {array.name} {_expression(size)}"
        case SetLength(array=array, size=size, limit=limit):
            bound = "" if limit is None else f" up to {limit}"
            return f"length {array.name} = {_expression(size)}{bound}"
        case NewTable(table=table):
            return f"{table.name} = new table"
        case Insert(table=table, key=key, entry=entry):
            return f"{entry.name} = insert({table.name}, {_expression(key)})"
        case SortTable(table=table):
            return f"sort {table.name}"
        case ClearTable(table=table):
            return f"clear {table.name}"
        case Expect(condition=condition):
            return f"expect {_expression(condition)}"
        case _:
            assert_never(stmt)
