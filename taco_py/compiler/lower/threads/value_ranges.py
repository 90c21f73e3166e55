"""A loop that threads share in ranges of its values, each range a piece of work.

    t = 0                                     team for piece in 0..pieces:
    for i …: t += …                             t_1 = 0
                                       ->       for i in edges[piece]..edges[piece + 1]: t_1 += …
                                                t_parts[piece] = t_1
                                              for piece in 0..pieces: t += t_parts[piece]

Where the loop's mode asks for it, each piece adds to private copies, and then all copies are added
up, in order. A single thread needs no copy of a tensor. Pieces that do not depend on the number of
threads give the same bits for any number of them. The loop may be inside others; the copies are
allocated anew each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from codegen import build
from codegen.ir import Array, Block, Declare, Expr, Stmt, Storage, Team, Var
from codegen.types import INT64
from taco_py.compiler.concrete.nodes import ORDERED_COPIES, Forall, Race, Sequence, Statement, Where
from taco_py.compiler.concrete.tree import workspaces_of
from taco_py.compiler.iteration.graph import Range
from taco_py.compiler.lower import workspaces
from taco_py.compiler.lower.environment import Environment, Scope
from taco_py.compiler.lower.ranges import Ranges, in_variable, open_positions, walked_positions
from taco_py.compiler.lower.threads.private_copies import Copies, copies_for
from taco_py.compiler.lower.threads.thread_shares import (
    SMALL,
    THREADS_64,
    Shares,
    even,
    stored_ends,
)
from taco_py.language.provenance.relations import Interval

SUMS = 64
"""Pieces of a sum to a scalar, for any number of threads."""
GRAIN = 4096
"""The least work of a piece, in iterations."""
ROWS = 64
"""The least rows of a piece that adds up whole rows of a large copy."""

Lower = Callable[[Environment, Scope], Iterator[Stmt]]


def lower_separately(
    env: Environment, forall: Forall, scope: Scope, lower: Lower
) -> Iterator[Stmt]:
    """Yield the loop `forall` in pieces, with private copies of its targets where it needs them.

    `lower` gives its code for a piece.
    """
    scope, code = open_positions(env, scope, forall.index)
    variable, values = _values(env, forall, scope, code)
    yield from code
    fresh = env.names.fresh
    piece, count = Var(fresh("piece")), Var(fresh("pieces"))
    shares = Shares(env, forall, scope, values)
    first, last = Var(fresh("first")), Var(fresh("last"))
    edges = Array(fresh("edges"), INT64, Storage.LOCAL)
    mine = Interval(first, last)
    inner = replace(scope, piece=(variable, mine))
    copies = copies_for(env, inner, forall, piece, count)
    work = _entries(env, forall, scope)
    work = shares.total if work is None else work
    rounds = _rounds(env, forall.body)
    if not copies.large:  # a copy of many numbers may cost as much as the loops inside
        work = build.mul(work, *rounds)
    elif _fills_rows(env, forall):  # such a loop takes a step of the copies' for each iteration
        work = build.minimum(build.mul(work, *rounds), build.mul(work, GRAIN // ROWS))
    pieces = _pieces(forall, work, copies, bool(scope.bound))
    yield Declare(count, pieces, constant=True)
    body = build.block(
        *stored_ends((first, last), piece, edges),
        *copies.begin,
        *lower(copies.env, copies.scope),
        *copies.end,
    )
    team = Team(piece, count, Block(tuple(private_workspaces(env, forall))), body)
    shared = (*shares.edges(edges, count, even), *copies.before, team, *copies.after)
    if (
        forall.mode.parallel is Race.TEMPORARY
        and copies.large
        and not any(True for _ in workspaces_of(forall))
    ):
        alone = Block(tuple(lower(env, replace(scope, serial=True))))
        yield build.if_(build.eq(count, 1), alone, Block(shared))
    else:
        yield from shared


def _values(
    env: Environment, forall: Forall, scope: Scope, code: list[Stmt]
) -> tuple[str, Interval | None]:
    """Return the variable whose values are shared, and these values; None for its full range."""
    index = forall.index
    pos = None if env.provenance.is_derived(index) else walked_positions(env, scope, forall)
    is_chosen = env.provenance.is_chosen(index, scope.bound)
    if env.provenance.is_derived(index) or (pos is None and not is_chosen):
        return index, None
    ranges = Ranges(env, scope)
    variable = index if pos is None else pos.child
    interval = ranges.remaining(variable)
    if interval is None:
        variable = ranges.open_leaf(variable)
        interval = ranges.full(variable)
    lo = in_variable(env, f"{variable}_lo", interval.lo, code)
    return variable, Interval(lo, in_variable(env, f"{variable}_hi", interval.hi, code))


def private_workspaces(env: Environment, forall: Forall) -> Iterator[Stmt]:
    """Yield the allocations of the workspaces that are filled in the loop."""
    for workspace in workspaces_of(forall):
        yield from workspaces.allocate(env, env.workspaces[workspace.name])


def _entries(env: Environment, forall: Forall, scope: Scope) -> Expr | None:
    """Return the number of entries that the loop visits, where it walks one level alone."""
    loop = env.graph.loop_of(forall)
    if loop.lattice.full or len(loop.lattice.iterators) != 1 or loop.range is not Range.FULL:
        return None
    (iterator,) = loop.lattice.iterators
    parent = scope.position(iterator.access, iterator.level - 1)
    if parent is None:
        return None
    return Interval(*env.iterated(iterator, scope).bounds(parent)).length


def _fills_rows(env: Environment, forall: Forall) -> bool:
    """Tell whether each iteration of the loop goes through a full dimension, and no list."""
    loops = [loop for loop in env.graph.loops if loop.outer or loop.body is forall.body]
    return bool(_rounds(env, forall.body)) and all(loop.lattice.full for loop in loops)


def _rounds(env: Environment, statement: Statement) -> tuple[Expr, ...]:
    """Return the sizes of full dimensions that nested loops of a statement run over."""
    match statement:
        case Forall(index, body):
            inside = _rounds(env, body)
            loop = env.graph.loop_of(statement)
            full = loop.lattice.full and loop.range is Range.FULL
            derived = env.provenance.is_derived(index)
            return (env.sizes[index], *inside) if full and not derived else inside
        case Where(_, consumer, producer):
            return max(_rounds(env, consumer), _rounds(env, producer), key=len)
        case Sequence(statements):
            return max((_rounds(env, part) for part in statements), key=len, default=())
    return ()


def _pieces(forall: Forall, work: Expr, copies: Copies, inside: bool) -> Expr:
    """Return the number of pieces: few enough to pay where the loop is inside others.

    Threads then start anew each time.
    """
    worth = build.div(work, GRAIN)
    match forall.mode.parallel:
        case Race.TEMPORARY:
            most = THREADS_64
        case Race.ORDERED:
            most = build.const(ORDERED_COPIES if copies.large else SUMS)
        case _:
            most = build.mul(THREADS_64, 1 + SMALL)
            most = build.select(build.eq(THREADS_64, 1), 1, most)
    if inside or forall.mode.parallel is Race.ORDERED:
        return build.maximum(build.minimum(worth, most), 1)
    return most
