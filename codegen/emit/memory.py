"""Memory in emitted C: local and growing arrays, filling and sorting them, hash tables.

A scope that owns memory frees it however it is left, by the cleanup attribute of gcc and clang
(macros `taco_local…` of the runtime header), so running out of memory needs no cleaning up by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, assert_never

from codegen.build import not_
from codegen.emit.abi import buffer_name
from codegen.emit.expressions import PRECEDENCE, expression, widened
from codegen.ir import (
    Allocate,
    Array,
    ClearTable,
    Const,
    Expect,
    Expr,
    Fill,
    Insert,
    Invoke,
    NewTable,
    Reserve,
    SetLength,
    Sort,
    SortTable,
    Storage,
)
from codegen.machine.target import Target
from codegen.names import Names
from codegen.records import dataclass

INDENT = "    "
STACK = 4096
"""Bytes up to which a local array of constant size lives on the stack."""
LONG = 24
"""Characters beyond which an expression that is needed twice gets a name."""

OUT_OF_MEMORY, TOO_LONG, UNMET = 1, 2, 3
"""What a function returns that fails."""

Lines = list[str]


@dataclass(frozen=True, slots=True)
class Dialect:
    """What differs between languages: how a loop is shared, and what threads do in common memory or
    together: an update as one operation."""

    loop: Callable[[Any, Scope], Lines]
    shared: Callable[[Any, Scope], Lines]


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a statement stands.

    reserved  the local arrays that some Reserve may enlarge
    exit      among threads: the variable that is told of a failure, and the label to leave by
    """

    target: Target
    names: Names
    reserved: frozenset[Array]
    dialect: Dialect
    exit: tuple[str, str] | None = None

    def fail(self, status: int | str = OUT_OF_MEMORY) -> Lines:
        """Return the statements that tell the caller of a failure."""
        if self.exit is None:
            return [f"return {status};"]
        variable, label = self.exit
        return [f"taco_fail(&{variable}, {status});", f"goto {label};"]


def indent(lines: Iterable[str]) -> Lines:
    """Return `lines`, one level deeper."""
    return [f"{INDENT}{line}" if line else line for line in lines]


def memory(
    stmt: Allocate | Reserve | SetLength | Fill | Sort | Invoke | Expect, scope: Scope
) -> Lines:
    """Return the C of a statement about memory, sorting, calls or conditions."""
    match stmt:
        case Allocate():
            return _allocate(stmt, scope)
        case Reserve():
            return _reserve(stmt, scope)
        case SetLength():
            return _set_length(stmt, scope)
        case Fill():
            return _fill(stmt, scope)
        case Sort(array=array, start=start, count=count, marks=marks, units=units):
            units_prefix = "" if units is None else f"{units.value}_"
            sort = f"taco_{units_prefix}sort_int{array.element.bits}"
            integers = f"{_address(array, start)}, {widened(count)}"
            if marks is None:
                return [f"{sort}({integers});"]
            return [f"{sort}_marked({integers}, {marks.name});"]
        case Invoke():
            return _invoke(stmt, scope)
        case Expect(condition=condition):
            test = f"if (taco_unlikely({expression(not_(condition))})) {{"
            return [test, *indent(scope.fail(UNMET)), "}"]
        case _:
            assert_never(stmt)


def unless(condition: str, scope: Scope) -> Lines:
    """Return the failure where `condition`, which tells that memory ran out, holds."""
    return [f"if (taco_unlikely({condition})) {{", *indent(scope.fail()), "}"]


def _allocate(stmt: Allocate, scope: Scope) -> Lines:
    array, size = stmt.array, widened(stmt.size)
    if array in scope.reserved:
        return _allocate_buffer(stmt, scope)
    element = array.element.c
    if not stmt.zero and (array.storage is Storage.SHARED or _is_small(stmt)):
        shared = "__shared__ " if array.storage is Storage.SHARED else ""
        place = f"{shared}{element} {array.name}[{size}]"
        return [f"{place} __attribute__((aligned({stmt.align})));" if stmt.align else f"{place};"]
    allocator = "taco_alloc_zero" if stmt.zero else "taco_alloc"
    arguments = f"{size}, sizeof({element})"
    if stmt.align:
        allocator, arguments = "taco_alloc_aligned", f"{arguments}, {stmt.align}"
    return [
        f"taco_local {element} *{array.name} = {allocator}({arguments});",
        *unless(f"{array.name} == NULL", scope),
    ]


def _is_small(stmt: Allocate) -> bool:
    """Tell whether the array is small enough for the stack, of a size known now."""
    size = stmt.size
    return (
        isinstance(size, Const) and 0 < int(size.value.real) * stmt.array.element.itemsize <= STACK
    )


def _allocate_buffer(stmt: Allocate, scope: Scope) -> Lines:
    """Return a local array that Reserve may enlarge: a taco_buffer of the function's own."""
    array, size = stmt.array, widened(stmt.size)
    buffer, element = buffer_name(array), array.element.c
    lines = [
        f"taco_local_buffer taco_buffer {buffer} = {{0}};",
        *unless(f"taco_grow(&{buffer}, {size}, sizeof({element}))", scope),
        f"{element} *restrict {array.name} = {buffer}.data;",
    ]
    if stmt.zero:
        lines.append(f"taco_clear({array.name}, {size}, sizeof({element}));")
    return lines


def _reserve(stmt: Reserve, scope: Scope) -> Lines:
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
        *indent(indent(scope.fail())),
        f"{INDENT}}}",
        f"{INDENT}{array.name} = {member}data;",
        "}",
    ]


def _set_length(stmt: SetLength, scope: Scope) -> Lines:
    size = widened(stmt.size)
    lines = [f"{buffer_name(stmt.array)}->length = {size};"]
    if stmt.limit is None:
        return lines
    test = f"if (taco_unlikely({widened(stmt.size, PRECEDENCE['<'])} > {stmt.limit})) {{"
    return [test, *indent(scope.fail(TOO_LONG)), "}", *lines]


def _fill(stmt: Fill, scope: Scope) -> Lines:
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
    """Tell whether `value` is a constant whose bytes are all zero, which -0.0 is not."""
    return isinstance(value, Const) and value.value == 0 and "-" not in repr(value.value)


def _invoke(stmt: Invoke, scope: Scope) -> Lines:
    """Return the C of a call to another function of the module."""
    places = [_address(place.array, place.start) for place in stmt.places]
    threads = [] if stmt.threads is None else [expression(stmt.threads)]
    arguments = ", ".join([*places, *map(widened, stmt.scalars), *threads])
    return unless(f"{stmt.function}({arguments})", scope)


def _address(array: Array, start: Expr) -> str:
    return array.name if _is_zero_bits(start) else f"&{array.name}[{widened(start)}]"


# ---------------------------------------------------------------- hash tables


def table(stmt: NewTable | Insert | SortTable | ClearTable, scope: Scope) -> Lines:
    """Return the C of a statement about a hash table."""
    name = stmt.table.name
    match stmt:
        case NewTable():
            return [
                f"taco_local_table taco_table {name};",
                *unless(f"taco_table_init(&{name})", scope),
            ]
        case Insert(key=key, entry=entry):
            return [
                f"const int64_t {entry.name} = taco_table_insert(&{name}, {widened(key)});",
                *unless(f"{entry.name} < 0", scope),
            ]
        case SortTable():
            return [f"taco_table_sort(&{name});"]
        case ClearTable():
            return [f"taco_table_clear(&{name});"]
        case _:
            assert_never(stmt)
