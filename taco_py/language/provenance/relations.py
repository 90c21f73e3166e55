"""How derived index variables relate to the original ones: relations with their four functions.

    split(i, i0, i1, 32)     i = i0 * 32 + i1             tiles of 32
    divide(i, i0, i1, 4)     i = i0 * ⌈n / 4⌉ + i1        4 tiles
    fuse(i, j, f)            f = i * |j| + j              one loop over pairs
    pos(j, p, A)             j = A.crd[p]                 the stored entries instead of coordinates
    coord(p, c)              c = A.crd[p]                 coordinates again, of a range of entries
    bound(i, b, n, kind)     i = b                        a promise about the range of i
    precompute(i, iw, w)     i = iw                       the same range, walked to fill w

Every relation has four functions, in loop IR over any known values: the values of a parent that
remain for known children (`parent_bounds`), the values that a child runs over (`child_bounds`), and
a parent or a child as an expression of the others (`recover_parent`, `recover_child`). Relations
between coordinates are arithmetic; `pos` and `coord` need the coordinates that an operand stores,
which the caller passes as `Stored`.

(Senanayake et al. 2020, A Sparse Iteration Space Transformation Framework, section 4.)
"""

from __future__ import annotations

from enum import Enum
from typing import Protocol, assert_never

from codegen import build
from codegen.ir import Const, Expr
from codegen.records import dataclass
from taco_py.language.diagnostics.errors import InternalError


@dataclass(frozen=True, slots=True)
class Interval:
    """The integers from `lo` (inclusive) to `hi` (exclusive); empty where `hi <= lo`."""

    lo: Expr
    hi: Expr

    @property
    def length(self) -> Expr:
        return build.sub(self.hi, self.lo)

    def clipped(self, outer: Interval) -> Interval:
        """Return the intersection with `outer`."""
        return Interval(build.maximum(self.lo, outer.lo), build.minimum(self.hi, outer.hi))


def point(value: Expr) -> Interval:
    """Return the interval that holds `value` alone."""
    return Interval(value, build.add(value, 1))


class Stored(Protocol):
    """One segment of stored coordinates in ascending order."""

    @property
    def segment(self) -> Interval:
        """Return the interval of the segment's positions."""
        ...

    def coordinate(self, position: Expr) -> Expr:
        """Return the coordinate that is stored at `position`."""
        ...

    def search(self, coordinate: Expr) -> Expr:
        """Return the first position whose coordinate is at least `coordinate`, or the segment's
        end."""
        ...


LARGEST = 1 << 62
"""The largest number of values of a counted variable: one tile more still fits 64 bits."""


class BoundKind(Enum):
    """The promise of a `bound`: where the range begins or ends, or its limit."""

    MIN_EXACT = "MinExact"
    MIN_CONSTRAINT = "MinConstraint"
    MAX_EXACT = "MaxExact"
    MAX_CONSTRAINT = "MaxConstraint"


@dataclass(frozen=True, slots=True)
class _Tiled:
    """A relation that cuts a parent into tiles."""

    parent: str
    outer: str
    inner: str

    @property
    def parents(self) -> tuple[str, ...]:
        return (self.parent,)

    @property
    def children(self) -> tuple[str, ...]:
        return (self.outer, self.inner)


@dataclass(frozen=True, slots=True)
class _Replaced:
    """A relation that replaces a parent by one child."""

    parent: str
    child: str

    @property
    def parents(self) -> tuple[str, ...]:
        return (self.parent,)

    @property
    def children(self) -> tuple[str, ...]:
        return (self.child,)


@dataclass(frozen=True, slots=True)
class Split(_Tiled):
    """Tiles of `size`: `parent = lo + outer * size + inner`."""

    size: int

    def tile(self, parent: Interval) -> Expr:
        """Return the number of the parent's values in a tile."""
        return build.const(self.size)

    def count(self, parent: Interval) -> Expr:
        """Return the number of tiles."""
        return build.div(build.add(parent.length, self.size - 1), self.size)

    def __str__(self) -> str:
        return f"split({self.parent},{self.outer},{self.inner},{self.size})"


@dataclass(frozen=True, slots=True)
class Divide(_Tiled):
    """`parts` tiles of one size: `parent = lo + outer * ⌈length / parts⌉ + inner`."""

    parts: int

    def tile(self, parent: Interval) -> Expr:
        """Return how many values of the parent a tile has."""
        return build.div(build.add(parent.length, self.parts - 1), self.parts)

    def count(self, parent: Interval) -> Expr:
        """Return the number of tiles, of which the last ones may be empty."""
        return build.const(self.parts)

    def __str__(self) -> str:
        return f"divide({self.parent},{self.outer},{self.inner},{self.parts})"


@dataclass(frozen=True, slots=True)
class Fuse:
    """`fused = outer * |inner| + inner - lo`, where the inner range begins at `lo`."""

    outer: str
    inner: str
    fused: str

    @property
    def parents(self) -> tuple[str, ...]:
        return (self.outer, self.inner)

    @property
    def children(self) -> tuple[str, ...]:
        return (self.fused,)

    def countable(self, outer: Interval, inner: Interval) -> Expr:
        """Return the condition that all values of the fused variable fit 64-bit numbers."""
        most = build.div(LARGEST, build.maximum(inner.length, 1))
        return build.le(outer.hi, most)

    def __str__(self) -> str:
        return f"fuse({self.outer},{self.inner},{self.fused})"


@dataclass(frozen=True, slots=True)
class Pos(_Replaced):
    """`child` runs over the positions of the level of `tensor` that stores `parent`.

    indices  of the access to iterate; empty if the user named the tensor alone
    """

    tensor: str
    indices: tuple[str, ...] = ()

    def means(self, tensor: str, indices: tuple[str, ...], roots: tuple[str, ...]) -> bool:
        """Tell whether the relation iterates an access; `roots` are the indices that `parent`
        derives from."""
        matches = not self.indices or self.indices == indices
        return tensor == self.tensor and matches and set(roots) <= set(indices)

    def __str__(self) -> str:
        access = f"{self.tensor}({','.join(self.indices)})" if self.indices else self.tensor
        return f"pos({self.parent},{self.child},{access})"


@dataclass(frozen=True, slots=True)
class Coord(_Replaced):
    """`child` runs over the coordinates stored in a range of positions `parent`."""

    def __str__(self) -> str:
        return f"coord({self.parent},{self.child})"


@dataclass(frozen=True, slots=True)
class Bound(_Replaced):
    """`child` is `parent`, whose range begins or ends as promised."""

    value: int
    kind: BoundKind

    def holds(self, range: Interval) -> Expr:
        """Return the condition that `range` keeps the promise."""
        match self.kind:
            case BoundKind.MIN_EXACT:
                return build.eq(range.lo, self.value)
            case BoundKind.MIN_CONSTRAINT:
                return build.ge(range.lo, self.value)
            case BoundKind.MAX_EXACT:
                return build.eq(range.hi, self.value)
            case BoundKind.MAX_CONSTRAINT:
                return build.le(range.hi, self.value)
            case _:
                assert_never(self.kind)

    def __str__(self) -> str:
        return f"bound({self.parent},{self.child},{self.value},{self.kind.value})"


@dataclass(frozen=True, slots=True)
class Rename(_Replaced):
    """`child` is `parent`, in the loops that fill `workspace`; elsewhere `parent` stays a loop."""

    workspace: str

    def __str__(self) -> str:
        return f"precompute({self.parent},{self.child},{self.workspace})"


Relation = Split | Divide | Fuse | Pos | Coord | Bound | Rename


# ---------------------------------------------------------------- the four functions


def child_bounds(
    relation: Relation, child: str, parents: tuple[Interval, ...], stored: Stored | None = None
) -> Interval:
    """Return the interval that `child` runs over when its parents run over `parents`."""
    zero = build.const(0)
    match relation:
        case Split() | Divide():
            (parent,) = parents
            end = relation.count(parent) if child == relation.outer else relation.tile(parent)
            return Interval(zero, end)
        case Fuse():
            outer, inner = parents
            size = inner.length
            return Interval(build.mul(outer.lo, size), build.mul(outer.hi, size))
        case Pos():
            (parent,) = parents
            return _positions(parent, _require_stored(relation, stored))
        case Coord():
            (parent,) = parents
            return _coordinates(parent, _require_stored(relation, stored))
        case Bound(_, _, value, BoundKind.MIN_EXACT):
            return Interval(build.const(value), parents[0].hi)
        case Bound(_, _, value, BoundKind.MAX_EXACT):
            return Interval(parents[0].lo, build.const(value))
        case Bound() | Rename():
            return parents[0]


def parent_bounds(
    relation: Relation,
    parent: str,
    parents: tuple[Interval, ...],
    children: tuple[Interval, ...],
    stored: Stored | None = None,
) -> Interval:
    """Return the interval of `parent` that remains when the children lie in `children`.

    parents  the full ranges; for the inner parent of a fusion, the outer range is its value

    The answer is exact where it is one interval: of a split, either the outer child is a point or
    the inner one is its full range.
    """
    match relation:
        case Split() | Divide():
            (full,) = parents
            outer, inner = children
            tile = relation.tile(full)
            first = build.add(full.lo, build.mul(outer.lo, tile))
            last = build.add(full.lo, build.mul(build.sub(outer.hi, 1), tile))
            lo, hi = build.add(first, inner.lo), build.add(last, inner.hi)
            return Interval(lo, hi if fills(relation, full) else build.minimum(hi, full.hi))
        case Fuse():
            outer, inner = parents
            (fused,) = children
            size = inner.length
            if parent == relation.outer:
                last = build.div(build.sub(fused.hi, 1), _divisor(size))
                first = build.div(fused.lo, _divisor(size))
                return Interval(first, build.add(last, 1)).clipped(outer)
            start = build.sub(build.mul(outer.lo, size), inner.lo)
            remaining = Interval(build.sub(fused.lo, start), build.sub(fused.hi, start))
            return remaining.clipped(inner)
        case Pos():
            return _coordinates(children[0], _require_stored(relation, stored)).clipped(parents[0])
        case Coord():
            return _positions(children[0], _require_stored(relation, stored)).clipped(parents[0])
        case Bound() | Rename():
            return children[0]


def fills(relation: Split | Divide, parent: Interval) -> bool:
    """Tell whether every tile of `parent` is provably full."""
    tile, length = relation.tile(parent), parent.length
    if not isinstance(tile, Const) or not isinstance(length, Const) or tile.value == 0:
        return False
    covered = int(tile.value.real) * _rounds(relation, length)
    return covered == length.value


def _rounds(relation: Split | Divide, length: Const) -> int:
    if isinstance(relation, Divide):
        return relation.parts
    return int(length.value.real) // relation.size


def recover_parent(
    relation: Relation,
    parent: str,
    parents: tuple[Interval, ...],
    children: tuple[Expr, ...],
    stored: Stored | None = None,
) -> Expr:
    """Return the value of `parent`, of known full range, from the values of its children."""
    match relation:
        case Split() | Divide():
            (full,) = parents
            outer, inner = children
            return build.add(full.lo, build.mul(outer, relation.tile(full)), inner)
        case Fuse():
            size = _divisor(parents[1].length)
            if parent == relation.outer:
                return build.div(children[0], size)
            return build.add(parents[1].lo, build.mod(children[0], size))
        case Pos():
            return _require_stored(relation, stored).coordinate(children[0])
        case Coord():
            return _require_stored(relation, stored).search(children[0])
        case Bound() | Rename():
            return children[0]


def recover_child(
    relation: Relation,
    child: str,
    parents: tuple[Interval, ...],
    values: tuple[Expr, ...],
    stored: Stored | None = None,
) -> Expr:
    """Return the value of `child` from the `values` of its parents, whose full ranges are
    `parents`."""
    match relation:
        case Split() | Divide():
            (full,) = parents
            operation = build.div if child == relation.outer else build.mod
            return operation(build.sub(values[0], full.lo), _divisor(relation.tile(full)))
        case Fuse():
            inside = build.sub(values[1], parents[1].lo)
            return build.add(build.mul(values[0], parents[1].length), inside)
        case Pos():
            return _require_stored(relation, stored).search(values[0])
        case Coord():
            return _require_stored(relation, stored).coordinate(values[0])
        case Bound() | Rename():
            return values[0]


def _positions(coordinates: Interval, stored: Stored) -> Interval:
    """Return the interval of positions that store the coordinates of an interval."""
    return Interval(stored.search(coordinates.lo), stored.search(coordinates.hi))


def _coordinates(positions: Interval, stored: Stored) -> Interval:
    """Return the interval of coordinates stored at an interval of positions, empty if that is."""
    some = build.lt(positions.lo, positions.hi)
    first = stored.coordinate(positions.lo)
    last = stored.coordinate(build.sub(positions.hi, 1))
    zero = build.const(0)
    return Interval(build.select(some, first, zero), build.select(some, build.add(last, 1), zero))


def _divisor(length: Expr) -> Expr:
    """Return a divisor that is not zero: with length 0 the quotient is zero or unused."""
    return build.maximum(length, 1)


def _require_stored(relation: Relation, stored: Stored | None) -> Stored:
    if stored is None:
        raise InternalError(f"{relation} is asked without the coordinates that are stored")
    return stored
