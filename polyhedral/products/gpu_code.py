"""A contraction as loops that the blocks and threads of a GPU share, for operands of any sizes,
strides and orders.

    blocks for tile in 0..tiles:
      threads for t:
        for k0 in 0..depth step 16:
          ahead = left and right at k0 + 16           global memory → registers
          sums += a * b                               shared memory → registers, of the step at k0
          wait; shared = ahead; wait

While the products of a step are computed, the loads of the next one are under way. Tiles at a
border read 0 where there is nothing, and write what there is; others have no conditions. A class
of several loops has a table of offsets, which a kernel before makes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from codegen.build import (
    add,
    and_,
    block,
    const,
    div,
    eq,
    if_,
    le,
    load,
    lt,
    maximum,
    minimum,
    mod,
    mul,
    select,
    sub,
    zero,
)
from codegen.ir import (
    Allocate,
    Array,
    Barrier,
    Block,
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
    VectorLoad,
    VectorStore,
)
from codegen.names import Names
from codegen.records import dataclass
from codegen.types import BOOL, INT64
from polyhedral.products.contraction import Contraction
from polyhedral.products.contraction_code import Data, Operands, coordinates_of
from polyhedral.products.gpu_plan import GpuPlan
from polyhedral.products.gpu_staging import Staging
from polyhedral.products.gpu_tile import RUN_BYTES, lanes, run_of
from polyhedral.products.offsets import Steps


@dataclass(frozen=True, slots=True)
class _Class:
    """One class of loops: how many steps it has, and where they lie in two arrays."""

    size: Expr
    one: Steps
    other: Steps


@dataclass(frozen=True, slots=True)
class _Copy:
    """An operand on its way: where it comes from, the registers and the shared memory that it is
    copied to, and each thread's elements of a step of the products."""

    data: Data
    staging: Staging
    edge: Steps
    depth: Steps
    ahead: Array
    shared: Array
    own: Array
    count: int
    start: Expr


def to_gpu_module(plan: GpuPlan, operands: Operands, head: Function, names: Names) -> Module:
    """The module whose one function is `head`, a threaded function without a body, with one.

    names  a supply that has handed out those of `head`'s parameters
    """
    return Module((replace(head, body=_Code(plan, operands, names).body()),))


class _Code:
    """Writes the loops of one contraction."""

    def __init__(self, plan: GpuPlan, operands: Operands, names: Names) -> None:
        self.plan, self.operands, self.names = plan, operands, names
        self.tile, self.found = plan.tile, plan.contraction
        self.element = operands.element
        self.vars: dict[str, Var] = {}

    def var(self, name: str) -> Var:
        """The variable of a name, which is another one than the operands have; scopes beside each
        other have it both."""
        if name not in self.vars:
            self.vars[name] = Var(self.names.fresh(name))
        return self.vars[name]

    def array(self, name: str, storage: Storage = Storage.LOCAL) -> Array:
        return Array(self.names.fresh(name), self.element, storage)

    def unrolled(self, count: int, body: Callable[[Var], Stmt], name: str = "n") -> Stmt:
        """`count` times what is done for a number, one after another in the machine's code."""
        if count == 1:
            return body_at(body, const(0), self.var(name))
        var = self.var(name)
        return For(var, const(0), const(count), block(body(var)), unroll=count)

    # ------------------------------------------------------------ the whole

    def body(self) -> Block:
        """Tables of offsets, then the blocks that share the tiles."""
        found, operands = self.found, self.operands
        tables: list[Stmt] = []

        def steps(loops: Sequence[str], data: Data, name: str) -> Steps:
            code, made = _steps(name, [operands.sizes[x] for x in loops], data.along(loops), self)
            tables.extend(code)
            return made

        result, left, right = operands.result, operands.left, operands.right
        rows, columns, depth = (
            mul(*(operands.sizes[x] for x in loops))
            for loops in (found.rows, found.columns, found.depth)
        )
        self.rows = _Class(
            rows, steps(found.rows, result, "row"), steps(found.rows, left, "left_row")
        )
        self.columns = _Class(
            columns,
            steps(found.columns, result, "column"),
            steps(found.columns, right, "right_column"),
        )
        self.depth = _Class(
            depth, steps(found.depth, left, "left_depth"), steps(found.depth, right, "right_depth")
        )
        return block(*tables, *self.blocks())

    def blocks(self) -> Iterator[Stmt]:
        """The loop over tiles, columns fastest, then rows, then the batch."""
        tile, found, sizes = self.tile, self.found, self.operands.sizes
        across = self.var("tiles_across")
        yield Declare(across, _parts(self.columns.size, tile.columns), constant=True)
        down = _parts(self.rows.size, tile.rows)
        number = self.var("tile")
        total = mul(*(sizes[x] for x in found.batch), down, across)
        i0, j0 = self.var("i0"), self.var("j0")
        which = div(number, across)
        starts: list[Stmt] = []
        if found.batch:
            high = self.var("tiles_down")
            yield Declare(high, down, constant=True)
            total = mul(*(sizes[x] for x in found.batch), high, across)
            step = self.var("step")
            starts.append(Declare(step, div(which, high), constant=True))
            which = mod(which, high)
            coordinates = coordinates_of(step, found.batch, sizes)
        else:
            coordinates = {}
        starts += [
            Declare(i0, mul(which, tile.rows), constant=True),
            Declare(j0, mul(mod(number, across), tile.columns), constant=True),
        ]
        at = []
        for name, data in zip(("result", "left", "right"), self.data(), strict=True):
            offset = add(*(mul(coordinates[x], data.strides[x]) for x in found.batch))
            if found.batch:
                start = self.var(f"{name}_start")
                starts.append(Declare(start, offset, constant=True))
                offset = start
            at.append(offset)
        body = block(*starts, *self.tile_of(i0, j0, *at))
        yield For(number, const(0), total, body, kind=LoopKind.BLOCKS, units=self.plan.together)

    def data(self) -> tuple[Data, Data, Data]:
        return self.operands.result, self.operands.left, self.operands.right

    def tile_of(
        self, i0: Var, j0: Var, result: Expr, left: Expr, right: Expr
    ) -> Iterator[Stmt]:
        """One tile of the result."""
        tile, plan = self.tile, self.plan
        whole = Var(self.names.fresh("whole"), BOOL)
        inside = and_(
            le(add(i0, tile.rows), self.rows.size), le(add(j0, tile.columns), self.columns.size)
        )
        yield Declare(whole, inside, constant=True)
        copies = (
            self.copy("left", plan.left, tile.own_rows, self.rows.other, self.depth.one, left),
            self.copy(
                "right", plan.right, tile.own_columns, self.columns.other, self.depth.other, right
            ),
        )
        for each in copies:
            yield Allocate(each.shared, const(each.staging.size), align=RUN_BYTES)
        t = self.var("t")
        body = block(*self.threads(t, copies, (i0, j0), whole, result))
        yield For(
            t, const(0), const(tile.threads), body, kind=LoopKind.THREADS, units=tile.threads
        )

    def copy(
        self, name: str, staging: Staging, count: int, edge: Steps, depth: Steps, start: Expr
    ) -> _Copy:
        data = self.operands.left if name == "left" else self.operands.right
        return _Copy(
            data, staging, edge, depth, self.array(f"{name}_ahead"),
            self.array(f"{name}_tile", Storage.SHARED), self.array(f"{name}_own"), count, start,
        )  # fmt: skip

    # ------------------------------------------------------------ one thread

    def threads(
        self, t: Var, copies: tuple[_Copy, _Copy], origin: tuple[Var, Var], whole: Var, start: Expr
    ) -> Iterator[Stmt]:
        """What each thread of a block does for one tile."""
        tile, depth = self.tile, self.depth.size
        sums = self.array("sums")
        row, column = self.var("row"), self.var("column")
        yield from self.place(t, row, column)
        yield Allocate(sums, const(tile.accumulators), align=RUN_BYTES)
        yield from (Allocate(c.ahead, const(c.staging.copies)) for c in copies)
        yield self.unrolled(tile.accumulators, lambda n: Store(sums, n, zero(self.element)))
        k0 = self.var("k0")
        within = and_(whole, le(add(k0, tile.depth), depth))
        plain, guarded = (
            block(*(self.ahead(c, t, o, e, k0, guard) for c, o, e in self.edges(copies, origin)))
            for guard in (False, True)
        )
        body = block(
            If(lt(k0, depth), block(If(within, plain, guarded))),
            If(lt(0, k0), block(self.products(copies, sums, row, column))),
            Barrier(LoopKind.THREADS),
            *(self.into_shared(c, t) for c in copies),
            Barrier(LoopKind.THREADS),
        )
        yield For(k0, const(0), add(depth, tile.depth), body, tile.depth)
        places = add(origin[0], row), add(origin[1], column)
        yield self.write(sums, places, whole, start)

    def edges(
        self, copies: tuple[_Copy, _Copy], origin: tuple[Var, Var]
    ) -> Iterator[tuple[_Copy, Var, Expr]]:
        """Each copy, where the block begins along its edge, and how many elements there are."""
        sizes = (self.rows.size, self.columns.size)
        return zip(copies, origin, sizes, strict=True)

    def place(self, t: Var, row: Var, column: Var) -> Iterator[Stmt]:
        """The first row and the first column of a thread in its block."""
        tile, size = self.tile, self.element.itemsize
        down, across = lanes(self.plan.machine.warp)
        warp = down * across
        wide = tile.columns // (across * tile.own_columns)
        lane_row = div(mod(t, warp), across) if tile.threads > warp else div(t, across)
        yield Declare(
            row,
            add(
                mul(div(t, warp * wide), down * tile.own_rows) if tile.threads > warp else 0,
                mul(lane_row, run_of(tile.own_rows, size)),
            ),
            constant=True,
        )
        yield Declare(
            column,
            add(
                mul(mod(div(t, warp), wide), across * tile.own_columns) if wide > 1 else 0,
                mul(mod(t, across), run_of(tile.own_columns, size)),
            ),
            constant=True,
        )

    def ahead(
        self, copy: _Copy, t: Var, origin: Var, size: Expr, k0: Var, guarded: bool
    ) -> Stmt:
        """Read a thread's elements of the step at `k0`. Behind the last row or column it is read
        again, for what nobody writes; behind the depth, elements are 0."""

        def each(n: Expr) -> Stmt:
            edge, depth = copy.staging.place(t, n, origin, k0)
            e, k = self.var("e"), self.var("k")
            edge = minimum(edge, sub(size, 1)) if guarded else edge
            value: Expr = load(
                copy.data.array, add(copy.start, copy.edge.at(e), copy.depth.at(k))
            )
            if guarded:
                value = select(lt(k, self.depth.size), value, zero(self.element))
            return block(
                Declare(e, edge, constant=True),
                Declare(k, depth, constant=True),
                Store(copy.ahead, n, value),
            )

        return self.unrolled(copy.staging.copies, each)

    def into_shared(self, copy: _Copy, t: Var) -> Stmt:
        """Write what was read ahead into shared memory."""

        def each(n: Expr) -> Stmt:
            edge, depth = copy.staging.place(t, n)
            return Store(copy.shared, copy.staging.in_shared(depth, edge), load(copy.ahead, n))

        return self.unrolled(copy.staging.copies, each)

    def products(
        self, copies: tuple[_Copy, _Copy], sums: Array, row: Var, column: Var
    ) -> Stmt:
        """The products of one step of the depth, all of them in registers."""
        tile = self.tile
        left, right = copies

        def step(k: Expr) -> Stmt:
            return block(
                Allocate(left.own, const(left.count)),
                Allocate(right.own, const(right.count)),
                self.own(left, row, k, 0),
                self.own(right, column, k, 1),
                self.unrolled(left.count, lambda r: self.unrolled(right.count, added(r), "c"), "r"),
            )

        def added(r: Expr) -> Callable[[Var], Stmt]:
            def each(c: Expr) -> Stmt:
                product = mul(load(left.own, r), load(right.own, c))
                return Store(sums, add(mul(r, tile.own_columns), c), product, "+")

            return each

        return self.unrolled(tile.depth, step, "k")

    def own(self, copy: _Copy, first: Var, k: Expr, side: int) -> Stmt:
        """Read a thread's elements of one depth from shared memory."""

        def each(n: Expr) -> Stmt:
            at = copy.staging.in_shared(k, first, *self.spread(n, copy.count, side))
            return Store(copy.own, n, load(copy.shared, at))

        return self.unrolled(copy.count, each)

    def spread(self, n: Expr, own: int, side: int, each: int = 1) -> tuple[Expr, ...]:
        """How far the n-th part of a thread's rows or columns is from its first one, of so many
        `each`: runs of all threads of a warp alternate."""
        run = run_of(own, self.element.itemsize) // each
        if run * each == own:
            return (mul(n, each),)
        whole = mul(div(n, run), run * each * lanes(self.plan.machine.warp)[side])
        return (whole, mod(n, run)) if run > 1 else (whole,)

    # ------------------------------------------------------------ the result

    def write(self, sums: Array, places: tuple[Expr, Expr], whole: Var, start: Expr) -> Stmt:
        """Write a thread's elements: runs of neighbours at once, where they are aligned."""
        run = run_of(self.tile.own_columns, self.element.itemsize)
        plain = self.written(sums, places, start, 1)
        aligned = self.aligned(run)
        if run == 1 or aligned is None:
            return plain
        return if_(and_(whole, aligned), self.written(sums, places, start, run), plain)

    def aligned(self, run: int) -> Expr | None:
        """Whether runs of columns are neighbours in the result, at multiples of their size; None
        where they are not in general."""
        found, result, sizes = self.found, self.operands.result, self.operands.sizes
        last = found.columns[-1] if found.columns else ""
        if not last or result.strides[last] != const(1):
            return None
        others = [result.strides[x] for x in (*found.batch, *found.rows, *found.columns[:-1])]
        others += [sizes[last]] if len(found.columns) > 1 else []
        bytes = run * self.element.itemsize
        ends = (eq(mod(each, run), 0) for each in others)
        return and_(*ends, eq(Lead(result.array, bytes), 0))

    def written(self, sums: Array, places: tuple[Expr, Expr], start: Expr, run: int) -> Stmt:
        tile, array = self.tile, self.operands.result.array
        i, j = self.var("i"), self.var("j")

        def each(r: Expr, c: Expr) -> Stmt:
            at = add(start, self.rows.one.at(i), self.columns.one.at(j))
            own = add(mul(r, tile.own_columns), mul(c, run))
            if run > 1:
                return VectorStore(array, at, VectorLoad(sums, own, run))
            inside = and_(lt(i, self.rows.size), lt(j, self.columns.size))
            return If(inside, block(Store(array, at, load(sums, own))))

        def line(r: Expr) -> Stmt:
            def element(c: Expr) -> Stmt:
                across = self.spread(c, tile.own_columns, 1, run)
                return block(Declare(j, add(places[1], *across), constant=True), each(r, c))

            down = add(places[0], *self.spread(r, tile.own_rows, 0))
            return block(
                Declare(i, down, constant=True),
                self.unrolled(tile.own_columns // run, element, "c"),
            )

        return self.unrolled(tile.own_rows, line, "r")


def body_at(body: Callable[[Var], Stmt], value: Expr, var: Var) -> Stmt:
    """What is done for one number, with its name declared."""
    return block(Declare(var, value, constant=True), body(var))


def _parts(size: Expr, of: int) -> Expr:
    """How many parts of a size there are, the last one perhaps smaller."""
    return div(add(size, of - 1), of)


def _steps(
    name: str, sizes: Sequence[Expr], strides: Sequence[Expr], code: _Code
) -> tuple[Iterator[Stmt], Steps]:
    """A class with loops of these sizes and strides in one array, and the code to make its table:
    threads write an offset each."""
    if len(sizes) < 2:
        return iter(()), Steps(strides[0] if strides else const(0), const(True))
    table = Array(code.names.fresh(f"{name}_at"), INT64, Storage.LOCAL)
    step, total = code.var("step"), mul(*sizes)
    loops = [str(n) for n in range(len(sizes))]
    places = coordinates_of(step, loops, dict(zip(loops, sizes, strict=True)))
    offset = add(*(mul(places[n], stride) for n, stride in zip(loops, strides, strict=True)))
    body = block(Store(table, step, offset))
    made = (
        Allocate(table, maximum(total, 1)),
        For(step, const(0), total, body, kind=LoopKind.PARALLEL),
    )
    return iter(made), Steps(strides[-1], const(False), table)
