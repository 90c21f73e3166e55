"""A dataflow graph of entries → loop IR: pieces of rows for threads, groups of rows in each piece.

    parallel i:  over p: z = reduce add A[i,p];  over p: store P[i,p] = div A[i,p] z

    team for pieces of rows with about as many entries:
      while rows are left: a group of rows, of `GROUP_ENTRIES` entries or of one long row
        for row in group: z[row] = sum of A_vals[p]
        for chunks of the group's entries:
          for row in group: stage[p] = A_vals[p] / z[row]
          write the stage to P_vals, and the chunk of A2_crd to P2_crd, past the caches

Rows are short and their entries neighbours, so that a group is read from main memory once, and each
loop that can runs over all of its entries. A row that is longer than a group is one by itself, in
chunks: its passes read it again from a farther cache.
"""

from __future__ import annotations

from collections.abc import Iterator

from codegen import build
from codegen.build import add, and_, block, const, div, load_index, lt, maximum, minimum, mul, sub
from codegen.emit.abi import THREADS
from codegen.ir import (
    Array,
    Assign,
    Block,
    Declare,
    Expr,
    For,
    LoopKind,
    Reserve,
    SetLength,
    Stmt,
    Store,
    Team,
    Var,
    While,
)
from codegen.machine.target import Target
from codegen.records import dataclass
from taco_py.compiler.dataflow.entry_form import EntryForm
from taco_py.compiler.dataflow.entry_graph import EntryGraph
from taco_py.compiler.ways.entry_kernels.emit_passes import PassEmitter
from taco_py.compiler.ways.entry_kernels.entry_arrays import EntryArrays
from taco_py.compiler.ways.entry_kernels.group_memory import GroupMemory
from taco_py.compiler.ways.entry_kernels.group_places import (
    GROUP_ENTRIES,
    EntryPlaces,
    GroupVariables,
)

PIECE_WORK = 1 << 16
"""Entries and rows of a piece that a thread takes: little is left where others have none."""
MOST_PIECES = 1 << 12


def emit_entries(
    entries: EntryForm, graph: EntryGraph, arrays: EntryArrays, target: Target
) -> Block:
    """Emit the body of a function over the arrays of values of entries."""
    passes = PassEmitter(GroupMemory(EntryPlaces.of(entries, graph, arrays)), target)
    return block(*_Emitter(passes).body())


@dataclass(frozen=True, slots=True)
class _Emitter:
    """Emits the arrays of the result, and the loops over pieces and groups of rows."""

    passes: PassEmitter

    @property
    def places(self) -> EntryPlaces:
        return self.passes.places

    @property
    def group(self) -> GroupVariables:
        return self.places.group

    # ------------------------------------------------------------ the function

    def body(self) -> list[Stmt]:
        """Return all code: coordinates of outer levels, then pieces of rows."""
        slabs, total = self.places.variable("rows"), self.places.variable("total")
        outer, count = self.outer_levels()
        return [
            *outer,
            Declare(slabs, count, True),
            Declare(total, self.places.edge(slabs), True),
            *self.results(slabs, total),
            Declare(self.group.past, self.pays(total), True),
            self.team(slabs, total),
        ]

    def outer_levels(self) -> tuple[list[Stmt], Expr]:
        """Return the code that makes the levels above the last one, and how many rows there are.

        The coordinates of the list right above the last level are copied row by row.
        """
        code: list[Stmt] = []
        count: Expr = const(1)
        indices = self.places.entries.form.order
        for level, kind in enumerate(self.places.entries.levels[:-1]):
            if kind.full:
                count = mul(count, self.places.arrays.sizes[indices[level]])
                continue
            edges, total = add(count, 1), self.places.variable("positions")
            code.append(Declare(total, load_index(self.places.source("pos", level), count), True))
            code += self.reserved(self.places.target_of("pos", level), edges)
            code.append(self.copied(level, "pos", edges))
            code += self.reserved(self.places.target_of("crd", level), total, self.most)
            if level < self.places.last - 1:
                code.append(self.copied(level, "crd", total))
            count = total
        return code, count

    @property
    def most(self) -> int | None:
        """Return the most positions that the result's index arrays count."""
        dtype = self.places.target_of("pos", self.places.last).element
        return (1 << 31) - 1 if dtype.itemsize == 4 else None

    def reserved(self, array: Array, count: Expr, limit: int | None = None) -> list[Stmt]:
        """Return the code that makes an array of the result so long."""
        return [SetLength(array, count, limit=limit), Reserve(array, count)]

    def copied(self, level: int, what: str, count: Expr) -> Stmt:
        """Return the loop that copies an index array."""
        place, target = self.places.variable("place"), self.places.target_of(what, level)
        value = build.cast(target.element, load_index(self.places.source(what, level), place))
        body = block(Store(target, place, value))
        return For(place, const(0), count, body, kind=LoopKind.PARALLEL)

    def results(self, slabs: Expr, total: Expr) -> list[Stmt]:
        """Return the code that makes the arrays of the last level, and the values."""
        pos, crd = (
            self.places.target_of("pos", self.places.last),
            self.places.target_of("crd", self.places.last),
        )
        return [
            *self.reserved(pos, add(slabs, 1)),
            Store(pos, const(0), build.zero(pos.element)),
            *self.reserved(crd, total, self.most),
            *self.reserved(self.places.arrays.values[self.places.entries.result], total),
        ]

    def pays(self, total: Expr) -> Expr:
        """Return whether the results are about as large as the last cache."""
        values = self.places.arrays.values[self.places.entries.result].element
        crd = self.places.target_of("crd", self.places.last).element
        least = self.passes.target.processor.past_caches_bytes // (values.itemsize + crd.itemsize)
        return build.ge(total, least)

    # ------------------------------------------------------------ pieces of rows

    def team(self, slabs: Expr, total: Expr) -> Stmt:
        """Return the loop of threads over pieces of rows with about as much work each."""
        piece, last = self.places.variable("piece"), self.places.variable("last")
        work = add(slabs, total)
        several = maximum(minimum(div(work, PIECE_WORK), MOST_PIECES), 1)
        count = self.places.variable("pieces")
        setup = block(*self.passes.memory.allocations())
        group = block(*self.next_group(last))
        body = block(
            *self.edge_of_piece(self.group.first, piece, count, slabs, work),
            *self.edge_of_piece(last, add(piece, 1), count, slabs, work),
            While(lt(self.group.first, last), group),
        )
        declared = Declare(count, build.select(build.eq(THREADS, 1), 1, several), True)
        return block(declared, Team(piece, count, setup, body))

    def edge_of_piece(
        self, low: Var, piece: Expr, count: Expr, slabs: Expr, work: Expr
    ) -> Iterator[Stmt]:
        """Yield the search of the first row of a piece: before it are its share of rows and
        entries."""
        high, middle, share = (self.places.variable(word) for word in ("high", "middle", "share"))
        yield Declare(low, const(0))
        yield Declare(high, slabs)
        yield Declare(share, div(mul(work, piece), count), True)
        before = add(middle, self.places.edge(middle))
        halves = build.if_(
            lt(before, share), block(Assign(low, add(middle, 1))), block(Assign(high, middle))
        )
        half = Declare(middle, add(low, div(sub(high, low), 2)), True)
        yield While(lt(low, high), block(half, halves))

    def next_group(self, last: Var) -> Iterator[Stmt]:
        """Yield the code that finds the next group of rows, runs all passes and goes on."""
        after = self.places.edge(add(self.group.stop, 1))
        more = and_(
            lt(self.group.stop, last),
            build.le(sub(after, self.group.begin), GROUP_ENTRIES),
            lt(sub(self.group.stop, self.group.first), GROUP_ENTRIES),
        )
        yield Declare(self.group.begin, self.places.edge(self.group.first), True)
        yield Declare(self.group.stop, add(self.group.first, 1))
        yield While(more, block(build.increment(self.group.stop)))
        yield Declare(self.group.end, self.places.edge(self.group.stop), True)
        for array in self.places.near.values():
            yield Reserve(array, sub(self.group.end, self.group.begin))
        yield from self.passes.all_passes()
        yield Assign(self.group.first, self.group.stop)
