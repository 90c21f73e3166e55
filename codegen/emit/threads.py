"""Threads in emitted C: parallel loops and teams, with OpenMP.

    const taco_output outputs[] = {{C_buffer, sizeof(double), -1, 0}};
    taco_local_team taco_team team;
    if (taco_gather(&team, outputs, 1, count)) …
    #pragma omp parallel …
    {
        for (int64_t piece = taco_take(&team); piece < count; piece = taco_take(&team)) {
            taco_buffer *const C_buffer = taco_part(&team, piece, 0);
            …
            if (taco_give(&team, piece)) …
        }
    }
    taco_finish(&team);

What threads run together cannot be left: a failure is noted in a variable, and a jump leads to the
end of the iteration or of the thread's work.
"""

from __future__ import annotations

from dataclasses import replace

from codegen import build
from codegen.emit.abi import THREADS, buffer_name
from codegen.emit.expressions import PRECEDENCE, widened
from codegen.emit.memory import INDENT, Lines, Scope, indent, unless
from codegen.ir import (
    Allocate,
    Array,
    Block,
    Const,
    Expect,
    For,
    Insert,
    Invoke,
    NewTable,
    Part,
    Reduction,
    Reserve,
    SetLength,
    Team,
    Var,
)
from codegen.tree import walk

SHARES = 16
"""Shares of a parallel loop for each thread: so small that one heavy share delays nobody much."""


def reductions(loop: For) -> str:
    """Return the clauses for the reductions of `loop`."""
    return "".join(f" reduction({_combiner(r)}:{r.var.name})" for r in loop.reductions)


def _combiner(reduction: Reduction) -> str:
    """Return the operator that combines lanes or threads; for floats the runtime's min and max."""
    type = reduction.var.type
    if type.kind == "float" and reduction.op in ("min", "max"):
        return f"taco_{reduction.op}_f{type.bits}"
    return reduction.op


def among_threads(scope: Scope, *blocks: Block, parts: bool = False) -> Scope:
    """Return the scope of `blocks` that threads run; those that can fail, or have parts, get a way
    out."""
    if not parts and not any(map(_can_fail, blocks)):
        return scope
    return replace(scope, exit=(scope.names.fresh("status"), scope.names.fresh("stop")))


def _can_fail(body: Block) -> bool:
    return any(
        isinstance(node, Allocate | Reserve | NewTable | Insert | Invoke | Expect)
        or (isinstance(node, SetLength) and node.limit is not None)
        for node in walk(body)
    )


def leaving(body: Lines, inner: Scope) -> Lines:
    """Return `body` with the place behind it that failures jump to."""
    if inner.exit is None:
        return body
    label = inner.exit[1]
    jumped = any(f"goto {label};" in line for line in body)
    return ["{", *indent(body), "}", *([f"{label}:;"] if jumped else [])]


def _watched(code: Lines, scope: Scope, inner: Scope) -> Lines:
    """Return `code` of threads, and the handling of their failures."""
    if inner.exit is None:
        return code
    status, _ = inner.exit
    failed = [f"if ({status} != 0) {{", *indent(scope.fail(status)), "}"]
    return [f"int32_t {status} = 0;", *code, *failed]


# ---------------------------------------------------------------- loops


def parallel_for(loop: For, code: Lines, scope: Scope, inner: Scope) -> Lines:
    """Return the loop `code` with its iterations shared."""
    extent = widened(build.sub(loop.stop, loop.start), PRECEDENCE["/"])
    shares = SHARES * loop.step
    chunk = f"1 + {extent} / ({shares} * {THREADS.name})"
    pragma = [
        f"#pragma omp parallel for schedule(dynamic, {chunk}) \\",
        f"{INDENT}num_threads({THREADS.name}) if ({THREADS.name} > 1){reductions(loop)}",
    ]
    return _watched([*pragma, *code], scope, inner)


# ---------------------------------------------------------------- teams


def team(stmt: Team, setup: Lines, body: Lines, scope: Scope, inner: Scope) -> Lines:
    """Return a team whose threads run `setup` and then, for each of their pieces, `body`."""
    is_plain = isinstance(stmt.count, Var | Const)
    count = widened(stmt.count) if is_plain else scope.names.fresh("pieces")
    lines = [] if is_plain else [f"const int64_t {count} = {widened(stmt.count)};"]
    if stmt.parts:
        return [*lines, *_with_parts(stmt, count, setup, body, scope, inner)]
    following = scope.names.fresh("next")
    work = _pieces(stmt, count, f"taco_next(&{following})", setup, body)
    return [*lines, f"int64_t {following} = 0;", *_region(count, work, scope, inner)]


def _pieces(stmt: Team, count: str, take: str, setup: Lines, body: Lines) -> Lines:
    """Return the statements of each thread."""
    piece = stmt.piece.name
    head = f"for (int64_t {piece} = {take}; {piece} < {count}; {piece} = {take}) {{"
    return [*setup, head, *indent(body), "}"]


def _region(count: str, work: Lines, scope: Scope, inner: Scope) -> Lines:
    """Return `work` by all threads, if there are several pieces of it."""
    pragma = [f"#pragma omp parallel num_threads({THREADS.name}) if ({count} > 1)"]
    region = [*pragma * scope.target.openmp, "{", *indent(leaving(work, inner)), "}"]
    return _watched(region, scope, inner)


def _with_parts(
    stmt: Team, count: str, setup: Lines, body: Lines, scope: Scope, inner: Scope
) -> Lines:
    """Return a team whose pieces append to arrays."""
    outputs, name = scope.names.fresh("outputs"), scope.names.fresh("team")
    arrays = [part.array for part in stmt.parts]
    rows = [f"{INDENT}{_output(part, arrays)}," for part in stmt.parts]
    names = [
        line
        for number, array in enumerate(arrays)
        for line in _local_names(array, number, name, stmt)
    ]
    piece_body = [*names, *body, *_deliver_piece(name, stmt, inner)]
    work = _pieces(stmt, count, f"taco_take(&{name})", setup, piece_body)
    return [
        f"const taco_output {outputs}[] = {{",
        *rows,
        "};",
        f"taco_local_team taco_team {name};",
        *unless(f"taco_gather(&{name}, {outputs}, {len(arrays)}, {count})", scope),
        *_region(count, work, scope, inner),
        f"taco_finish(&{name});",
    ]


def _output(part: Part, arrays: list[Array]) -> str:
    """Return the description of an output array: its elements' size, length counter and limit."""
    counted = -1 if part.counts is None else arrays.index(part.counts)
    size = f"sizeof({part.array.element.c})"
    return f"{{{buffer_name(part.array)}, {size}, {counted}, {part.limit or 0}}}"


def _local_names(array: Array, number: int, team: str, stmt: Team) -> Lines:
    """Return the names of an array for the part that belongs to a piece."""
    buffer = buffer_name(array)
    lines = [f"taco_buffer *const {buffer} = taco_part(&{team}, {stmt.piece.name}, {number});"]
    if any(
        getattr(node, "array", None) == array
        for node in walk(stmt.body)
        if not isinstance(node, SetLength)
    ):
        lines.append(f"{array.element.c} *restrict {array.name} = {buffer}->data;")
    return lines


def _deliver_piece(team: str, stmt: Team, inner: Scope) -> Lines:
    """Return the statements that put a finished piece into the result, or fail."""
    failed = inner.names.fresh("failed")
    return [
        f"const int {failed} = taco_give(&{team}, {stmt.piece.name});",
        f"if (taco_unlikely({failed})) {{",
        *indent(inner.fail(failed)),
        "}",
    ]
