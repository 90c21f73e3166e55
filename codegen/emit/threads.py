"""Threads in emitted C: parallel loops and teams, with OpenMP.

    taco_local_parts taco_parts C_parts;           a part of C_buffer for each piece, the first one
    if (taco_split(&C_parts, C_buffer, count)) …   in C_buffer itself
    int64_t next = 0;
    #pragma omp parallel …
    {
        for (int64_t piece = taco_next(&next); piece < count; piece = taco_next(&next)) {
            taco_buffer *const C_buffer = taco_part(&C_parts, piece);
            …
        }
    }
    if (taco_join(&C_parts, sizeof(double), threads)) …

What threads run together cannot be left: a failure is noted in a variable, and a jump leads to the
end of the iteration or of the thread's work.
"""

from __future__ import annotations

from dataclasses import replace

from codegen.emit.abi import THREADS, buffer_name
from codegen.emit.expressions import PRECEDENCE, widened
from codegen.emit.memory import INDENT, TOO_LONG, Lines, Scope, indent, unless
from codegen.ir import (
    Allocate,
    Array,
    Block,
    Const,
    For,
    Insert,
    Invoke,
    NewTable,
    Part,
    Reserve,
    SetLength,
    SortTable,
    Team,
    Var,
)
from codegen.tree import walk

SHARES = 16
"""Shares of a parallel loop for each thread: so small that one heavy share delays nobody much."""


def reductions(loop: For) -> str:
    """The clauses for what the iterations of `loop` add up."""
    return "".join(f" reduction({r.op}:{r.var.name})" for r in loop.reductions)


def among_threads(scope: Scope, *blocks: Block) -> Scope:
    """The scope of `blocks` that threads run; those that can fail get a way out."""
    if not any(map(_can_fail, blocks)):
        return scope
    return replace(scope, exit=(scope.names.fresh("status"), scope.names.fresh("stop")))


def _can_fail(body: Block) -> bool:
    return any(
        isinstance(node, Allocate | Reserve | NewTable | Insert | SortTable | Invoke)
        or (isinstance(node, SetLength) and node.limit is not None)
        for node in walk(body)
    )


def leaving(body: Lines, inner: Scope) -> Lines:
    """`body` with the place behind it that failures jump to."""
    if inner.exit is None:
        return body
    return ["{", *indent(body), "}", f"{inner.exit[1]}:;"]


def _watched(code: Lines, scope: Scope, inner: Scope) -> Lines:
    """`code` of threads, and what becomes of their failures."""
    if inner.exit is None:
        return code
    status, _ = inner.exit
    failed = [f"if ({status} != 0) {{", *indent(scope.fail(status)), "}"]
    return [f"int32_t {status} = 0;", *code, *failed]


# ---------------------------------------------------------------- loops


def parallel_for(loop: For, code: Lines, scope: Scope, inner: Scope) -> Lines:
    """The loop `code` with its iterations shared."""
    extent = widened(loop.stop, PRECEDENCE["/"])
    chunk = f"1 + {extent} / ({SHARES} * {THREADS.name})"
    pragma = [
        f"#pragma omp parallel for schedule(dynamic, {chunk}) \\",
        f"{INDENT}num_threads({THREADS.name}) if ({THREADS.name} > 1){reductions(loop)}",
    ]
    return _watched([*pragma, *code], scope, inner)


# ---------------------------------------------------------------- teams


def team(stmt: Team, setup: Lines, body: Lines, scope: Scope, inner: Scope) -> Lines:
    """A team whose threads run `setup` and then, for each of their pieces, `body`."""
    piece = stmt.piece.name
    named = isinstance(stmt.count, Var | Const)
    count = widened(stmt.count) if named else scope.names.fresh("pieces")
    following = scope.names.fresh("next")
    mine = [line for part in stmt.parts for line in _own(part.array, stmt)]
    take = f"taco_next(&{following})"
    work = [
        *setup,
        f"for (int64_t {piece} = {take}; {piece} < {count}; {piece} = {take}) {{",
        *indent([*mine, *body]),
        "}",
    ]
    pragma = [f"#pragma omp parallel num_threads({THREADS.name}) if ({count} > 1)"]
    region = [*pragma * scope.target.openmp, "{", *indent(leaving(work, inner)), "}"]
    return [
        *([] if named else [f"const int64_t {count} = {widened(stmt.count)};"]),
        *(line for part in stmt.parts for line in _split(part.array, count, scope)),
        f"int64_t {following} = 0;",
        *_watched(region, scope, inner),
        *(line for part in _in_order(stmt.parts) for line in _join(part, scope)),
    ]


def _parts_name(array: Array) -> str:
    return f"{array.name}_parts"


def _split(array: Array, count: str, scope: Scope) -> Lines:
    parts = _parts_name(array)
    split = f"taco_split(&{parts}, {buffer_name(array)}, {count})"
    return [f"taco_local_parts taco_parts {parts};", *unless(split, scope)]


def _own(array: Array, stmt: Team) -> Lines:
    """The names of an array for the part that belongs to a piece."""
    buffer = buffer_name(array)
    part = f"taco_part(&{_parts_name(array)}, {stmt.piece.name})"
    lines = [f"taco_buffer *const {buffer} = {part};"]
    if any(
        getattr(node, "array", None) == array
        for node in walk(stmt.body)
        if not isinstance(node, SetLength)
    ):
        lines.append(f"{array.element.c} *restrict {array.name} = {buffer}->data;")
    return lines


def _in_order(parts: tuple[Part, ...]) -> list[Part]:
    """Arrays that count others before these, while the lengths of their parts are known."""
    return sorted(parts, key=lambda part: part.counts is None)


def _join(part: Part, scope: Scope) -> Lines:
    parts = f"&{_parts_name(part.array)}"
    element = part.array.element
    if part.counts is None:
        join = f"taco_join({parts}, sizeof({element.c}), {THREADS.name})"
    else:
        counted = f"&{_parts_name(part.counts)}"
        join = f"taco_join_{element}({parts}, {counted}, {THREADS.name})"
    lines = unless(join, scope)
    if part.limit is not None:
        test = f"if (taco_unlikely({buffer_name(part.array)}->length > {part.limit})) {{"
        lines += [test, *indent(scope.fail(TOO_LONG)), "}"]
    return lines
