"""Loop IR to C that a person can follow.

A scope that owns memory frees it however it is left, by the cleanup attribute of gcc and clang
(macros `taco_local…` of the runtime header). So running out of memory is `return 1` where it
happens; inside a parallel loop, which cannot be left, it is a jump to the end of the iteration.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import assert_never

from codegen.emit.abi import THREADS, buffer_name, parameters, prototype
from codegen.emit.expressions import PRECEDENCE, expression, helper, vector_place, widened
from codegen.infer import type_of
from codegen.ir import (
    Allocate,
    Array,
    Assign,
    Block,
    Broadcast,
    ClearTable,
    Comment,
    Const,
    Declare,
    Expr,
    Fill,
    For,
    Function,
    If,
    Insert,
    Load,
    LoopKind,
    Module,
    NewTable,
    Prefetch,
    Reserve,
    SetLength,
    Sort,
    SortTable,
    Stmt,
    Storage,
    Store,
    Table,
    Var,
    VectorLoad,
    VectorStore,
    While,
)
from codegen.names import Names
from codegen.target import Target
from codegen.tree import find, walk
from codegen.types import ScalarType, VectorType, vector

INDENT = "    "
WIDTH = 100
LONG = 24
"""Characters beyond which an expression that is needed twice gets a name."""
PARALLEL_WORK = 10_000
"""Scalar operations below which waking threads costs more than it saves: about 10 µs."""
SHARES = 16
"""Shares of a parallel loop for each thread: so small that one heavy share delays nobody much."""

Lines = list[str]


@dataclass(frozen=True, slots=True)
class _Scope:
    """Where a statement stands: the target, the function's names, and how to fail here."""

    target: Target
    names: Names
    failure: str
    reserved: frozenset[Array]


def emit_c(module: Module, target: Target) -> str:
    """The C source of `module`: one exported function for each of its functions."""
    parts = [_header(module), '#include "taco_runtime.h"', _typedefs(module)]
    parts += [_function(function, target) for function in module.functions]
    return "\n\n".join(part for part in parts if part) + "\n"


def _header(module: Module) -> str:
    lines = module.header.replace("*/", "* /").splitlines()
    if len(lines) <= 1:
        return f"/* {lines[0]} */" if lines else ""
    return "\n".join(["/*", *(f" * {line}".rstrip() for line in lines), " */"])


def _typedefs(module: Module) -> str:
    found = {v.type for v in find(module, Var) if isinstance(v.type, VectorType)}
    found.update(_vector(e) for e in find(module, VectorLoad))
    found.update(_vector(e) for e in find(module, Broadcast))
    # A vector is read and written at the address of any element, and is such elements.
    return "\n".join(
        f"typedef {v.element.c} {v.c} __attribute__((vector_size({v.itemsize}), "
        f"aligned({v.element.itemsize}), may_alias));"
        for v in sorted(found, key=lambda v: v.name)
    )


def _vector(expr: VectorLoad | Broadcast) -> VectorType:
    element = expr.array.element if isinstance(expr, VectorLoad) else type_of(expr.value)
    return vector(element, expr.lanes)


# ---------------------------------------------------------------- functions


def _function(function: Function, target: Target) -> str:
    names = Names(n.name for n in walk(function) if isinstance(n, Var | Array | Table))
    reserved = frozenset(
        r.array for r in find(function, Reserve) if r.array.storage is Storage.LOCAL
    )
    scope = _Scope(target, names, "return 1;", reserved)
    lines = _buffers(function) + _body(function.body, scope)
    if function.threaded and not _uses_threads(function, target):
        lines = [f"(void){THREADS.name};", *lines]
    return "\n".join([*_prototype(function), "{", *_indent([*lines, "return 0;"]), "}"])


def _prototype(function: Function) -> Lines:
    whole = prototype(function)
    if len(whole) <= WIDTH:
        return [whole]
    *first, last = parameters(function)
    return [f"int32_t {function.name}(", *_indent(f"{p}," for p in first), f"{INDENT}{last})"]


def _buffers(function: Function) -> Lines:
    return [
        f"{a.element.c} *restrict {a.name} = {buffer_name(a)}->data;"
        for a in function.arrays
        if a.storage is Storage.GROWING and _uses_elements(function, a)
    ]


def _uses_elements(function: Function, array: Array) -> bool:
    return any(
        getattr(node, "array", None) == array
        for node in walk(function.body)
        if not isinstance(node, Reserve | SetLength)
    )


def _uses_threads(function: Function, target: Target) -> bool:
    has_parallel = any(loop.kind is LoopKind.PARALLEL for loop in find(function, For))
    return (target.openmp and has_parallel) or THREADS in set(find(function.body, Var))


# ---------------------------------------------------------------- statements


def _indent(lines: Iterable[str]) -> Lines:
    return [f"{INDENT}{line}" if line else line for line in lines]


def _body(block: Block, scope: _Scope) -> Lines:
    return [line for statement in block.body for line in _statement(statement, scope)]


def _statement(stmt: Stmt, scope: _Scope) -> Lines:
    match stmt:
        case Block():
            return ["{", *_indent(_body(stmt, scope)), "}"]
        case Comment(text=text):
            return _comment(text)
        case If():
            return _if(stmt, scope)
        case While(condition=condition, body=body):
            head = f"while ({expression(condition)}) {{"
            return [head, *_indent(_body(body, scope)), "}"]
        case For(kind=LoopKind.PARALLEL):
            return _parallel_for(stmt, scope)
        case For():
            return [*_simd(stmt), *_for(stmt, _body(stmt.body, scope))]
        case Declare() | Assign() | Store() | VectorStore() | Prefetch():
            return [_assignment(stmt)]
        case Allocate() | Reserve() | SetLength() | Fill() | Sort():
            return _memory(stmt, scope)
        case NewTable() | Insert() | SortTable() | ClearTable():
            return _table(stmt, scope)
        case _:
            assert_never(stmt)


def _comment(text: str) -> Lines:
    return [f"// {line}".rstrip().rstrip("\\") for line in text.splitlines()]


def _if(stmt: If, scope: _Scope) -> Lines:
    lines = [f"if ({expression(stmt.condition)}) {{", *_indent(_body(stmt.then, scope))]
    match stmt.orelse.body:
        case ():
            return [*lines, "}"]
        case (If() as chained,):
            first, *rest = _if(chained, scope)
            return [*lines, f"}} else {first}", *rest]
    return [*lines, "} else {", *_indent(_body(stmt.orelse, scope)), "}"]


# ---------------------------------------------------------------- assignments


def _assignment(stmt: Declare | Assign | Store | VectorStore | Prefetch) -> str:
    match stmt:
        case Declare(var=var, value=value, constant=constant):
            return f"{'const ' if constant else ''}{var.type.c} {var.name} = {widened(value)};"
        case Assign(var=var, value=value, op=op):
            return _update(var.name, var, var.type, op, value)
        case Store(array=array, index=index, value=value, op=op):
            place = Load(array, index)
            return _update(expression(place), place, array.element, op, value)
        case VectorStore(array=array, index=index, value=value):
            lanes = type_of(value).bits // array.element.bits
            return f"{vector_place(array, index, lanes)} = {expression(value)};"
        case Prefetch(array=array, index=index):
            return f"__builtin_prefetch({array.name} + {expression(index, PRECEDENCE['+'])});"
        case _:
            assert_never(stmt)


def _update(place: str, old: Expr, scalar: ScalarType, op: str | None, value: Expr) -> str:
    """`place = value`, or `place op= value` in the shortest words that C has for it."""
    if op is None:
        return f"{place} = {widened(value)};"
    if scalar.kind == "bool":
        return f"{place} {_BOOL_UPDATES[op]} {expression(value)};"
    if op in ("min", "max"):
        return f"{place} = {helper(op, scalar)}({expression(old)}, {expression(value)});"
    if op in ("+", "-") and isinstance(value, Const) and value.value == 1 and scalar.is_integer:
        return f"{place}{op}{op};"
    return f"{place} {op}= {widened(value)};"


_BOOL_UPDATES = {"+": "|=", "max": "|=", "||": "|=", "*": "&=", "min": "&=", "&&": "&="}


# ---------------------------------------------------------------- loops


def _for(loop: For, body: Lines) -> Lines:
    var = loop.var.name
    step = f"{var}++" if loop.step == 1 else f"{var} += {loop.step}"
    test = f"{var} < {widened(loop.stop, PRECEDENCE['+'])}"
    start = f"{loop.var.type.c} {var} = {widened(loop.start)}"
    return [f"for ({start}; {test}; {step}) {{", *_indent(body), "}"]


def _reductions(loop: For) -> str:
    return "".join(f" reduction({r.op}:{r.var.name})" for r in loop.reductions)


def _simd(loop: For) -> Lines:
    return [f"#pragma omp simd{_reductions(loop)}"] if loop.kind is LoopKind.VECTOR else []


def _parallel_for(loop: For, scope: _Scope) -> Lines:
    if not scope.target.openmp:
        return _for(loop, _body(loop.body, scope))
    if not _can_fail(loop.body):
        return [*_parallel_pragma(loop), *_for(loop, _body(loop.body, scope))]
    status, label = scope.names.fresh("status"), scope.names.fresh("out_of_memory")
    inner = replace(scope, failure=f"goto {label};")
    body = [
        "{",
        *_indent(_body(loop.body, inner)),
        "}",
        "continue;",
        f"{label}:",
        "#pragma omp atomic write",
        f"{status} = 1;",
    ]
    return [
        f"int32_t {status} = 0;",
        *_parallel_pragma(loop),
        *_for(loop, body),
        f"if ({status} != 0) {{",
        f"{INDENT}{scope.failure}",
        "}",
    ]


def _parallel_pragma(loop: For) -> Lines:
    extent = widened(loop.stop, PRECEDENCE["/"])
    chunk = f"1 + {extent} / ({SHARES} * {THREADS.name})"
    condition = f"{THREADS.name} > 1"
    if loop.work is not None:
        condition += f" && {expression(loop.work, PRECEDENCE['+'])} > {PARALLEL_WORK}"
    return [
        f"#pragma omp parallel for schedule(dynamic, {chunk}) \\",
        f"{INDENT}num_threads({THREADS.name}) if ({condition}){_reductions(loop)}",
    ]


def _can_fail(body: Block) -> bool:
    return any(
        isinstance(node, Allocate | Reserve | NewTable | Insert | SortTable) for node in walk(body)
    )


# ---------------------------------------------------------------- memory


def _memory(stmt: Allocate | Reserve | SetLength | Fill | Sort, scope: _Scope) -> Lines:
    match stmt:
        case Allocate():
            return _allocate(stmt, scope)
        case Reserve():
            return _reserve(stmt, scope)
        case SetLength(array=array, size=size):
            return [f"{buffer_name(array)}->length = {widened(size)};"]
        case Fill():
            return _fill(stmt, scope)
        case Sort(array=array, start=start, count=count):
            sort = f"taco_sort_int{array.element.bits}"
            return [f"{sort}({_address(array, start)}, {widened(count)});"]
        case _:
            assert_never(stmt)


def _unless(condition: str, scope: _Scope) -> Lines:
    """Fail here when `condition`, which tells that memory ran out, holds."""
    return [f"if (taco_unlikely({condition})) {{", f"{INDENT}{scope.failure}", "}"]


def _allocate(stmt: Allocate, scope: _Scope) -> Lines:
    array, size = stmt.array, widened(stmt.size)
    if array in scope.reserved:
        return _allocate_buffer(stmt, scope)
    allocator = "taco_alloc_zero" if stmt.zero else "taco_alloc"
    element = array.element.c
    return [
        f"taco_local {element} *{array.name} = {allocator}({size}, sizeof({element}));",
        *_unless(f"{array.name} == NULL", scope),
    ]


def _allocate_buffer(stmt: Allocate, scope: _Scope) -> Lines:
    """A local array that Reserve may enlarge: a taco_buffer of the function's own."""
    array, size = stmt.array, widened(stmt.size)
    buffer, element = buffer_name(array), array.element.c
    lines = [
        f"taco_local_buffer taco_buffer {buffer} = {{0}};",
        *_unless(f"taco_grow(&{buffer}, {size}, sizeof({element}))", scope),
        f"{element} *restrict {array.name} = {buffer}.data;",
    ]
    if stmt.zero:
        lines.append(f"taco_clear({array.name}, {size}, sizeof({element}));")
    return lines


def _reserve(stmt: Reserve, scope: _Scope) -> Lines:
    array, size = stmt.array, widened(stmt.size, PRECEDENCE["+"])
    local = array.storage is Storage.LOCAL
    buffer = buffer_name(array)
    member, address = (f"{buffer}.", f"&{buffer}") if local else (f"{buffer}->", buffer)
    lines = []
    if len(size) > LONG:
        name = scope.names.fresh(f"{array.name}_room")
        lines, size = [f"const int64_t {name} = {size};"], name
    return [
        *lines,
        f"if (taco_unlikely({size} > {member}capacity)) {{",
        f"{INDENT}if (taco_grow({address}, {size}, sizeof({array.element.c}))) {{",
        f"{INDENT * 2}{scope.failure}",
        f"{INDENT}}}",
        f"{INDENT}{array.name} = {member}data;",
        "}",
    ]


def _fill(stmt: Fill, scope: _Scope) -> Lines:
    array, count = stmt.array, widened(stmt.count)
    if _is_zero_bits(stmt.value):
        size = f"sizeof({array.element.c})"
        return [f"taco_clear({_address(array, stmt.start)}, {count}, {size});"]
    counter = scope.names.fresh("k")
    start = "" if _is_zero_bits(stmt.start) else f"{expression(stmt.start, PRECEDENCE['+'])} + "
    return [
        f"for (int64_t {counter} = 0; {counter} < {count}; {counter}++) {{",
        f"{INDENT}{array.name}[{start}{counter}] = {expression(stmt.value)};",
        "}",
    ]


def _is_zero_bits(value: Expr) -> bool:
    """Whether `value` is a constant whose bytes are all zero, which -0.0 is not."""
    return isinstance(value, Const) and value.value == 0 and "-" not in repr(value.value)


def _address(array: Array, start: Expr) -> str:
    return array.name if _is_zero_bits(start) else f"&{array.name}[{widened(start)}]"


# ---------------------------------------------------------------- hash tables


def _table(stmt: NewTable | Insert | SortTable | ClearTable, scope: _Scope) -> Lines:
    name = stmt.table.name
    match stmt:
        case NewTable():
            return [
                f"taco_local_table taco_table {name};",
                *_unless(f"taco_table_init(&{name})", scope),
            ]
        case Insert(key=key, entry=entry):
            return [
                f"const int64_t {entry.name} = taco_table_insert(&{name}, {widened(key)});",
                *_unless(f"{entry.name} < 0", scope),
            ]
        case SortTable():
            return _unless(f"taco_table_sort(&{name})", scope)
        case ClearTable():
            return [f"taco_table_clear(&{name});"]
        case _:
            assert_never(stmt)
