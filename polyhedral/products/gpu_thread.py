"""The code of each thread of a block for one tile of a contraction on a GPU.

    for k0 in begin..end step 8:
      ahead = left and right at k0          global memory → registers
      sums += a * b                         shared memory → registers, of the step before
      wait; shared = ahead; wait
    result = sums

While the products of a step are computed, the elements of the next step are loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from codegen.build import (
    add,
    and_,
    block,
    const,
    div,
    if_,
    le,
    load,
    lt,
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
    Declare,
    Expr,
    For,
    If,
    LoopKind,
    Stmt,
    Store,
    Var,
    VectorLoad,
    VectorStore,
)
from codegen.names import Names
from codegen.records import dataclass
from codegen.types import ScalarType
from polyhedral.products.gpu_staging import Staging
from polyhedral.products.gpu_tile import RUN_BYTES, GpuTile, lanes, run_of
from polyhedral.products.offsets import Steps


@dataclass(frozen=True, slots=True)
class Copy:
    """The operand of a block, with its copies in shared memory and registers.

    array      the operand, in which the block's matrix begins at `start`
    edge       the steps of its rows or columns, `size` of them; the block begins at `first`
    depth      the steps of the summed loops
    shared     one step of the depth, in shared memory
    ahead      a thread's elements of the next step, in registers
    registers  a thread's elements of one depth, `count` of them
    names      names of variables for a coordinate along the edge and one along the depth
    """

    array: Array
    start: Expr
    edge: Steps
    depth: Steps
    size: Expr
    first: Var
    staging: Staging
    shared: Array
    ahead: Array
    registers: Array
    count: int
    names: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Into:
    """The target of the sums: an array, where the block's matrix begins, and the steps.

    aligned  whether runs of columns are contiguous at multiples of their size; None where they are
             not in general
    """

    array: Array
    start: Expr
    rows: Steps
    columns: Steps
    aligned: Expr | None


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread `t` of a block, which computes rows and columns of a tile.

    is_full  whether all of the block's tile is inside the result
    depth    the range of the terms of its sums
    """

    tile: GpuTile
    warp: int
    element: ScalarType
    names: Names
    t: Var
    left: Copy
    right: Copy
    into: Into
    is_full: Var
    depth: tuple[Expr, Expr]

    def body(self) -> Iterator[Stmt]:
        """Yield all code of the thread."""
        tile, (begin, end) = self.tile, self.depth
        sums = Array(self.names.fresh("sums"), self.element, self.left.registers.storage)
        row, column, k0 = (Var(self.names.fresh(name)) for name in ("row", "column", "k0"))
        yield from self._place(row, column)
        yield Allocate(sums, const(tile.accumulators), align=RUN_BYTES)
        copies = (self.left, self.right)
        yield from (Allocate(copy.ahead, const(copy.staging.copies)) for copy in copies)
        yield unrolled("n", tile.accumulators, lambda n: Store(sums, n, zero(self.element)))
        is_inside = and_(self.is_full, le(add(k0, tile.depth), end))
        plain, guarded = (block(*self._ahead(k0, guard)) for guard in (False, True))
        body = block(
            If(is_inside, plain, block(If(lt(k0, end), guarded))),
            If(lt(begin, k0), block(self._products(sums, row, column))),
            Barrier(LoopKind.THREADS),
            *self._into_shared(),
            Barrier(LoopKind.THREADS),
        )
        yield For(k0, begin, add(end, tile.depth), body, tile.depth)
        yield self._write(sums, row, column)

    def _place(self, row: Var, column: Var) -> Iterator[Stmt]:
        """Yield declarations of the first row and the first column of the thread in its block."""
        tile, t, warp = self.tile, self.t, self.warp
        down, lane_columns = lanes(warp)
        wide = tile.columns // (lane_columns * tile.thread_columns)  # warps in a row
        runs = (
            run_of(count, self.element.itemsize)
            for count in (tile.thread_rows, tile.thread_columns)
        )
        above = mul(div(t, warp * wide), down * tile.thread_rows)
        before = mul(mod(div(t, warp), wide), lane_columns * tile.thread_columns)
        lane = (div(mod(t, warp), lane_columns), mod(t, lane_columns))
        for var, far, near, run in zip((row, column), (above, before), lane, runs, strict=True):
            yield Declare(var, add(far, mul(near, run)), constant=True)

    def _ahead(self, k0: Var, guarded: bool) -> Iterator[Stmt]:
        """Yield loads of the thread's elements of the step at `k0` into registers.

        Behind the last row or column the last one is loaded again, for sums that are not stored;
        behind the depth, elements are 0.
        """

        def plain(copy: Copy, n: Expr) -> Iterator[Stmt]:
            edge, depth = copy.staging.place(self.t, n, copy.first, k0)
            at = add(copy.start, copy.edge.at(edge), copy.depth.at(depth))
            yield Store(copy.ahead, n, load(copy.array, at))

        def checked(copy: Copy, n: Expr) -> Iterator[Stmt]:
            edge, depth = map(Var, copy.names)
            places = copy.staging.place(self.t, n, copy.first, k0)
            for var, place in zip((edge, depth), places, strict=True):
                yield Declare(var, place, constant=True)
            last = select(lt(edge, copy.size), edge, sub(copy.size, 1))
            at = add(copy.start, copy.edge.at(last), copy.depth.at(depth))
            value = select(lt(depth, self.depth[1]), load(copy.array, at), zero(self.element))
            yield Store(copy.ahead, n, value)

        return self._of_both(lambda copy: copy.staging.copies, checked if guarded else plain)

    def _into_shared(self) -> Iterator[Stmt]:
        """Yield stores of the loaded elements into shared memory."""

        def store(copy: Copy, n: Expr) -> Iterator[Stmt]:
            edge, depth = copy.staging.place(self.t, n)
            yield Store(copy.shared, copy.staging.in_shared(depth, edge), load(copy.ahead, n))

        return self._of_both(lambda copy: copy.staging.copies, store)

    def _of_both(
        self, count: Callable[[Copy], int], body: Callable[[Copy, Expr], Iterator[Stmt]]
    ) -> Iterator[Stmt]:
        """Yield `body` for the elements of left and for the elements of right.

        In one loop where both have as many elements.
        """
        copies = (self.left, self.right)
        if count(self.left) == count(self.right):
            yield unrolled(
                "n", count(self.left), lambda n: block(*(s for c in copies for s in body(c, n)))
            )
            return
        for copy in copies:
            yield unrolled("n", count(copy), _of_one(copy, body))

    def _products(self, sums: Array, row: Var, column: Var) -> Stmt:
        """Return the products of one step of the depth, all in registers."""
        left, right = self.left, self.right

        def multiply_add(r: Expr, c: Expr) -> Stmt:
            product = mul(load(left.registers, r), load(right.registers, c))
            return Store(sums, add(mul(r, right.count), c), product, "+")

        def step(k: Expr) -> Stmt:
            def load_registers(copy: Copy, n: Expr) -> Iterator[Stmt]:
                first, side = (row, 0) if copy is left else (column, 1)
                at = copy.staging.in_shared(k, first, *self._spread(n, copy.count, side))
                yield Store(copy.registers, n, load(copy.shared, at))

            return block(
                Allocate(left.registers, const(left.count)),
                Allocate(right.registers, const(right.count)),
                *self._of_both(lambda copy: copy.count, load_registers),
                unrolled(
                    "r",
                    left.count,
                    lambda r: unrolled("c", right.count, lambda c: multiply_add(r, c)),
                ),
            )

        return unrolled("k", self.tile.depth, step)

    def _spread(self, n: Expr, count: int, side: int, width: int = 1) -> tuple[Expr, ...]:
        """Return the distance of the n-th row or column of a thread from its first one.

        In runs of `width`: runs of all threads of a warp alternate.
        """
        run = run_of(count, self.element.itemsize) // width
        if run * width == count:
            return (mul(n, width),)
        distance = mul(div(n, run), run * width * lanes(self.warp)[side])
        return (distance, mod(n, run)) if run > 1 else (distance,)

    def _write(self, sums: Array, row: Var, column: Var) -> Stmt:
        """Return stores of the thread's elements, in vectors where they are aligned."""
        run = run_of(self.tile.thread_columns, self.element.itemsize)
        plain = self._stores(sums, row, column, 1)
        if run == 1 or self.into.aligned is None:
            return plain
        is_aligned = and_(self.is_full, self.into.aligned)
        return if_(is_aligned, self._stores(sums, row, column, run), plain)

    def _stores(self, sums: Array, row: Var, column: Var, run: int) -> Stmt:
        """Return stores of `run` contiguous elements at a time."""
        tile, into = self.tile, self.into
        i, j = Var("i"), Var("j")
        at = add(into.start, into.rows.at(i), into.columns.at(j))

        def element(r: Expr, c: Expr) -> Stmt:
            offset = add(self.right.first, column, *self._spread(c, tile.thread_columns, 1, run))
            position = add(mul(r, tile.thread_columns), mul(c, run))
            if run > 1:
                store: Stmt = VectorStore(into.array, at, VectorLoad(sums, position, run))
            else:
                inside = and_(lt(i, self.left.size), lt(j, self.right.size))
                store = If(inside, block(Store(into.array, at, load(sums, position))))
            return block(Declare(j, offset, constant=True), store)

        def line(r: Expr) -> Stmt:
            down = add(self.left.first, row, *self._spread(r, tile.thread_rows, 0))
            count = tile.thread_columns // run
            elements = unrolled("c", count, lambda c: element(r, c))
            return block(Declare(i, down, constant=True), elements)

        return unrolled("r", tile.thread_rows, line)


def _of_one(copy: Copy, body: Callable[[Copy, Expr], Iterator[Stmt]]) -> Callable[[Var], Stmt]:
    return lambda n: block(*body(copy, n))


def unrolled(name: str, count: int, body: Callable[[Var], Stmt]) -> For:
    """Return an unrolled loop of `count` iterations of `body`."""
    var = Var(name)
    return For(var, const(0), const(count), block(body(var)), unroll=count)
