"""Write large arrays past the caches, where rows are whole cache lines.

    for i in 0..n, j in 0..m:          past = n*m >= MANY and m % 8 == 0 and C begins at a line
      C[i*s + j] = x[i] * y[j]    ->   for i in 0..n:
                                         if past and i*s % 8 == 0:
                                           for j in 0..m step 8:
                                             stream C[i*s + j:+4] = {x[i]} * y[j:+4], ...
                                         else:
                                           for j in 0..m:
                                             C[i*s + j] = x[i] * y[j]

A line that is written in a cache is read from memory first. Past the caches it is not: from half of
the last cache on, that takes 0.6 to 0.9 of the time, its next reader included. A line that is
written in parts takes almost twice as long, and a small array had better stay where its reader is.

Only for an array of which the function has no other use, written by one statement in loops with
bounds of their own.
"""

from __future__ import annotations

from codegen.build import add, and_, block, eq, ge, mod, mul, sub
from codegen.ir import (
    Block,
    Comment,
    Declare,
    Expr,
    For,
    Function,
    If,
    Lead,
    LoopKind,
    Module,
    Stmt,
    Storage,
    Store,
    Var,
    VectorStore,
)
from codegen.machine.target import Target
from codegen.names import Names
from codegen.passes.panels import in_lanes, only_store
from codegen.passes.vectorize import stride
from codegen.records import dataclass
from codegen.tree import map_children, map_fields
from codegen.types import BOOL, vector
from codegen.variables import arrays_of, declared_vars, free_vars, names_beside, substitute

LINE = 64
"""Bytes of a cache line."""


def write_past_caches(module: Module, target: Target) -> Module:
    """Return `module` with the form above wherever it occurs."""
    return map_children(module, lambda f: _function(f, target) if isinstance(f, Function) else f)


def _function(function: Function, target: Target) -> Function:
    names = names_beside(function)
    body: list[Stmt] = []
    for stmt in function.body.body:
        rows = _rows(stmt, target) if isinstance(stmt, For) else None
        rest = (other for other in function.body.body if other is not stmt)
        if rows is None or any(rows.store.array in arrays_of(other) for other in rest):
            body.append(stmt)
            continue
        past = Var(names.fresh("past"), BOOL)
        body.append(Declare(past, _pays(rows, target), constant=True))
        body.append(_with_choice(rows, 0, past, names))
    if len(body) == len(function.body.body):
        return function
    return map_fields(function, lambda name, value: Block(tuple(body)) if name == "body" else value)


@dataclass(frozen=True, slots=True)
class _Rows:
    """A nest of `loops`, outermost first, whose one effect is `store`, the innermost declarations
    put in; `value` is what it writes in vectors of `lanes`."""

    loops: tuple[For, ...]
    store: Store
    lanes: int

    @property
    def line(self) -> int:
        """Return elements of a cache line."""
        return LINE // self.store.array.element.itemsize

    @property
    def columns(self) -> For:
        return self.loops[-1]


def _rows(root: For, target: Target) -> _Rows | None:
    loops = _nest(root)
    store = only_store(loops[-1].body) if len(loops) > 1 else None
    if store is None or store.op is not None or loops[-1].kind is not LoopKind.SERIAL:
        return None
    rows = _Rows(loops, store, target.lanes(store.array.element))
    return rows if _is_legal(rows, root) else None


def _nest(loop: For) -> tuple[For, ...]:
    """Return `loop` and those inside it, as far as each has only declarations before the next."""
    body = [stmt for stmt in loop.body.body if not isinstance(stmt, Comment)]
    if loop.step != 1 or loop.unroll or not body or not isinstance(body[-1], For):
        return (loop,)
    if not all(isinstance(stmt, Declare) for stmt in body[:-1]):
        return (loop,)
    return (loop, *_nest(body[-1]))


def _is_legal(rows: _Rows, root: For) -> bool:
    store, columns = rows.store, rows.columns
    if store.array.storage is not Storage.OUTPUT or rows.lanes < 2 or columns.step != 1:
        return False
    if rows.lanes * store.array.element.itemsize > LINE or store.array in arrays_of(store.value):
        return False
    local = {root.var} | declared_vars(root)
    if any(free_vars(bound) & local for loop in rows.loops for bound in (loop.start, loop.stop)):
        return False
    if stride(store.index, {columns.var: 1}) != 1:
        return False
    return in_lanes(store.value, columns.var, columns.var, rows.lanes) is not None


def _pays(rows: _Rows, target: Target) -> Expr:
    """Tell whether the array is of about the last cache's size, and begins and ends rows at
    lines."""
    array = rows.store.array
    threshold = target.processor.past_caches_bytes // array.element.itemsize
    counts = [sub(loop.stop, loop.start) for loop in rows.loops]
    is_aligned = eq(mod(counts[-1], rows.line), 0)
    return and_(ge(mul(*counts), threshold), is_aligned, eq(Lead(array, LINE), 0))


def _with_choice(rows: _Rows, depth: int, past: Var, names: Names) -> Stmt:
    """Return the nest from loop `depth` on, with both ways to write a row."""
    loop = rows.loops[depth]
    if depth + 1 < len(rows.loops):
        inner = _with_choice(rows, depth + 1, past, names)
        body = Block((*loop.body.body[:-1], inner))
        return map_fields(loop, lambda name, value: body if name == "body" else value)
    first = substitute(rows.store.index, {loop.var: loop.start})
    condition = and_(past, eq(mod(first, rows.line), 0))
    return If(condition, Block((_streamed(rows, names),)), Block((loop,)))


def _streamed(rows: _Rows, names: Names) -> For:
    """Return the innermost loop, a line at a time."""
    loop, store = rows.columns, rows.store
    kind = vector(store.array.element, rows.lanes)
    body: list[Stmt] = []
    for lane in range(0, rows.line, rows.lanes):
        place = add(loop.var, lane)
        value = in_lanes(store.value, loop.var, place, rows.lanes)
        assert value is not None  # _is_legal asked
        index = substitute(store.index, {loop.var: place})
        part = Var(names.fresh(f"{store.array.name}_part"), kind)
        body.append(Declare(part, value, constant=True, role=store.role))
        body.append(VectorStore(store.array, index, part, store.role, streaming=True))
    array = rows.store.array.name
    note = f"{loop.var.name} by {rows.line}: lines of {array} past the caches, where it is large"
    return For(loop.var, loop.start, loop.stop, block(*body), rows.line, note=note)
