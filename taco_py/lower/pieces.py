"""The outermost loop in pieces that threads take: ranges of its index with equal work.

    weight(i) = i + A2_pos[i] + …
    edges[k] = the first i with weight(i) >= k / pieces * weight(n)
    team for piece in 0..pieces:
      workspaces, one each thread
      of each piece:
        for i in edges[piece]..edges[piece + 1]: …

A piece of a sparse result is a result of its own, whose coordinates begin at the piece's first one
where the outermost level is dense. Put one behind another they are what one thread would have made,
however many pieces there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from codegen import build
from codegen.emit.abi import THREADS
from codegen.ir import (
    Allocate,
    Array,
    Assign,
    AtomicStore,
    Block,
    Declare,
    Expr,
    For,
    Reserve,
    Role,
    Search,
    SetLength,
    Stmt,
    Storage,
    Store,
    Team,
    Var,
    While,
)
from codegen.types import INT64
from taco_py.concrete.nodes import Forall
from taco_py.concrete.tree import read_in, workspaces_of
from taco_py.levels import Compressed, locate
from taco_py.lower import workspaces
from taco_py.lower.environment import EMPTY_SCOPE, Environment, level_functions
from taco_py.lower.ranges import Ranges
from taco_py.lower.result import Result, make_result
from taco_py.lower.statements import Lowerer
from taco_py.notation.nodes import Access
from taco_py.provenance.relations import Bound, Divide, Interval, Rename, Split, parent_bounds

THREADS_64 = build.cast(INT64, THREADS)
SMALL, LARGE = 4, 16
"""How many small pieces there are for each large one, and how many small ones make up a large one.
Each thread begins with a large piece; the small ones at the end even out what the weight did not
tell. Fewer pieces would be less even, and smaller large ones more to copy: the first piece of a
sparse result, a large one, need not be put behind others."""


def lower_pieces(env: Environment, forall: Forall) -> Iterator[Stmt]:
    """The code of a kernel whose statement is `forall`, shared by threads."""
    names = env.names
    piece, count = Var(names.fresh("piece")), Var(names.fresh("pieces"))
    edges = Array(names.fresh("edges"), INT64, Storage.LOCAL)
    first, last = Var(names.fresh("first")), Var(names.fresh("last"))
    mine = Interval(first, last)
    whole = make_result(env)
    result = whole.part(_coordinates(env, forall.index, mine)) if whole.is_sparse else whole
    scope = replace(EMPTY_SCOPE, piece=(forall.index, mine))
    work = (*result.prologue(), *Lowerer(env, result).statement(forall, scope), *result.epilogue())
    body = build.block(
        Declare(first, build.load_index(edges, piece), constant=True),
        Declare(last, build.load_index(edges, build.add(piece, 1)), constant=True),
        *work,
    )
    several = build.mul(THREADS_64, 1 + SMALL)
    yield Declare(count, build.select(build.eq(THREADS_64, 1), 1, several), constant=True)
    yield from _edges(env, forall, edges, count)
    setup = [
        stmt
        for workspace in workspaces_of(forall)
        for stmt in workspaces.allocate(env, env.workspaces[workspace.name])
    ]
    yield from _team(env, whole, Team(piece, count, Block(tuple(setup)), body, whole.parts()))


def _team(env: Environment, whole: Result, team: Team) -> Iterator[Stmt]:
    """The team, with what is left to do for a root level that stores coordinates."""
    root = whole.root
    if root is None:
        yield team
        return
    total = Array(env.names.fresh("total"), INT64, Storage.LOCAL)
    add = AtomicStore(total, build.const(0), whole.groups[0].counter, "+", Role.ASSEMBLY)
    yield Allocate(total, build.const(1))
    yield Store(total, build.const(0), build.const(0), role=Role.ASSEMBLY)
    yield replace(team, body=build.block(*team.body.body, add))
    end = build.cast(root.element, build.load_index(total, build.const(0)))
    yield Reserve(root, build.const(2), Role.ASSEMBLY)
    yield Store(root, build.const(0), build.zero(root.element), role=Role.ASSEMBLY)
    yield Store(root, build.const(1), end, role=Role.ASSEMBLY)
    yield SetLength(root, build.const(2), Role.ASSEMBLY)


# ---------------------------------------------------------------- ranges of equal weight


def _share(total: Expr, k: Expr, count: Expr) -> Expr:
    """How much of `total` lies before the k-th piece: large ones come first, one a thread."""
    units = build.add(k, build.mul(build.minimum(k, THREADS_64), LARGE - 1))
    every = build.add(count, build.mul(THREADS_64, LARGE - 1))
    return build.div(build.mul(total, units), every)


def _edges(env: Environment, forall: Forall, edges: Array, count: Var) -> Iterator[Stmt]:
    """Where pieces begin, and where the last one ends."""
    extent = Ranges(env, EMPTY_SCOPE).whole(forall.index)
    yield Allocate(edges, build.add(count, 1))
    yield Store(edges, build.const(0), extent.lo)
    yield Store(edges, count, extent.hi)
    k = Var(env.names.fresh("k"))
    weighed = tuple(_weighed(env, forall))
    if weighed:
        body = _bisect(env, forall, weighed, edges, k, count)
    else:
        share = _share(extent.length, k, count)
        body = build.block(Store(edges, k, build.add(extent.lo, share)))
    yield For(k, build.const(1), count, body)


def _bisect(
    env: Environment,
    forall: Forall,
    weighed: tuple[Access, ...],
    edges: Array,
    k: Var,
    count: Var,
) -> Block:
    """`edges[k]` = the first value of the loop's variable before which a share of `k` lies."""
    extent = Ranges(env, EMPTY_SCOPE).whole(forall.index)
    low, high = Var(env.names.fresh("low")), Var(env.names.fresh("high"))
    middle, share = Var(env.names.fresh("middle")), Var(env.names.fresh("share"))

    def weight(value: Expr) -> Expr:
        start = _coordinates(env, forall.index, Interval(value, value)).lo
        return build.add(value, *(_entries_before(env, access, start) for access in weighed))

    total = build.sub(weight(extent.hi), weight(extent.lo))
    begin = build.add(weight(extent.lo), _share(total, k, count))
    return build.block(
        Declare(share, begin, constant=True),
        Declare(low, build.load_index(edges, build.sub(k, 1))),
        Declare(high, extent.hi),
        While(
            build.lt(low, high),
            build.block(
                Declare(middle, build.add(low, build.div(build.sub(high, low), 2)), constant=True),
                build.if_(
                    build.lt(weight(middle), share),
                    build.block(Assign(low, build.add(middle, 1))),
                    build.block(Assign(high, middle)),
                ),
            ),
        ),
        Store(edges, k, low),
    )


def _weighed(env: Environment, forall: Forall) -> Iterator[Access]:
    """The sparse operands whose outermost level is that of the loop's index."""
    roots = env.provenance.roots(forall.index)
    for access in read_in(forall):
        if access.tensor in env.workspaces or not env.provenance.counts_ranges(forall.index):
            continue
        form = env.tensors[access.tensor].type.format
        if not form.is_dense and access.indices[form.mode_order[0]] == roots[0]:
            yield access


def _entries_before(env: Environment, access: Access, coordinate: Expr) -> Expr:
    """How many entries of `access` lie before a coordinate of its outermost level."""
    arrays = env.tensors[access.tensor]
    form = arrays.type.format
    position = coordinate
    last = max(level for level, kind in enumerate(form.levels) if not kind.full)
    for level in range(last + 1):
        kind = form.levels[level]
        if kind.full:
            size = env.sizes[access.indices[form.mode_order[level]]]
            position = locate(position, build.const(0), size) if level else coordinate
            continue
        functions = level_functions(arrays, level)
        if not isinstance(functions, Compressed):
            continue
        if level:
            position = build.load_index(functions.pos, position)
        else:
            bounds = functions.bounds(build.const(0))
            position = Search(functions.crd, *bounds, coordinate)
    return position


def _coordinates(env: Environment, variable: str, values: Interval) -> Interval:
    """The coordinates of the index that `variable` is, or counts tiles of."""
    relation = env.provenance.above(variable)
    ranges = Ranges(env, EMPTY_SCOPE)
    match relation:
        case Split() | Divide():
            whole = ranges.whole(relation.parent)
            inner = ranges.whole(relation.inner)
            found = parent_bounds(relation, relation.parent, (whole,), (values, inner))
            lo = build.minimum(found.lo, whole.hi)
            return _coordinates(env, relation.parent, Interval(lo, build.maximum(lo, found.hi)))
        case Bound() | Rename():
            return _coordinates(env, relation.parent, values)
    return values
