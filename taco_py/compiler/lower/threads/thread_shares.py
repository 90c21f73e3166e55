"""Ranges of a loop's variable with equal work, for threads to share.

weight(i) = i + A2_pos[i] + …
edges[k] = the first i with weight(i) >= (the share before piece k) * weight(n)

Where edges are used nowhere else, each piece searches its two edges itself, and none are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from codegen import build
from codegen.emit.abi import THREADS
from codegen.ir import (
    Allocate,
    Array,
    Assign,
    Declare,
    Expr,
    For,
    Search,
    Stmt,
    Store,
    Var,
    While,
)
from codegen.records import dataclass
from codegen.types import INT64
from taco_py.compiler.concrete.nodes import Forall
from taco_py.compiler.iteration.weights import weighed_operands
from taco_py.compiler.levels import Compressed, locate
from taco_py.compiler.lower.environment import EMPTY_SCOPE, Environment, Scope, level_functions
from taco_py.compiler.lower.ranges import Ranges
from taco_py.language.notation.nodes import Access
from taco_py.language.provenance.relations import (
    Bound,
    Divide,
    Interval,
    Rename,
    Split,
    parent_bounds,
)

THREADS_64 = build.cast(INT64, THREADS)
SMALL, LARGE = 4, 16
"""The number of small pieces for each large one, and the ratio of their sizes.
Each thread begins with a large piece; the small ones at the end balance the work that the weight
does not measure. Fewer pieces would be less balanced."""
EVEN = 16
"""The number of pieces of equal size for each thread, where their times may differ."""
CACHED, MOST = 16384, 1024
"""The work of a piece whose part of a sparse result is still in a cache when it is copied,
and the most pieces for each thread."""
SEARCHED, SEARCHES = 16, 1 << 20
"""The coordinates that are worth a search by a thread of a GPU, and the most of such pieces."""


Share = Callable[[Expr, Expr, Expr], Expr]
"""The part of a total (first argument) before piece k (second) of a number of pieces (third)."""


def guided(total: Expr, k: Expr, count: Expr) -> Expr:
    """Return the share before piece k: large pieces first, one for each thread, then small ones."""
    units = build.add(k, build.mul(build.minimum(k, THREADS_64), LARGE - 1))
    every = build.add(count, build.mul(THREADS_64, LARGE - 1))
    return _part(total, units, every)


def even(total: Expr, k: Expr, count: Expr) -> Expr:
    """Return the share before piece k of pieces of equal size."""
    return _part(total, k, count)


def _part(total: Expr, units: Expr, every: Expr) -> Expr:
    """Return `units / every` of a total, without products that overflow for large totals."""
    quotient, rest = build.div(total, every), build.mod(total, every)
    return build.add(build.mul(quotient, units), build.div(build.mul(rest, units), every))


@dataclass(frozen=True, slots=True)
class Shares:
    """The ranges of the variable of `forall` that make up pieces of work.

    values  the shared values, where they are not the full range; they have equal weights
    """

    env: Environment
    forall: Forall
    scope: Scope = EMPTY_SCOPE
    values: Interval | None = None

    @property
    def extent(self) -> Interval:
        return self.values or Ranges(self.env, self.scope).full(self.forall.index)

    @property
    def weighed(self) -> tuple[Access, ...]:
        """Return the operands whose entries are a part of the work."""
        env, forall = self.env, self.forall
        operands = weighed_operands(env.problem, env.provenance, forall.index, forall)
        return () if self.values else tuple(operands)

    @property
    def total(self) -> Expr:
        """Return the work of all pieces."""
        return build.sub(self.weight(self.extent.hi), self.weight(self.extent.lo))

    @property
    def in_cache(self) -> Expr:
        """Return the number of pieces of a sparse result for several threads."""
        pieces = build.add(build.div(self.total, CACHED), build.mul(THREADS_64, 1 + SMALL))
        return build.minimum(pieces, build.mul(THREADS_64, MOST))

    def weight(self, value: Expr) -> Expr:
        """Return a measure of the work before `value`, strictly increasing."""
        if not self.weighed:
            return value
        start = coordinates_of(self.env, self.forall.index, Interval(value, value)).lo
        entries = (_entries_before(self.env, access, start) for access in self.weighed)
        return build.add(value, *entries)

    def edges(self, edges: Array, count: Expr, share: Share) -> Iterator[Stmt]:
        """Yield code that stores the begin of each piece, and the end of the last one."""
        k = Var(self.env.names.fresh("k"))
        yield Allocate(edges, build.add(count, 1))
        yield Store(edges, build.const(0), self.extent.lo)
        yield Store(edges, count, self.extent.hi)
        begin = self._begin(k, count, share)
        if self.weighed:
            low = Var(self.env.names.fresh("low"))
            before = Declare(low, build.load_index(edges, build.sub(k, 1)))
            search = self._bisect(low, self.extent.hi, begin)
            body = build.block(before, *search, Store(edges, k, low))
        else:
            body = build.block(Store(edges, k, begin))
        yield For(k, build.const(1), count, body)

    def ends(self, mine: tuple[Var, Var], piece: Expr, count: Expr, share: Share) -> Iterator[Stmt]:
        """Yield code that computes the begin and the end of a piece, without other pieces'
        bounds."""
        first, last = mine
        lo, hi = self.extent.lo, self.extent.hi
        if not self.weighed:
            for var, k in ((first, piece), (last, build.add(piece, 1))):
                yield Declare(var, self._begin(k, count, share), constant=True)
            return
        k = Var(self.env.names.fresh("k"))
        search = build.block(
            Assign(first, last),
            Assign(last, build.select(build.eq(k, count), hi, last)),
            *self._bisect(last, build.select(build.eq(k, 0), lo, hi), self._begin(k, count, share)),
        )
        yield from (Declare(var, lo) for var in mine)
        yield For(k, piece, build.add(piece, 2), search)

    def _begin(self, k: Expr, count: Expr, share: Share) -> Expr:
        """Return the weight at which piece k begins."""
        return build.add(self.weight(self.extent.lo), share(self.total, k, count))

    def _bisect(self, low: Var, end: Expr, begin: Expr) -> tuple[Stmt, ...]:
        """Yield code that sets `low` to the first value up to `end` whose weight is at least
        `begin`."""
        fresh = self.env.names.fresh
        high = Var(fresh("high"))
        middle, share = Var(fresh("middle")), Var(fresh("share"))
        half = build.add(low, build.div(build.sub(high, low), 2))
        return (
            Declare(share, begin, constant=True),
            Declare(high, end),
            While(
                build.lt(low, high),
                build.block(
                    Declare(middle, half, constant=True),
                    build.if_(
                        build.lt(self.weight(middle), share),
                        build.block(Assign(low, build.add(middle, 1))),
                        build.block(Assign(high, middle)),
                    ),
                ),
            ),
        )


def grid_pieces(
    shares: Shares, mine: tuple[Var, Var], piece: Expr
) -> tuple[Expr, tuple[Stmt, ...]]:
    """Return the number of pieces for the many threads of a GPU, and a piece's bounds.

    The variables `mine` are declared as the bounds. Each piece has one value; several where these
    are searched in coordinates.
    """
    first, last = mine
    extent = shares.extent
    if not shares.env.graph.loop_of(shares.forall).lattice.iterators:
        begin = build.add(extent.lo, piece)
        ends = (first, begin), (last, build.add(first, 1))
        return extent.length, tuple(Declare(var, end, constant=True) for var, end in ends)
    count = build.minimum(build.div(build.add(extent.length, SEARCHED - 1), SEARCHED), SEARCHES)
    same = replace(shares, values=extent)
    return count, tuple(same.ends(mine, piece, count, even))


def stored_ends(mine: tuple[Var, Var], piece: Expr, edges: Array) -> Iterator[Stmt]:
    """Yield declarations of `mine`, the begin and the end of a piece, as stored in `edges`."""
    for var, k in zip(mine, (piece, build.add(piece, 1)), strict=True):
        yield Declare(var, build.load_index(edges, k), constant=True)


def _entries_before(env: Environment, access: Access, coordinate: Expr) -> Expr:
    """Return the number of entries of `access` before a coordinate of its outermost level."""
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


def coordinates_of(env: Environment, variable: str, values: Interval) -> Interval:
    """Return the coordinates of the index that `variable` is, or counts tiles of."""
    relation = env.provenance.above(variable)
    ranges = Ranges(env, EMPTY_SCOPE)
    match relation:
        case Split() | Divide():
            parent = ranges.full(relation.parent)
            inner = ranges.full(relation.inner)
            interval = parent_bounds(relation, relation.parent, (parent,), (values, inner))
            lo = build.minimum(interval.lo, parent.hi)
            return coordinates_of(
                env, relation.parent, Interval(lo, build.maximum(lo, interval.hi))
            )
        case Bound() | Rename():
            return coordinates_of(env, relation.parent, values)
    return values
