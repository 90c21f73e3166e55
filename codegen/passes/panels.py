"""Hold a panel of a row of the result in vector registers while a sum runs over it.

    for p in a..b:                      for k in 0..n - 31 step 32:
      j = crd[p]                          c_0 = C[i*n + k:+4] ... c_7 = C[i*n + k + 28:+4]
      for k in 0..n:               ->     for p in a..b:
        C[i*n + k] += v[p]*B[j*n + k]       j = crd[p]
                                            c_0 += v[p] * B[j*n + k:+4]
                                            ...
                                          C[i*n + k:+4] = c_0 ...
                                        and one panel of what is left

The sum may be a nest of several loops, as in MTTKRP. Each accumulator is a variable of its own: gcc
spills an array of them, and the loop then takes twice as long. The widest panel takes as many
registers as leave room for the operands.

Each panel is a pass over the sparse operand, so that all columns that are left come in one: in half
of the narrowest panel that has room for them from the first one on, and in the other half up to the
last one. The halves overlap, in columns that both compute alike.

    10 columns, registers of 8:  c_0 = 0 to 7, c_1 = 2 to 9
    35 columns:                  c_0 … c_2 = 0 to 23, c_3 … c_5 = 11 to 34

Where the row is filled with a constant just before the sum, the accumulators start from it and the
fill goes: a row is then written once, and never read.

Legal when the place written in C depends on no variable of the sum, when the sum reads nothing of C
but the element it adds to, and when its loops contain nothing else than declarations. Terms may
stand under a condition: a place of a padded row may be free.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from operator import is_
from typing import Any

from codegen.build import add, block, div, lt, mul, select, sub
from codegen.infer import type_of
from codegen.ir import (
    Assign,
    Binary,
    Block,
    Broadcast,
    Comment,
    Declare,
    Expr,
    Fill,
    For,
    Function,
    If,
    Load,
    Module,
    Stmt,
    Store,
    Team,
    Unary,
    Var,
    VectorLoad,
    VectorStore,
)
from codegen.machine.target import Target
from codegen.names import Names
from codegen.passes.simplify import simplify_tree
from codegen.passes.vectorize import stride
from codegen.records import dataclass
from codegen.tree import find, map_children, map_fields
from codegen.types import INT64, vector
from codegen.variables import arrays_of, free_vars, names_beside, substitute

WIDEST = {16: 8, 32: 16}
"""Registers that the widest panel takes, by how many registers the machine has."""
WIDTHS = (16, 12, 8, 6, 4, 3, 2, 1)
"""Registers of panels for what is left: at most half as many again as hold it."""


def tile_panels(module: Module, target: Target) -> Module:
    """Return `module` with panels of vector accumulators wherever the pattern above occurs."""
    return map_children(module, lambda f: _function(f, target) if isinstance(f, Function) else f)


def _function(function: Function, target: Target) -> Function:
    names = names_beside(function)
    return map_fields(
        function,
        lambda name, value: _tile_below(value, target, names, True) if name == "body" else value,
    )


def _tile_below(node: Any, target: Target, names: Names, is_top: bool = False) -> Any:
    """Return `node` with each outermost matching nest tiled.

    Not one that reads an array from end to end, in no loop itself but the pieces of a team
    (`is_top`): a panel would read it in pieces, a page apart.
    """
    if not isinstance(node, Block):
        top = isinstance(node, Team)
        return map_children(node, lambda child: _tile_below(child, target, names, top))
    body: list[Stmt] = []
    for stmt in node.body:
        nest = _nest_or_reason(stmt, target, is_top) if isinstance(stmt, For) else ""
        if isinstance(nest, str):
            below = _tile_below(stmt, target, names)
            has_note = not nest or any(loop.note for loop in find(below, For))
            body.append(below if has_note else replace(below, note=nest))
            continue
        fill = _fill_before(body, nest)
        body = [other for other in body if other is not fill]
        body.append(_tile(nest, fill, target, names))
    return map_fields(node, lambda _, old: _unless_same(old, tuple(body)))


def _nest_or_reason(root: For, target: Target, is_top: bool) -> Nest | str:
    """Return the nest at `root` for panels, or the reason against it."""
    nest = match_nest(root)
    if isinstance(nest, str):
        return nest
    array = nest.store.array
    if target.lanes(array.element) == 1:
        return f"no panels of {array.name}: {array.element.name} has no vectors here"
    if is_top and _is_stream(nest):
        return f"no panels of {array.name}: what is summed is read once, from end to end"
    return nest


def _is_stream(nest: Nest) -> bool:
    """Tell whether the sum is one loop that reads no coordinates."""
    loads = find(nest.root, Load)
    return nest.root.body.body[-1] is nest.columns and not any(
        load.array.element.is_integer for load in loads
    )


def _unless_same(old: tuple[Stmt, ...], new: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    return old if len(old) == len(new) and all(map(is_, old, new)) else new


def _fill_before(body: list[Stmt], nest: Nest) -> Fill | None:
    """Return the last statement of `body` that fills exactly the row of `nest`."""
    array, columns = nest.store.array, nest.columns
    for stmt in reversed(body):
        match stmt:
            case Comment():
                continue
            case Declare() if array not in arrays_of(stmt):
                continue
            case Fill(array=filled, start=start, count=count) if filled == array:
                first = simplify_tree(substitute(nest.store.index, {columns.var: columns.start}))
                is_full = start == first and count == sub(columns.stop, columns.start)
                return stmt if is_full else None
        return None
    return None


# ---------------------------------------------------------------- the pattern


@dataclass(frozen=True, slots=True)
class Nest:
    """A sum nest: `root`, loops and declarations down to `columns`, whose one effect is `store`.

    The declarations of the innermost body are put into `store` already.
    """

    root: For
    columns: For
    store: Store


def match_nest(root: For) -> Nest | str:
    """Return the nest of the pattern that starts at `root`; else what is against it, nothing where
    `root` holds no sum over rows."""
    columns = columns_of(root)
    if columns is None or columns is root or columns.step != 1:
        return ""
    store = only_store(columns.body)
    if store is None or store.op != "+":
        return ""
    nest = Nest(root, columns, store)
    refusal = _refusal(nest)
    return nest if refusal is None else f"no panels of {store.array.name}: {refusal}"


def columns_of(loop: For) -> For | None:
    """Return the innermost loop of a nest of declarations, conditions and one loop each."""
    if not loop.is_serial or loop.unroll:
        return None
    body = loop.body
    while True:
        *before, last = body.body or (Comment(""),)
        if not all(isinstance(stmt, Declare | Comment) for stmt in before):
            return None
        if isinstance(last, For):
            return columns_of(last)
        if not isinstance(last, If) or last.orelse.body or not _holds_loop(last):
            return loop
        body = last.then


def _holds_loop(condition: If) -> bool:
    """Tell whether a loop stands under a condition, or under others right below it."""
    last = condition.then.body[-1] if condition.then.body else None
    return isinstance(last, For) or (isinstance(last, If) and _holds_loop(last))


def only_store(body: Block) -> Store | None:
    """Return the single store of a body of declarations, with these put in."""
    values: dict[Var, Expr] = {}
    for stmt in body.body:
        match stmt:
            case Declare(var=var, value=value):
                values[var] = substitute(value, values)
            case Comment():
                pass
            case Store() if stmt is body.body[-1]:
                return substitute(stmt, values)
            case _:
                return None
    return None


def _refusal(nest: Nest) -> str | None:
    """Say why accumulators cannot hold the row, None where they can."""
    columns, store = nest.columns, nest.store
    array, column = store.array, columns.var.name
    if array.element.kind != "float":
        return f"they hold real numbers, not {array.element.name}"
    if stride(store.index, {columns.var: 1}) != 1:
        return f"{column} runs along elements of it that are no neighbours"
    if any(load.array == array for load in find(nest.root, Load)):
        return "the sum reads it"
    inner = _variables_of_sum(nest)
    fixed = (columns.start, columns.stop, store.index)
    if any(free_vars(expr) & inner for expr in fixed):
        return "each term adds to a row of its own"
    if in_lanes(store.value, columns.var, columns.var, 2) is None:
        return f"what is added has no neighbours along {column}"
    return None


def _variables_of_sum(nest: Nest) -> frozenset[Var]:
    """Return the counters and declarations between `root` and `columns`."""
    variables = {loop.var for loop in _loops(nest)}
    for loop in _loops(nest):
        for body in _bodies(loop):
            variables.update(stmt.var for stmt in body.body if isinstance(stmt, Declare))
    return frozenset(variables)


def _loops(nest: Nest) -> Iterator[For]:
    """Yield the loops of the sum, from the root down, without the loop over columns."""
    loop = nest.root
    while loop is not nest.columns:
        yield loop
        *_, innermost = _bodies(loop)
        last = innermost.body[-1]
        assert isinstance(last, For)
        loop = last


def _bodies(loop: For) -> Iterator[Block]:
    """Yield the body of a loop, and the bodies of the conditions around the next loop."""
    body = loop.body
    yield body
    while isinstance(last := body.body[-1], If):
        body = last.then
        yield body


def in_lanes(expr: Expr, var: Var, place: Expr, lanes: int) -> Expr | None:
    """Return `expr` for the values place, place + 1 … of `var`, side by side; None where that
    cannot be.

    `v[p] * B[q + k]` becomes `{v[p] x 4} * B[q + place:+4]`.
    """
    if var not in free_vars(expr):
        return Broadcast(expr, lanes) if type_of(expr).kind == "float" else None
    match expr:
        case Load(array=array, index=index) if stride(index, {var: 1}) == 1:
            return VectorLoad(array, substitute(index, {var: place}), lanes)
        case Unary(op="-", operand=operand):
            inner = in_lanes(operand, var, place, lanes)
            return None if inner is None else Unary("-", inner)
        case Binary(op="+" | "-" | "*" | "/" as op, left=left, right=right):
            one, other = in_lanes(left, var, place, lanes), in_lanes(right, var, place, lanes)
            return None if one is None or other is None else Binary(op, one, other)
    return None


# ---------------------------------------------------------------- the transformation


def _tile(nest: Nest, fill: Fill | None, target: Target, names: Names) -> Block:
    lanes = target.lanes(nest.store.array.element)
    columns = nest.columns
    registers_ = 32 if target.processor.registers >= 32 else 16
    most = WIDEST[registers_]
    width = most * lanes
    places = [add(columns.var, lanes * register) for register in range(most)]
    loop = For(columns.var, columns.start, sub(columns.stop, width - 1), block(), width)
    note = _note(nest, f"{columns.var.name} by {width}", f"{most} registers of {lanes}", registers_)
    statements: list[Stmt] = [_panel(nest, fill, replace(loop, note=note), places, lanes, names)]
    rest = Var(names.fresh("rest"), INT64)
    full = mul(div(sub(columns.stop, columns.start), width), width)
    statements.append(Declare(rest, add(columns.start, full), constant=True))
    few = f"{columns.var.name}, up to {width - 1} that are left"
    note = _note(nest, few, "registers that overlap", registers_)
    for last in _narrower(most, lanes):
        stop, half = columns.stop, last.registers // 2
        places = [add(columns.var, last.lanes * k) for k in range(last.registers - half)]
        places += [sub(stop, last.lanes * k) for k in range(half, 0, -1)]
        first = sub(stop, last.least - 1)
        loop = For(columns.var, rest, first, block(), last.registers * last.lanes, note=note)
        statements.append(_panel(nest, fill, loop, places, last.lanes, names))
        after = Var(names.fresh("rest"), INT64)
        statements.append(Declare(after, select(lt(rest, first), stop, rest), constant=True))
        rest = after
    return block(*statements, _one_by_one(nest, fill, rest, names))


@dataclass(frozen=True, slots=True)
class _Last:
    """A panel of all columns that are left, where these are no fewer than `least`."""

    registers: int
    lanes: int
    least: int


def _narrower(most: int, lanes: int) -> Iterator[_Last]:
    """Yield the panels for fewer columns than `most` registers have, the widest first."""
    widths = [width for width in WIDTHS if width <= most]
    for registers, fewer in pairwise(widths):
        yield _Last(registers, lanes, fewer * lanes + 1)
    yield _Last(1, lanes, lanes)
    while lanes > 2:
        lanes //= 2
        yield _Last(2, lanes, lanes)


def _note(nest: Nest, which: str, what_: str, count: int) -> str:
    """Return the note of a panel: one line about it, and the common reasons of the nest."""
    columns, array = nest.columns.var, nest.store.array
    loops = ", ".join(loop.var.name for loop in _loops(nest))
    loads = list(find(nest.store.value, Load))
    rows = dict.fromkeys(load.array.name for load in loads if columns in free_vars(load.index))
    spread = dict.fromkeys(
        load.array.name for load in loads if columns not in free_vars(load.index)
    )
    reused = f"; {', '.join(spread)} once a panel" if spread else ""
    return "\n".join(
        [
            f"{which}: a panel of {array.name} in {what_} while the sum over {loops} runs",
            f"  vector loop: {columns.name}, along rows of {', '.join((array.name, *rows))}",
            f"  reuse: {array.name} is stored once a sum, not once a term{reused}",
            f"  registers: up to {WIDEST[count]} of {count} hold sums, the others what is added",
            f"  caches: not tiled, for a row of {array.name} is finished before the next",
        ]
    )


def _one_by_one(nest: Nest, fill: Fill | None, start: Expr, names: Names) -> For:
    """Return the sum for each of the last few columns by itself, from `start` on."""
    columns, store = nest.columns, nest.store
    total = Var(names.fresh(store.array.name), store.array.element)
    update = Assign(total, store.value, "+", store.role)
    first = Load(store.array, store.index) if fill is None else fill.value
    body = block(
        Declare(total, first, role=store.role),
        _rebuild(nest, nest.root, Block((update,))),
        Store(store.array, store.index, total, role=store.role),
    )
    return For(columns.var, start, columns.stop, body)


def _panel(
    nest: Nest, fill: Fill | None, loop: For, places: Sequence[Expr], lanes: int, names: Names
) -> For:
    """Return `loop` around the sum for the columns from each of `places` on, a register each."""
    var, store = nest.columns.var, nest.store
    kind = vector(store.array.element, lanes)
    sums = [Var(names.fresh(f"{store.array.name}_{n}"), kind) for n in range(len(places))]
    indices = [substitute(store.index, {var: place}) for place in places]
    pairs = list(zip(sums, indices, strict=True))
    updates = tuple(
        Assign(total, _lanes_of(store, var, place, lanes), "+", store.role)
        for total, place in zip(sums, places, strict=True)
    )
    first = None if fill is None else Broadcast(fill.value, lanes)
    body = block(
        *(
            Declare(v, first or VectorLoad(store.array, at, lanes), role=store.role)
            for v, at in pairs
        ),
        _rebuild(nest, nest.root, Block(updates)),
        *(VectorStore(store.array, at, v, store.role) for v, at in pairs),
    )
    return replace(loop, body=body)


def _lanes_of(store: Store, var: Var, place: Expr, lanes: int) -> Expr:
    value = in_lanes(store.value, var, place, lanes)
    assert value is not None  # _is_legal asked
    return value


def _rebuild(nest: Nest, loop: For, innermost: Block) -> For:
    """Return the sum with `innermost` in the place of the loop over columns."""

    def rebuilt(body: Block) -> Block:
        *before, last = body.body
        inner: tuple[Stmt, ...] = innermost.body
        if isinstance(last, If):
            inner = (replace(last, then=rebuilt(last.then)),)
        elif last is not nest.columns:
            assert isinstance(last, For)
            inner = (_rebuild(nest, last, innermost),)
        return Block((*before, *inner))

    return For(loop.var, loop.start, loop.stop, rebuilt(loop.body), loop.step)
