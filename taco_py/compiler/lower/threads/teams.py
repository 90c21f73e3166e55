"""Ranges of the outermost loop, for threads that write one sparse result side by side.

    edges[…] = where each range begins
    team for piece in 0..pieces:
      for i in edges[piece]..edges[piece + 1]: …

Where the entries of each range belong must be known before. They are counted for that:

    team for piece in 0..pieces:              the loops with no values and nothing stored
      for i …: for j …: pC2++
      counts[piece + 1] = pC2
    counts[0] = 0;  counts[p] += counts[p - 1]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from codegen import build
from codegen.ir import (
    Allocate,
    Array,
    Block,
    Declare,
    Expr,
    For,
    Stmt,
    Storage,
    Store,
    Team,
    Var,
)
from codegen.passes.phases import without_values
from codegen.records import dataclass
from codegen.running_totals import running_totals
from codegen.types import INT64
from taco_py.compiler.concrete.nodes import Forall, Statement
from taco_py.compiler.lower.environment import EMPTY_SCOPE, Environment, Scope
from taco_py.compiler.lower.ranges import open_positions
from taco_py.compiler.lower.sparse_result.counted import Counted, counted
from taco_py.compiler.lower.sparse_result.result import ZERO, Result, make_result
from taco_py.compiler.lower.statements import Lowerer
from taco_py.compiler.lower.threads.row_tables import RowTables, row_tables
from taco_py.compiler.lower.threads.thread_shares import (
    EVEN,
    THREADS_64,
    Shares,
    coordinates_of,
    even,
    grid_pieces,
    stored_ends,
)
from taco_py.compiler.lower.threads.value_ranges import own_workspaces
from taco_py.language.provenance.relations import Interval


@dataclass(frozen=True, slots=True)
class Pieces:
    """Ranges of the outermost loop that threads take, one of them at a time.

    edges   where each begins, and the last one ends
    first   the values of the loop's variable in the one at hand: from here to below `last`
    starts  for each group, how many entries come before each, and how many there are
    known   that last number
    tables  of their rows, where they have tables
    """

    env: Environment
    forall: Forall
    whole: Result
    scope: Scope
    piece: Var
    count: Var
    edges: Array
    first: Var
    last: Var
    starts: tuple[Array, ...]
    known: tuple[Var, ...]
    tables: RowTables | None = None

    @property
    def mine(self) -> Interval:
        return Interval(self.first, self.last)

    @property
    def inner(self) -> Scope:
        return replace(self.scope, piece=(self.forall.index, self.mine))

    @property
    def extent(self) -> Interval | None:
        """Return the coordinates of the outermost level that the range at hand has; None where
        another may have some of them too."""
        if not self.env.provenance.counts_ranges(self.forall.index):
            return None
        return coordinates_of(self.env, self.forall.index, self.mine)

    @property
    def begun(self) -> tuple[Expr, ...]:
        """Return how many entries of each group come before the range at hand."""
        return tuple(at(array, self.piece) for array in self.starts)

    @property
    def totals(self) -> tuple[Expr, ...]:
        """Return how many entries each group has; where reading it takes time, it is read once."""
        if not self.env.graph.teams:
            return self.known
        return tuple(at(array, self.count) for array in self.starts)

    @property
    def grid(self) -> tuple[Expr, tuple[Stmt, ...]]:
        """Return `grid_pieces` of this loop."""
        shares = Shares(self.env, self.forall, self.scope)
        return grid_pieces(shares, (self.first, self.last), self.piece)

    def ends(self) -> Iterator[Stmt]:
        """Where the piece at hand begins and ends."""
        if self.env.graph.teams:
            yield from stored_ends((self.first, self.last), self.piece, self.edges)
        else:
            yield from self.grid[1]

    def team(self, *work: Stmt) -> Stmt:
        """Return threads that do `work` for their pieces, each with workspaces of its own."""
        known = tuple(self.ends())
        setup = build.block(*own_workspaces(self.env, self.forall))
        if self.tables is not None:
            return self.tables.team(self.piece, self.count, setup, known, work)
        return Team(self.piece, self.count, setup, build.block(*known, *work))

    def counting(self, reached: Var | None, *also: Stmt) -> Iterator[Stmt]:
        """Yield how many entries come before each range, and what is `also` to be kept of each.

        reached  see `Counted`
        """
        yield from (Allocate(array, behind(self.count)) for array in self.starts)
        counters = tuple(
            Store(array, behind(self.piece), group.counter)
            for array, group in zip(self.starts, self.whole.groups, strict=True)
        )
        result = counted(self.whole, reached)
        yield self.team(count(self.env, result, self.forall, self.inner, (*counters, *also)))
        for array in self.starts:
            yield from running(self.env, array, self.count, "+")
        if not self.env.graph.teams:
            for var, array in zip(self.known, self.starts, strict=True):
                yield Declare(var, at(array, self.count), constant=True)


def share_out(env: Environment, forall: Forall) -> tuple[Pieces, tuple[Stmt, ...]]:
    """Return the ranges of `forall`, and the code that chooses them.

    They are many and small, which costs nothing where they are not copied, for operands' entries do
    not tell how much work there is to a product.
    """
    scope, before = open_positions(env, EMPTY_SCOPE, forall.index)
    pieces = _pieces(env, forall, scope)
    if not env.graph.teams:
        return _with_tables(pieces, tuple(before))
    shares = Shares(env, forall, scope)
    many = build.add(shares.in_cache, build.mul(THREADS_64, EVEN))
    several = build.select(build.eq(THREADS_64, 1), 1, many)
    chosen = shares.edges(pieces.edges, pieces.count, even)
    return pieces, (*before, Declare(pieces.count, several, constant=True), *chosen)


def _with_tables(pieces: Pieces, before: tuple[Stmt, ...]) -> tuple[Pieces, tuple[Stmt, ...]]:
    """Return pieces for a GPU's threads, whose rows are hash tables."""
    several, ends = pieces.grid

    def counting(env: Environment) -> Iterator[Stmt]:
        yield from loops(env, counted(pieces.whole, None), pieces.forall, pieces.inner)

    found = row_tables(pieces.env, pieces.forall, pieces.piece, pieces.count, ends, counting)
    number = Declare(pieces.count, several, constant=True)
    pieces = replace(pieces, env=found.env, tables=found)
    return pieces, (*before, number, *found.before)


def _pieces(env: Environment, forall: Forall, scope: Scope) -> Pieces:
    fresh = env.names.fresh
    whole = make_result(env)
    edges = numbers(env, "edges")
    starts = tuple(numbers(env, f"{group.counter.name}_counts") for group in whole.groups)
    piece, count = Var(fresh("piece")), Var(fresh("pieces"))
    first, last = Var(fresh("first")), Var(fresh("last"))
    known = tuple(Var(fresh(f"{group.counter.name}_total")) for group in whole.groups)
    return Pieces(env, forall, whole, scope, piece, count, edges, first, last, starts, known)


# ---------------------------------------------------------------- numbers of pieces


def numbers(env: Environment, name: str) -> Array:
    """Return an array of positions of the kernel's own."""
    return Array(env.names.fresh(name), INT64, Storage.LOCAL)


def at(array: Array, place: Expr) -> Expr:
    """Return the number at `place`."""
    return build.load_index(array, place)


def behind(place: Expr) -> Expr:
    """Return the place after `place`."""
    return build.add(place, 1)


def running(env: Environment, array: Array, count: Expr, op: str) -> Iterator[Stmt]:
    """Yield each of the numbers, of which the first is 0, with all before it."""
    if not env.graph.teams:
        yield running_totals(array, count, op)
        return
    place = Var(env.names.fresh("piece"))
    add = Store(array, place, at(array, build.sub(place, 1)), op)
    yield Store(array, ZERO, ZERO)
    yield For(place, build.const(1), behind(count), build.block(add))


# ---------------------------------------------------------------- the loops


def count(
    env: Environment, result: Counted, statement: Statement, scope: Scope, kept: tuple[Stmt, ...]
) -> Block:
    """Return the loops of `statement` that count, which asks for no values and in no order; then
    `kept`, what becomes of the numbers."""
    rows = {
        name: replace(arrays, workspace=replace(arrays.workspace, ordered=False), ranked=None)
        for name, arrays in env.workspaces.items()
    }
    code = (*loops(replace(env, workspaces=rows), result, statement, scope), *kept)
    return without_values(Block(code))


def loops(env: Environment, result: Result, statement: Statement, scope: Scope) -> Iterator[Stmt]:
    """Yield the loops of `statement` between the beginning and the end of `result`, or of a
    range."""
    yield from result.prologue()
    yield from Lowerer(env, result).statement(statement, scope)
    yield from result.epilogue()
