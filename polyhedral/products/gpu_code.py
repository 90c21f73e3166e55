"""A contraction as loops that the blocks and threads of a GPU share, for operands of any sizes,
strides and orders.

    blocks for tile in 0..tiles:
      threads for t: one tile of the result       `gpu_thread`

A class of several loops has a table of offsets, which an earlier kernel computes. Where the depth
is split, each part of it has separate sums, which a later kernel adds up in their order:

    blocks for tile: parts[p,i,j] = sum of the terms of part p
    threads for i, j: result[i,j] = parts[0,i,j] + parts[1,i,j] + …

Sums have the same bits each time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from codegen.build import (
    add,
    and_,
    block,
    const,
    div,
    eq,
    le,
    load,
    maximum,
    minimum,
    mod,
    mul,
    zero,
)
from codegen.ir import (
    Allocate,
    Array,
    Assign,
    Block,
    Declare,
    Expr,
    For,
    Function,
    Lead,
    LoopKind,
    Module,
    Stmt,
    Storage,
    Store,
    Var,
)
from codegen.names import Names
from codegen.records import dataclass
from codegen.types import BOOL, INT64
from polyhedral.products.contraction_code import Data, Operands, coordinates_of
from polyhedral.products.gpu_plan import GpuPlan
from polyhedral.products.gpu_staging import Staging
from polyhedral.products.gpu_thread import Copy, Into, Thread
from polyhedral.products.gpu_tile import RUN_BYTES, run_of
from polyhedral.products.offsets import Steps


@dataclass(frozen=True, slots=True)
class _Class:
    """One class of loops: its number of steps, and their offsets in two arrays."""

    size: Expr
    one: Steps
    other: Steps


def to_gpu_module(plan: GpuPlan, operands: Operands, head: Function, names: Names) -> Module:
    """Return the module whose one function is `head` with a body.

    head   a threaded function without a body
    names  the supply of the names of `head`'s parameters
    """
    for name in ("n", "r", "c", "i", "j", "k", "l"):  # of loops in threads
        names.fresh(name)
    tables: list[Stmt] = []
    contraction = plan.contraction
    rows, columns, depth = (
        _class(name, loops, one, other, operands, names, tables)
        for name, loops, one, other in (
            ("row", contraction.rows, operands.result, operands.left),
            ("column", contraction.columns, operands.result, operands.right),
            ("depth", contraction.depth, operands.left, operands.right),
        )
    )
    code = _Code(plan, operands, names, rows, columns, depth)
    return Module((replace(head, body=block(*tables, *code.body())),))


@dataclass(frozen=True, slots=True)
class _Code:
    """Writes the loops of one contraction with these classes of loops."""

    plan: GpuPlan
    operands: Operands
    names: Names
    rows: _Class
    columns: _Class
    depth: _Class

    def var(self, name: str) -> Var:
        return Var(self.names.fresh(name))

    @property
    def batch(self) -> Expr:
        """Return the number of steps of the batch."""
        return mul(*(self.operands.sizes[loop] for loop in self.plan.contraction.batch))

    def body(self) -> Iterator[Stmt]:
        """Yield the blocks that share the tiles, and the loop that adds up the parts of the
        depth."""
        if self.plan.tile.parts == 1:
            yield from self.blocks(None)
            return
        parts = Array(self.names.fresh("parts"), self.operands.element, Storage.LOCAL)
        yield Allocate(parts, mul(self.plan.tile.parts, self.elements()))
        yield from self.blocks(parts)
        yield self.added_up(parts)

    def elements(self) -> Expr:
        """Return the number of elements of the result."""
        return mul(self.batch, self.rows.size, self.columns.size)

    # ------------------------------------------------------------ tiles

    def blocks(self, parts: Array | None) -> Iterator[Stmt]:
        """Yield the loop over tiles: columns fastest, then rows, the batch, and parts of the
        depth."""
        tile, batch = self.plan.tile, self.plan.contraction.batch
        number, tiles_across, i0, j0 = map(self.var, ("tile", "tiles_across", "i0", "j0"))
        yield Declare(tiles_across, _pieces(self.columns.size, tile.columns), constant=True)
        down, several = self.var("tiles_down"), bool(batch) or tile.parts > 1
        yield Declare(down, _pieces(self.rows.size, tile.rows), constant=True)
        first = div(number, tiles_across)
        starts: list[Stmt] = [
            Declare(i0, mul(mod(first, down) if several else first, tile.rows), constant=True),
            Declare(j0, mul(mod(number, tiles_across), tile.columns), constant=True),
        ]
        step, rest = self.var("step"), div(first, down)
        if batch:
            at = mod(rest, self.batch) if tile.parts > 1 else rest
            starts.append(Declare(step, at, constant=True))
        part = self.var("part")
        if tile.parts > 1:
            starts.append(Declare(part, div(rest, self.batch), constant=True))
        body = block(*starts, *self.tile(i0, j0, step, part, parts))
        total = mul(tile.parts, self.batch, down, tiles_across)
        yield For(
            number, const(0), total, body, kind=LoopKind.BLOCKS, units=self.plan.resident_blocks
        )

    def tile(self, i0: Var, j0: Var, step: Var, part: Var, parts: Array | None) -> Iterator[Stmt]:
        """Yield one tile of the result, of a step of the batch and a part of the depth."""
        tile, plan, operands = self.plan.tile, self.plan, self.operands
        is_full = Var(self.names.fresh("whole"), BOOL)
        inside = and_(
            le(add(i0, tile.rows), self.rows.size), le(add(j0, tile.columns), self.columns.size)
        )
        yield Declare(is_full, inside, constant=True)
        code, start = self.starts(step)
        yield from code
        left = self.copy("left", operands.left, start["left"], i0, plan.left)
        right = self.copy("right", operands.right, start["right"], j0, plan.right)
        for operand in (left, right):
            yield Allocate(operand.shared, const(operand.staging.size), align=RUN_BYTES)
        depth: tuple[Expr, Expr] = (const(0), self.depth.size)
        if parts is None:
            into = self.result(start["result"])
        else:
            into = self.part(parts, step, part)
            begin, end = self.var("begin"), self.var("end")
            length = mul(_pieces(self.depth.size, tile.depth * tile.parts), tile.depth)
            yield Declare(begin, mul(part, length), constant=True)
            yield Declare(end, minimum(add(begin, length), self.depth.size), constant=True)
            depth = (begin, end)
        t = self.var("t")
        warp, element = plan.machine.gpu.warp_threads, operands.element
        thread = Thread(tile, warp, element, self.names, t, left, right, into, is_full, depth)
        body = block(*thread.body())
        yield For(t, const(0), const(tile.threads), body, kind=LoopKind.THREADS, units=tile.threads)

    def starts(self, step: Var) -> tuple[list[Stmt], dict[str, Expr]]:
        """Return the declarations of the begins of a step of the batch in each array, and these."""
        operands, batch = self.operands, self.plan.contraction.batch
        places = {"result": operands.result, "left": operands.left, "right": operands.right}
        if not batch:
            return [], dict.fromkeys(places, const(0))
        at = coordinates_of(step, batch, operands.sizes)
        code: list[Stmt] = []
        begins: dict[str, Expr] = {}
        for name, data in places.items():
            begin = self.var(f"{name}_start")
            offset = add(*(mul(at[loop], data.strides[loop]) for loop in batch))
            code.append(Declare(begin, offset, constant=True))
            begins[name] = begin
        return code, begins

    def copy(self, name: str, data: Data, start: Expr, first: Var, staging: Staging) -> Copy:
        """Return the copy of one operand to shared memory and registers."""
        is_left = name == "left"
        edge, tile = (self.rows if is_left else self.columns), self.plan.tile
        shared, ahead, register = (
            Array(self.names.fresh(f"{name}_{part}"), self.operands.element, storage)
            for part, storage in (
                ("tile", Storage.SHARED), ("ahead", Storage.LOCAL), ("own", Storage.LOCAL)
            )
        )  # fmt: skip
        return Copy(
            data.array,
            start,
            edge.other,
            self.depth.one if is_left else self.depth.other,
            edge.size,
            first,
            staging,
            shared,
            ahead,
            register,
            tile.thread_rows if is_left else tile.thread_columns,
            ("i", "k") if is_left else ("j", "l"),
        )

    # ------------------------------------------------------------ results

    def result(self, start: Expr) -> Into:
        """Return the result, in which runs of columns may be contiguous."""
        contraction, data, sizes = self.plan.contraction, self.operands.result, self.operands.sizes
        into = Into(data.array, start, self.rows.one, self.columns.one, None)
        last = contraction.columns[-1] if contraction.columns else ""
        if not last or data.strides[last] != const(1):
            return into
        steps = [
            data.strides[x]
            for x in (*contraction.batch, *contraction.rows, *contraction.columns[:-1])
        ]
        steps += [sizes[last]] if len(contraction.columns) > 1 else []
        run = run_of(self.plan.tile.thread_columns, self.operands.element.itemsize)
        ends = (eq(mod(step, run), 0) for step in steps)
        at_once = eq(Lead(data.array, run * self.operands.element.itemsize), 0)
        return replace(into, aligned=and_(*ends, at_once))

    def part(self, parts: Array, step: Var, part: Var) -> Into:
        """Return the sums of one part, in rows."""
        rows, columns = self.rows.size, self.columns.size
        several = bool(self.plan.contraction.batch)
        number = add(mul(part, self.batch), step) if several else part
        run = run_of(self.plan.tile.thread_columns, self.operands.element.itemsize)
        start = mul(number, rows, columns)
        aligned = eq(mod(columns, run), 0)
        return Into(parts, start, _even(columns), _even(const(1)), aligned)

    def added_up(self, parts: Array) -> Stmt:
        """Return the loop that sums each element of the result over the parts in their order."""
        operands, rows, columns = self.operands, self.rows.size, self.columns.size
        batch = self.plan.contraction.batch
        i, j = Var("i"), Var("j")
        place, step, part = map(self.var, ("place", "step", "part"))
        total = Var(self.names.fresh("total"), operands.element)
        at = coordinates_of(step, batch, operands.sizes)
        offset = add(*(mul(at[loop], operands.result.strides[loop]) for loop in batch))
        line = div(place, columns)
        value = load(parts, add(mul(part, self.elements()), place))
        body = block(
            Declare(step, div(line, rows), constant=True) if batch else None,
            Declare(i, mod(line, rows) if batch else line, constant=True),
            Declare(j, mod(place, columns), constant=True),
            Declare(total, zero(operands.element)),
            For(
                part,
                const(0),
                const(self.plan.tile.parts),
                block(Assign(total, value, "+")),
            ),
            Store(
                operands.result.array,
                add(offset, self.rows.one.at(i), self.columns.one.at(j)),
                total,
            ),
        )
        return For(place, const(0), self.elements(), body, kind=LoopKind.PARALLEL)


def _pieces(size: Expr, of: int) -> Expr:
    """Return the number of pieces of a size, the last one perhaps smaller."""
    return div(add(size, of - 1), of)


def _even(stride: Expr) -> Steps:
    return Steps(stride, const(True))


def _class(
    name: str,
    loops: tuple[str, ...],
    one: Data,
    other: Data,
    operands: Operands,
    names: Names,
    tables: list[Stmt],
) -> _Class:
    """Return a class of loops; append the code of its tables to `tables`."""
    sizes = [operands.sizes[loop] for loop in loops]
    steps = []
    for data in (one, other):
        code, class_steps = _steps(name, sizes, data.strides_of(loops), names)
        tables.extend(code.body)
        steps.append(class_steps)
    return _Class(mul(*sizes), *steps)


def _steps(
    name: str, sizes: Sequence[Expr], strides: Sequence[Expr], names: Names
) -> tuple[Block, Steps]:
    """Return the steps of loops of these sizes and strides in one array, and code.

    Several loops need a table, whose offsets threads write in the code.
    """
    if len(sizes) < 2:
        return Block(), _even(strides[0] if strides else const(0))
    table = Array(names.fresh(f"{name}_at"), INT64, Storage.LOCAL)
    step, total = Var(names.fresh(name)), mul(*sizes)
    loops = tuple(map(str, range(len(sizes))))
    places = coordinates_of(step, loops, dict(zip(loops, sizes, strict=True)))
    offset = add(*(mul(places[n], stride) for n, stride in zip(loops, strides, strict=True)))
    code = block(
        Allocate(table, maximum(total, 1)),
        For(step, const(0), total, block(Store(table, step, offset)), kind=LoopKind.PARALLEL),
    )
    return code, Steps(strides[-1], const(False), table)
