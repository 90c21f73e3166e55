"""Run several rows of an array through one inner loop (unroll and jam).

    for i in a..b:                     for i in a..rest step 4:        rest = a + (b - a) / 4 * 4
      t = 0                              t = t_1 = t_2 = t_3 = 0
      for j in 0..n:                     for j in 0..n:
        t += A[i*s + j] * x[j]    ->       t += A[i*s + j] * x[j]
      y[i] = t                             t_1 += A[(i + 1)*s + j] * x[j]
                                           ...
                                         y[i] = t; y[i + 1] = t_1 ...
                                       for i in rest..b: as before

    for i in a..b:                     for i in a..rest step 4:
      for j in 0..n:                     for j in 0..n:
        y[j] += A[i*s + j] * x[i]  ->      y[j] += A[i*s + j] * x[i] +
                                                   A[(i + 1)*s + j] * x[i + 1] + ...

The inner loop may stand in others, as in y[i] = sum(j, k, A[i,j,k] * X[j,k]).

Four rows are four streams from memory, x or y is loaded once for all of them, and four sums do not
wait for each other. The first form keeps the order of each sum; in the second the order of a sum is
free, as everywhere. Only where the bounds of the inner loops do not depend on the row, where it
reads neighbours, and where no coordinates are read: the rows of a sparse operand are no streams.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from codegen.build import add, block, div, mul, sub
from codegen.ir import (
    Assign,
    Binary,
    Block,
    Comment,
    Declare,
    Expr,
    For,
    Function,
    Load,
    LoopKind,
    Module,
    Stmt,
    Store,
    Var,
)
from codegen.names import Names
from codegen.passes.vectorize import stride, strides_in
from codegen.tree import find, map_children, map_fields, rewrite
from codegen.types import INT64
from codegen.variables import declared_vars, free_vars, names_beside, substitute

ROWS = 4


def jam_rows(module: Module) -> Module:
    """Return `module` with four rows at a time wherever the forms above occur."""
    return map_children(module, lambda f: _function(f) if isinstance(f, Function) else f)


def _function(function: Function) -> Function:
    names = names_beside(function)

    def jammed(node: Any) -> Any:
        return _jam(node, names) if isinstance(node, For) else node

    return map_fields(
        function, lambda name, value: rewrite(value, jammed) if name == "body" else value
    )


def _jam(rows: For, names: Names) -> Stmt:
    if rows.is_vector or rows.step != 1 or rows.unroll or rows.reductions:
        return rows
    parts = _parts(rows)
    if parts is None or not _is_legal(rows, parts[1]):
        return rows
    rest = Var(names.fresh("rest"), INT64)
    full = mul(div(sub(rows.stop, rows.start), ROWS), ROWS)
    return block(
        Declare(rest, add(rows.start, full), constant=True),
        For(
            rows.var,
            rows.start,
            rest,
            _several(rows, parts, names),
            ROWS,
            rows.kind,
            note=_note(rows, parts[1]),
        ),
        For(rows.var, rest, rows.stop, rows.body, 1, LoopKind.SERIAL),
    )


def _note(rows: For, inner: For) -> str:
    nest = _nest(inner) or (inner,)
    row_vars = {rows.var} | (declared_vars(rows) - {loop.var for loop in nest})
    loads = list(find(inner.body, Load))
    streams = dict.fromkeys(load.array.name for load in loads if free_vars(load.index) & row_vars)
    common = dict.fromkeys(
        load.array.name for load in loads if not free_vars(load.index) & row_vars
    )
    shared = f"{', '.join(common)} once for {ROWS} rows; " if common else ""
    return (
        f"{rows.var.name} by {ROWS}: {ROWS} rows of {', '.join(streams)} through one loop\n"
        f"  vector loop: {nest[-1].var.name}\n"
        f"  reuse: {shared}{ROWS} sums that do not wait for each other"
    )


# ---------------------------------------------------------------- the forms

Parts = tuple[tuple[Declare, ...], For, tuple[Store, ...]]
"""What stands before the inner loops, the outermost of them, and what stands behind it."""


def _parts(rows: For) -> Parts | None:
    body = [stmt for stmt in rows.body.body if not isinstance(stmt, Comment)]
    places = [place for place, stmt in enumerate(body) if isinstance(stmt, For)]
    if len(places) != 1:
        return None
    before, inner, after = body[: places[0]], body[places[0]], body[places[0] + 1 :]
    if not isinstance(inner, For) or _nest(inner) is None:
        return None
    declares = tuple(stmt for stmt in before if isinstance(stmt, Declare))
    stores = tuple(stmt for stmt in after if isinstance(stmt, Store))
    if len(declares) < len(before) or len(stores) < len(after):
        return None
    return declares, inner, stores


def _nest(loop: For) -> tuple[For, ...] | None:
    """Return `loop` and its nested loops; None where a loop is marked or strided."""
    if not loop.is_serial or loop.unroll or loop.step != 1:
        return None
    inside = [stmt for stmt in loop.body.body if isinstance(stmt, For)]
    if not inside:
        return (loop,)
    *before, last = _statements_of(loop)
    if not isinstance(last, For) or not all(isinstance(stmt, Declare) for stmt in before):
        return None
    nest = _nest(last)
    return None if nest is None else (loop, *nest)


def _statements_of(loop: For) -> list[Stmt]:
    return [stmt for stmt in loop.body.body if not isinstance(stmt, Comment)]


def _is_legal(rows: For, first: For) -> bool:
    loops = _nest(first) or ()
    row_vars = {rows.var} | (declared_vars(rows) - {loop.var for loop in loops})
    if any(free_vars(bound) & row_vars for loop in loops for bound in (loop.start, loop.stop)):
        return False
    if any(load.array.element.is_integer for load in find(rows, Load)):
        return False
    inner = loops[-1]
    if not _runs_along(inner):
        return False
    update = inner.body.body[-1] if inner.body.body else None
    if not all(isinstance(stmt, Declare) for stmt in inner.body.body[:-1]):
        return False
    stored = {store.array for store in find(rows.body, Store)}
    if any(load.array in stored for load in find(rows.body, Load)):
        return False
    match update:
        case Assign(var=var, op="+"):
            return var.type.kind == "float" and _is_row_sum(rows, first, var)
        case Store(array=array, op="+"):
            return inner is first and array.element.kind == "float" and _is_common(rows, inner)
    return False


def _runs_along(inner: For) -> bool:
    """Tell whether the inner loop reads contiguous elements or single ones."""
    strides = strides_in(inner)
    return all(stride(load.index, strides) in (0, 1) for load in find(inner.body, Load))


def _is_row_sum(rows: For, first: For, total: Var) -> bool:
    """Tell whether `total` is of the row alone, and the row's result is stored behind the loop."""
    after = rows.body.body[-1]
    is_initialised = any(isinstance(s, Declare) and s.var == total for s in rows.body.body)
    return is_initialised and isinstance(after, Store) and rows.body.body[-2] is first


def _is_common(rows: For, inner: For) -> bool:
    """Tell whether all rows add to the same places, one after the other as the inner loop runs."""
    if rows.body.body[-1] is not inner or not rows.is_serial:
        return False
    place = _store_of(inner).index
    row_vars = {rows.var} | (declared_vars(rows) - {inner.var})
    return not free_vars(place) & row_vars and inner.var in free_vars(place)


def _store_of(inner: For) -> Store:
    """Return the one store of the inner loop, with the declarations before it put in."""
    values: dict[Var, Expr] = {}
    for stmt in inner.body.body:
        if isinstance(stmt, Declare):
            values[stmt.var] = substitute(stmt.value, values)
    store = inner.body.body[-1]
    assert isinstance(store, Store)
    return substitute(store, values)


# ---------------------------------------------------------------- several rows


def _several(rows: For, parts: Parts, names: Names) -> Block:
    before, inner, after = parts
    copies = [_row(rows, number, names) for number in range(ROWS)]
    starts = [
        Declare(_to(c, d.var), _at(c, d.value), d.constant, d.role) for c in copies for d in before
    ]
    ends = [
        Store(s.array, _at(c, s.index), _at(c, s.value), s.op, s.role)
        for c in copies
        for s in after
    ]
    if _nest(inner) != (inner,) or isinstance(inner.body.body[-1], Assign):
        return block(*starts, _sums(copies, inner), *ends)
    store = _store_of(inner)
    values = [_at(c, store.value) for c in copies]
    total = reduce(lambda one, other: Binary("+", one, other), values)
    body = Block((Store(store.array, store.index, total, "+", store.role),))
    return block(*starts, For(inner.var, inner.start, inner.stop, body), *ends)


def _sums(copies: Sequence[Copy], loop: For) -> For:
    """Return `loop` and those inside it with the statements of each row."""
    body = [stmt for c in copies for stmt in _statements(c, loop)]
    body += [_sums(copies, stmt) for stmt in loop.body.body if isinstance(stmt, For)]
    return For(loop.var, loop.start, loop.stop, Block(tuple(body)))


Copy = dict[Var, Expr]


def _row(rows: For, number: int, names: Names) -> Copy:
    """Return the copy of each variable of the row."""
    variables = sorted(declared_vars(rows.body) - _counters(rows), key=lambda v: v.name)
    copy: Copy = {var: Var(names.fresh(var.name), var.type) for var in variables}
    return {**copy, rows.var: add(rows.var, number) if number else rows.var}


def _counters(rows: For) -> frozenset[Var]:
    return frozenset(loop.var for loop in find(rows.body, For))


def _to(copy: Copy, var: Var) -> Var:
    target = copy[var]
    assert isinstance(target, Var)
    return target


def _at(copy: Copy, value: Expr) -> Expr:
    return substitute(value, copy)


def _statements(copy: Copy, inner: For) -> Sequence[Stmt]:
    statements: list[Stmt] = []
    for stmt in inner.body.body:
        match stmt:
            case Declare(var=var, value=value):
                statements.append(
                    Declare(_to(copy, var), _at(copy, value), stmt.constant, stmt.role)
                )
            case Assign(var=var, value=value, op=op):
                statements.append(Assign(_to(copy, var), _at(copy, value), op, stmt.role))
    return statements
