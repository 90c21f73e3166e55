"""Ranges of the outermost loop, for threads that write one sparse result side by side.

    edges[…] = the begin of each range
    team for piece in 0..pieces:
      for i in edges[piece]..edges[piece + 1]: …

The positions of each range's entries must be known first. For this they are counted:

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
from taco_py.compiler.lower.threads.value_ranges import private_workspaces
from taco_py.language.provenance.relations import Interval


@dataclass(frozen=True, slots=True)
class Pieces:
    """Ranges of the outermost loop that threads process one by one.

    edges   the begin of each range, and the end of the last one
    first   the values of the loop's variable in the current range: from here to below `last`
    starts  for each group, the number of entries before each range, and the total
    totals_read  variables with the totals, where they are read once
    tables  of the ranges' rows, where they have tables
    """

    env: Environment
    forall: Forall
    result: Result
    scope: Scope
    piece: Var
    count: Var
    edges: Array
    first: Var
    last: Var
    starts: tuple[Array, ...]
    totals_read: tuple[Var, ...]
    tables: RowTables | None = None

    @property
    def mine(self) -> Interval:
        return Interval(self.first, self.last)

    @property
    def inner(self) -> Scope:
        return replace(self.scope, piece=(self.forall.index, self.mine))

    @property
    def extent(self) -> Interval | None:
        """Return the coordinates of the outermost level in the current range.

        None where another range may have some of them too.
        """
        if not self.env.provenance.counts_ranges(self.forall.index):
            return None
        return coordinates_of(self.env, self.forall.index, self.mine)

    @property
    def offsets(self) -> tuple[Expr, ...]:
        """Return the number of entries of each group before the current range."""
        return tuple(at(array, self.piece) for array in self.starts)

    @property
    def totals(self) -> tuple[Expr, ...]:
        """Return the number of entries of each group; where reading it takes time, it is read
        once."""
        if not self.env.graph.teams:
            return self.totals_read
        return tuple(at(array, self.count) for array in self.starts)

    @property
    def grid(self) -> tuple[Expr, tuple[Stmt, ...]]:
        """Return `grid_pieces` of this loop."""
        shares = Shares(self.env, self.forall, self.scope)
        return grid_pieces(shares, (self.first, self.last), self.piece)

    def ends(self) -> Iterator[Stmt]:
        """Yield the declarations of the begin and the end of the current piece."""
        if self.env.graph.teams:
            yield from stored_ends((self.first, self.last), self.piece, self.edges)
        else:
            yield from self.grid[1]

    def team(self, *work: Stmt) -> Stmt:
        """Return threads that do `work` for their pieces, with private workspaces."""
        bounds = tuple(self.ends())
        setup = build.block(*private_workspaces(self.env, self.forall))
        if self.tables is not None:
            return self.tables.team(self.piece, self.count, setup, bounds, work)
        return Team(self.piece, self.count, setup, build.block(*bounds, *work))

    def counting(self, reached: Var | None, *also: Stmt) -> Iterator[Stmt]:
        """Yield code that counts the entries before each range.

        reached  see `Counted`
        also     further code for each range
        """
        yield from (Allocate(array, next_to(self.count)) for array in self.starts)
        counters = tuple(
            Store(array, next_to(self.piece), group.counter)
            for array, group in zip(self.starts, self.result.groups, strict=True)
        )
        result = counted(self.result, reached)
        yield self.team(count(self.env, result, self.forall, self.inner, (*counters, *also)))
        for array in self.starts:
            yield from running(self.env, array, self.count, "+")
        if not self.env.graph.teams:
            for var, array in zip(self.totals_read, self.starts, strict=True):
                yield Declare(var, at(array, self.count), constant=True)


def share_out(env: Environment, forall: Forall) -> tuple[Pieces, tuple[Stmt, ...]]:
    """Return the ranges of `forall`, and the code that chooses them.

    They are many and small, for operands' entries do not measure the work of a product. This costs
    nothing where ranges are not copied.
    """
    scope, before = open_positions(env, EMPTY_SCOPE, forall.index)
    pieces = _pieces(env, forall, scope)
    if not env.graph.teams:
        return _with_tables(pieces, tuple(before))
    shares = Shares(env, forall, scope)
    most = build.add(shares.in_cache, build.mul(THREADS_64, EVEN))
    several = build.select(build.eq(THREADS_64, 1), 1, most)
    edges = shares.edges(pieces.edges, pieces.count, even)
    return pieces, (*before, Declare(pieces.count, several, constant=True), *edges)


def _with_tables(pieces: Pieces, before: tuple[Stmt, ...]) -> tuple[Pieces, tuple[Stmt, ...]]:
    """Return pieces for a GPU's threads, whose rows are hash tables."""
    several, ends = pieces.grid

    def counting(env: Environment) -> Iterator[Stmt]:
        yield from loops(env, counted(pieces.result, None), pieces.forall, pieces.inner)

    tables = row_tables(pieces.env, pieces.forall, pieces.piece, pieces.count, ends, counting)
    number = Declare(pieces.count, several, constant=True)
    pieces = replace(pieces, env=tables.env, tables=tables)
    return pieces, (*before, number, *tables.before)


def _pieces(env: Environment, forall: Forall, scope: Scope) -> Pieces:
    fresh = env.names.fresh
    result = make_result(env)
    edges = numbers(env, "edges")
    starts = tuple(numbers(env, f"{group.counter.name}_counts") for group in result.groups)
    piece, count = Var(fresh("piece")), Var(fresh("pieces"))
    first, last = Var(fresh("first")), Var(fresh("last"))
    totals = tuple(Var(fresh(f"{group.counter.name}_total")) for group in result.groups)
    return Pieces(env, forall, result, scope, piece, count, edges, first, last, starts, totals)


# ---------------------------------------------------------------- numbers of pieces


def numbers(env: Environment, name: str) -> Array:
    """Return a local array of positions."""
    return Array(env.names.fresh(name), INT64, Storage.LOCAL)


def at(array: Array, place: Expr) -> Expr:
    """Return the element of an array at `place`."""
    return build.load_index(array, place)


def next_to(place: Expr) -> Expr:
    """Return the place after `place`."""
    return build.add(place, 1)


def running(env: Environment, array: Array, count: Expr, op: str) -> Iterator[Stmt]:
    """Yield the running totals of an array in place, by `op`; its first element is 0."""
    if not env.graph.teams:
        yield running_totals(array, count, op)
        return
    place = Var(env.names.fresh("piece"))
    add = Store(array, place, at(array, build.sub(place, 1)), op)
    yield Store(array, ZERO, ZERO)
    yield For(place, build.const(1), next_to(count), build.block(add))


# ---------------------------------------------------------------- the loops


def count(
    env: Environment, result: Counted, statement: Statement, scope: Scope, stores: tuple[Stmt, ...]
) -> Block:
    """Return the loops of `statement` that only count entries, then the code `after`.

    They compute no values, and ignore the order of entries.
    """
    rows = {
        name: replace(arrays, workspace=replace(arrays.workspace, ordered=False), ranked=None)
        for name, arrays in env.workspaces.items()
    }
    code = (*loops(replace(env, workspaces=rows), result, statement, scope), *stores)
    return without_values(Block(code))


def loops(env: Environment, result: Result, statement: Statement, scope: Scope) -> Iterator[Stmt]:
    """Yield the loops of `statement` between the prologue and the epilogue of `result`."""
    yield from result.prologue()
    yield from Lowerer(env, result).statement(statement, scope)
    yield from result.epilogue()
