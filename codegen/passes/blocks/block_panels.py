"""Hold panels of all rows of a block of the result in registers while a sum over blocks runs.

    for p in first..last:                    for k in 0..n - 31 step 32:
      j = crd[p]                               c_0_0 = Y[b + k:+8] … c_2_3 = Y[b + 2*s + k + 24:+8]
      for r in 0..3:                           for p in first..last:
        for c in 0..3:                  ->       j = crd[p]
          for k in 0..n:                         c_0_0 += A[9*p] * X[3*j*s + k:+8]
            Y[b + r*s + k] +=                    …
              A[9*p + 3*r + c]                   c_2_3 += A[9*p + 8] * X[(3*j + 2)*s + k + 24:+8]
              * X[(3*j + c)*s + k]             Y[b + k:+8] = c_0_0 …
                                             and panels of what is left, as in `panels`

Each block of A is read once a panel, and each row of X that it is multiplied by serves all rows of
the block. Legal as in `panels`, and where the loops around the columns have constant bounds; the
places of rows depend on no variable of the sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from operator import is_
from typing import Any

from codegen.build import add, block, div, lt, mul, select, sub
from codegen.ir import (
    Array,
    Assign,
    Block,
    Declare,
    Expr,
    For,
    Function,
    Load,
    Module,
    Stmt,
    Store,
    Var,
    VectorLoad,
    VectorStore,
)
from codegen.machine.target import Target
from codegen.names import Names
from codegen.passes.blocks.hold_blocks import Turns
from codegen.passes.panels import WIDTHS, in_lanes, only_store
from codegen.passes.simplify import simplify_tree
from codegen.passes.vectorize import stride
from codegen.records import dataclass
from codegen.tree import find, map_children, map_fields
from codegen.types import INT64, vector
from codegen.variables import assigned_vars, declared_vars, free_vars, names_beside, substitute

MOST_SUMS = {16: 9, 32: 24}
"""Registers that hold sums, by how many the machine has."""
WIDEST = 4
"""Registers of one row, at most."""


def tile_block_panels(module: Module, target: Target) -> Module:
    """Return `module` with panels of blocks wherever the pattern above occurs."""
    return map_children(module, lambda f: _function(f, target) if isinstance(f, Function) else f)


def _function(function: Function, target: Target) -> Function:
    names = names_beside(function)
    return map_fields(
        function, lambda name, value: _below(value, target, names) if name == "body" else value
    )


def _below(node: Any, target: Target, names: Names) -> Any:
    """Return `node` with each sum that matches in panels."""
    if not isinstance(node, Block):
        return map_children(node, lambda child: _below(child, target, names))
    body: list[Stmt] = []
    for stmt in node.body:
        rows = match_rows(stmt, names) if isinstance(stmt, For) else None
        fits = rows is not None and _widest(rows, target) > 0
        if rows is None or not fits:
            body.append(_below(stmt, target, names))
        else:
            body += _tiled(rows, target, names)
    same = len(body) == len(node.body) and all(map(is_, body, node.body))
    return node if same else map_fields(node, lambda _, old: tuple(body))


@dataclass(frozen=True, slots=True)
class BlockRows:
    """A sum over blocks: its loop, that over columns, and the statements of a turn.

    body    declarations, and for each loop over columns the store in it, along that of `columns`
    places  the rows that are added to, as the places of their columns, each once
    """

    root: For
    columns: For
    body: tuple[Declare | Store, ...]
    array: Array
    places: tuple[Expr, ...]


def match_rows(root: For, names: Names) -> BlockRows | None:
    """Return the sum whose loop is `root`; None where it is no sum over blocks of rows."""
    if not root.is_serial or root.unroll or not any(find(root.body, For)):
        return None
    turns = Turns(names, keeps=_is_columns)
    unrolled = turns.written_out(root.body, {})
    loops = [stmt for stmt in unrolled or () if isinstance(stmt, For)]
    if unrolled is None or len(loops) < 2:
        return None
    columns = loops[0]
    body: list[Declare | Store] = []
    for stmt in unrolled:
        if isinstance(stmt, Declare):
            body.append(stmt)
            continue
        store = _store_of(stmt, columns)
        if store is None:
            return None
        body.append(store)
    return _checked(root, columns, body)


def _is_columns(loop: For) -> bool:
    return loop.is_serial and loop.step == 1 and only_store(loop.body) is not None


def _store_of(stmt: Stmt, columns: For) -> Store | None:
    """Return the store of a loop over the same columns."""
    if not isinstance(stmt, For) or (stmt.start, stmt.stop) != (columns.start, columns.stop):
        return None
    store = only_store(stmt.body)
    return None if store is None else substitute(store, {stmt.var: columns.var})


def _checked(root: For, columns: For, body: Sequence[Declare | Store]) -> BlockRows | None:
    """Return the sum that `match_rows` returns, where it is legal."""
    stores = [stmt for stmt in body if isinstance(stmt, Store)]
    array, var = stores[0].array, columns.var
    if any(store.array != array or store.op != "+" for store in stores):
        return None
    if array.element.kind != "float" or any(load.array == array for load in find(root, Load)):
        return None
    values: dict[Var, Expr] = {}
    inner = {root.var} | declared_vars(root) | {s.var for s in body if isinstance(s, Declare)}
    places: list[Expr] = []
    statements: list[Declare | Store] = []
    for stmt in body:
        if isinstance(stmt, Declare):
            values[stmt.var] = substitute(stmt.value, values)
            statements.append(stmt)
            continue
        place = simplify_tree(substitute(stmt.index, values))
        fixed = not free_vars(place) & (inner - {var})
        if not fixed or stride(place, {var: 1}) != 1 or in_lanes(stmt.value, var, var, 2) is None:
            return None
        places.append(place)
        statements.append(replace(stmt, index=place))
    ends = free_vars(columns.start) | free_vars(columns.stop)
    if ends & inner or assigned_vars(root) or len(dict.fromkeys(places)) < 2:
        return None
    return BlockRows(root, columns, tuple(statements), array, tuple(dict.fromkeys(places)))


def _widest(rows: BlockRows, target: Target) -> int:
    """Return the registers of a row in the widest panel; 0 where no panel has room."""
    if target.lanes(rows.array.element) == 1:
        return 0
    capacity = MOST_SUMS[32 if target.processor.registers >= 32 else 16]
    return min(WIDEST, capacity // len(rows.places))


def _tiled(rows: BlockRows, target: Target, names: Names) -> list[Stmt]:
    lanes, columns, most = target.lanes(rows.array.element), rows.columns, _widest(rows, target)
    width = most * lanes
    places = [add(columns.var, lanes * k) for k in range(most)]
    what = f"{columns.var.name} by {width}: panels of {len(rows.places)} rows of {rows.array.name}"
    note = f"{what} while the sum over {rows.root.var.name} runs"
    loop = For(columns.var, columns.start, sub(columns.stop, width - 1), block(), width, note=note)
    panels: list[Stmt] = [_panel(rows, loop, places, lanes, names)]
    rest = Var(names.fresh("rest"), INT64)
    full = mul(div(sub(columns.stop, columns.start), width), width)
    panels.append(Declare(rest, add(columns.start, full), constant=True))
    for registers, width_, least in _narrower(most, lanes):
        half, stop = registers // 2, columns.stop
        places = [add(columns.var, width_ * k) for k in range(registers - half)]
        places += [sub(stop, width_ * k) for k in range(half, 0, -1)]
        first = sub(stop, least - 1)
        last = For(columns.var, rest, first, block(), registers * width_)
        panels.append(_panel(rows, last, places, width_, names))
        after = Var(names.fresh("rest"), INT64)
        covered = mul(div(sub(stop, rest), width_), width_)  # panels of one register do not overlap
        end = stop if half else add(rest, covered)
        panels.append(Declare(after, select(lt(rest, first), end, rest), constant=True))
        rest = after
    tail = For(columns.var, rest, columns.stop, block())
    panels.append(_panel(rows, tail, [columns.var], 1, names))
    return panels


def _narrower(most: int, lanes: int) -> list[tuple[int, int, int]]:
    """Return registers, lanes and the fewest columns of the panels for the remaining columns."""
    widths = [width for width in WIDTHS if width <= most]
    widths_ = [(registers, lanes, fewer * lanes + 1) for registers, fewer in pairwise(widths)]
    widths_.append((1, lanes, lanes))
    while lanes > 2:
        lanes //= 2
        widths_.append((2, lanes, lanes) if most > 1 else (1, lanes, lanes))
    return widths_


def _panel(rows: BlockRows, loop: For, places: Sequence[Expr], lanes: int, names: Names) -> For:
    """Return `loop` around the sum for the columns from each of `places` on, a register each a
    row."""
    var, element = rows.columns.var, rows.array.element
    kind = element if lanes == 1 else vector(element, lanes)
    sums: dict[Expr, list[Var]] = {
        row: [Var(names.fresh(f"{rows.array.name}_{r}_{k}"), kind) for k in range(len(places))]
        for r, row in enumerate(rows.places)
    }
    role = next(stmt.role for stmt in rows.body if isinstance(stmt, Store))
    turn: list[Stmt] = []
    for stmt in rows.body:
        if isinstance(stmt, Declare):
            turn.append(stmt)
            continue
        for total, place in zip(sums[stmt.index], places, strict=True):
            turn.append(Assign(total, _value(stmt.value, var, place, lanes), "+", stmt.role))
    before: list[Stmt] = []
    after: list[Stmt] = []
    for row, row_sums in sums.items():
        for total, place in zip(row_sums, places, strict=True):
            at = simplify_tree(substitute(row, {var: place}))
            if lanes == 1:
                before.append(Declare(total, Load(rows.array, at), role=role))
                after.append(Store(rows.array, at, total, role=role))
            else:
                before.append(Declare(total, VectorLoad(rows.array, at, lanes), role=role))
                after.append(VectorStore(rows.array, at, total, role))
    root = rows.root
    inside = For(root.var, root.start, root.stop, block(*turn), root.step)
    return replace(loop, body=block(*before, inside, *after))


def _value(value: Expr, var: Var, place: Expr, lanes: int) -> Expr:
    values: Mapping[Var, Expr] = {var: place}
    if lanes == 1:
        return substitute(value, values)
    vector = in_lanes(value, var, place, lanes)
    assert vector is not None  # `_checked` asked
    return vector
