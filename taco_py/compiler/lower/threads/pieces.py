"""The outermost loop in pieces that threads execute: ranges of its index with equal work.

    team for piece in 0..pieces:
      workspaces, one each thread
      of each piece:
        for i in edges[piece]..edges[piece + 1]: …

Rows of a sparse operand are shared by nnz: each piece finds its bounds by a binary search, or,
where pieces are joined to one result, all bounds are searched first.

A piece of a sparse result is a result by itself, whose coordinates begin at the piece's first one
where the outermost level is dense. Concatenated, the pieces are the result of a single thread,
whatever their number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from codegen import build
from codegen.ir import (
    Allocate,
    Array,
    AtomicStore,
    Declare,
    Expr,
    Reserve,
    SetLength,
    Stmt,
    Storage,
    Store,
    Team,
    Var,
)
from codegen.types import INT64
from taco_py.compiler.concrete.nodes import Forall
from taco_py.compiler.lower.environment import EMPTY_SCOPE, Environment, Scope
from taco_py.compiler.lower.sparse_result.result import Result, make_result
from taco_py.compiler.lower.statements import Lowerer
from taco_py.compiler.lower.threads.row_tables import row_tables
from taco_py.compiler.lower.threads.thread_shares import (
    EVEN,
    SMALL,
    THREADS_64,
    Share,
    Shares,
    coordinates_of,
    even,
    grid_pieces,
    guided,
    stored_ends,
)
from taco_py.compiler.lower.threads.value_ranges import private_workspaces
from taco_py.language.provenance.relations import Interval


def lower_pieces(env: Environment, forall: Forall) -> Iterator[Stmt]:
    """Yield the code of a kernel whose statement is `forall`, shared by threads."""
    names = env.names
    piece, count = Var(names.fresh("piece")), Var(names.fresh("pieces"))
    edges = Array(names.fresh("edges"), INT64, Storage.LOCAL)
    first, last = Var(names.fresh("first")), Var(names.fresh("last"))
    mine = Interval(first, last)
    full = make_result(env)
    result = full.part(coordinates_of(env, forall.index, mine)) if full.is_sparse else full
    scope = replace(EMPTY_SCOPE, piece=(forall.index, mine))
    shares = Shares(env, forall)
    if not env.graph.teams:
        several, bounds = grid_pieces(shares, (first, last), piece)
        yield Declare(count, several, constant=True)
        yield from _by_grid(env, forall, (piece, count), bounds, scope)
        return
    work = (*result.prologue(), *Lowerer(env, result).statement(forall, scope), *result.epilogue())
    setup = build.block(*private_workspaces(env, forall))
    several, share = _pieces(shares, full, bool(setup.body))
    yield Declare(count, build.select(build.eq(THREADS_64, 1), 1, several), constant=True)
    if full.is_sparse:
        yield from shares.edges(edges, count, share)
        ends = stored_ends((first, last), piece, edges)
    else:
        ends = shares.ends((first, last), piece, count, share)
    body = build.block(*ends, *work)
    yield from _team(env, full, Team(piece, count, setup, body, full.parts()))


def _by_grid(
    env: Environment, forall: Forall, pieces: tuple[Var, Var], ends: tuple[Stmt, ...], scope: Scope
) -> Iterator[Stmt]:
    """Yield the pieces of a dense result for a GPU's threads.

    `pieces` are the current piece and the number of pieces.
    """
    result = make_result(env)

    def loops(env: Environment) -> Iterator[Stmt]:
        yield from Lowerer(env, result).statement(forall, scope)

    tables = row_tables(env, forall, *pieces, ends, loops)
    setup = build.block(*private_workspaces(tables.env, forall))
    yield from tables.before
    yield tables.team(*pieces, setup, ends, tuple(loops(tables.env)))


def _pieces(shares: Shares, result: Result, private: bool) -> tuple[Expr, Share]:
    """Return the number of pieces for several threads, and their sizes.

    private  whether threads have private workspaces, whose work the entries do not measure
    """
    if result.is_sparse:
        return shares.in_cache, even
    if private:
        return build.mul(THREADS_64, 1 + SMALL), guided
    return build.mul(THREADS_64, EVEN), even


def _team(env: Environment, result: Result, team: Team) -> Iterator[Stmt]:
    """Yield the team, and the edges of a sparse root level after it."""
    root = result.root
    if root is None:
        yield team
        return
    total = Array(env.names.fresh("total"), INT64, Storage.LOCAL)
    add = AtomicStore(total, build.const(0), result.groups[0].counter, "+")
    yield Allocate(total, build.const(1))
    yield Store(total, build.const(0), build.const(0))
    yield replace(team, body=build.block(*team.body.body, add))
    end = build.cast(root.element, build.load_index(total, build.const(0)))
    yield Reserve(root, build.const(2))
    yield Store(root, build.const(0), build.zero(root.element))
    yield Store(root, build.const(1), end)
    yield SetLength(root, build.const(2))
