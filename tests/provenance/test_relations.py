"""The four functions of every relation, by brute force over small integers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codegen import build
from codegen.ir import Expr
from taco_py.language.diagnostics.errors import InternalError
from taco_py.language.provenance.relations import (
    Bound,
    BoundKind,
    Coord,
    Divide,
    Fuse,
    Interval,
    Pos,
    Relation,
    Rename,
    Split,
    child_bounds,
    parent_bounds,
    point,
    recover_child,
    recover_parent,
)
from tests.codegen.interpreter import State, evaluate

Values = tuple[int, ...]


def interval(lo: int, hi: int) -> Interval:
    return Interval(build.const(lo), build.const(hi))


def value(expr: Expr) -> int:
    return int(evaluate(expr, State()))


def values(found: Interval) -> range:
    return range(value(found.lo), value(found.hi))


@dataclass(frozen=True, slots=True)
class Segment:
    """Stored coordinates, the first of them at position `begin`."""

    coordinates: Values
    begin: int

    @property
    def segment(self) -> Interval:
        return interval(self.begin, self.begin + len(self.coordinates))

    def coordinate(self, position: Expr) -> Expr:
        at = value(position) - self.begin
        known = 0 <= at < len(self.coordinates)
        return build.const(self.coordinates[at] if known else -99)

    def search(self, coordinate: Expr) -> Expr:
        return build.const(self.begin + int(np.searchsorted(self.coordinates, value(coordinate))))


# ---------------------------------------------------------------- tiles

TILED = [Split("i", "o", "n", size) for size in (1, 2, 3, 8)]
DIVIDED = [Divide("i", "o", "n", parts) for parts in (1, 2, 3, 8)]
RANGES = [(0, 0), (0, 1), (0, 5), (0, 6), (2, 9)]


def children_of(relation: Relation, whole: Interval) -> Iterator[tuple[int, int]]:
    """Every pair of values that the children run over."""
    yield from product(*(values(child_bounds(relation, c, (whole,))) for c in relation.children))


@pytest.mark.parametrize("whole", RANGES, ids=str)
@pytest.mark.parametrize("relation", [*TILED, *DIVIDED], ids=str)
def test_tiles_meet_every_value_once(relation: Split | Divide, whole: tuple[int, int]) -> None:
    """Pairs of children are the parent's values in order, with some beyond its end."""
    given = interval(*whole)
    found = [
        value(recover_parent(relation, "i", (given,), (build.const(o), build.const(n))))
        for o, n in children_of(relation, given)
    ]
    assert [v for v in found if v < whole[1]] == list(range(*whole))
    assert all(right == left + 1 for left, right in pairwise(found))


@pytest.mark.parametrize("whole", RANGES, ids=str)
@pytest.mark.parametrize("relation", [*TILED, *DIVIDED], ids=str)
def test_children_of_tiles_are_recovered(relation: Split | Divide, whole: tuple[int, int]) -> None:
    given = interval(*whole)
    for parent in range(*whole):
        known = (build.const(parent),)
        children = [recover_child(relation, c, (given,), known) for c in relation.children]
        for child, name in zip(children, relation.children, strict=True):
            assert value(child) in values(child_bounds(relation, name, (given,)))
        assert value(recover_parent(relation, "i", (given,), tuple(children))) == parent


@pytest.mark.parametrize("whole", RANGES, ids=str)
@pytest.mark.parametrize("relation", [*TILED, *DIVIDED], ids=str)
def test_what_tiles_leave_of_the_parent(relation: Split | Divide, whole: tuple[int, int]) -> None:
    """With the outer child known it is one tile; with several outer ones, all of theirs."""
    given = interval(*whole)
    outer, inner = (child_bounds(relation, c, (given,)) for c in relation.children)
    for first in values(outer):
        for last in range(first, values(outer).stop):
            left = parent_bounds(relation, "i", (given,), (interval(first, last + 1), inner))
            expected = [
                v
                for v in range(*whole)
                if first <= value(recover_child(relation, "o", (given,), (build.const(v),))) <= last
            ]
            assert list(values(left)) == expected


def test_sizes_of_tiles() -> None:
    whole = interval(0, 10)
    assert [value(Split("i", "o", "n", s).count(whole)) for s in (1, 3, 5, 11)] == [10, 4, 2, 1]
    assert [value(Divide("i", "o", "n", p).tile(whole)) for p in (1, 3, 5, 11)] == [10, 4, 2, 1]


# ---------------------------------------------------------------- fused

FUSE = Fuse("i", "j", "f")
SIZES = [(0, 3), (3, 0), (1, 1), (2, 3), (3, 2), (4, 1)]


@pytest.mark.parametrize("begin", [0, 2])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_fused_values_are_the_pairs_in_order(sizes: tuple[int, int], begin: int) -> None:
    parents = (interval(0, sizes[0]), interval(begin, begin + sizes[1]))
    found = [
        tuple(value(recover_parent(FUSE, p, parents, (build.const(f),))) for p in FUSE.parents)
        for f in values(child_bounds(FUSE, "f", parents))
    ]
    assert found == list(product(*map(values, parents)))
    for number, pair in enumerate(found):
        known = (build.const(pair[0]), build.const(pair[1]))
        assert value(recover_child(FUSE, "f", parents, known)) == number


@pytest.mark.parametrize("begin", [0, 2])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_what_a_range_of_pairs_leaves(sizes: tuple[int, int], begin: int) -> None:
    """Of the outer index an interval, and of the inner one an interval for each outer value."""
    outer, inner = parents = (interval(0, sizes[0]), interval(begin, begin + sizes[1]))
    pairs = list(product(*map(values, parents)))
    for first, last in product(range(len(pairs)), repeat=2):
        if first > last:
            continue
        chosen = (interval(first, last + 1),)
        met = [
            (i, j)
            for i in values(parent_bounds(FUSE, "i", parents, chosen))
            for j in values(parent_bounds(FUSE, "j", (point(build.const(i)), inner), chosen))
        ]
        assert met == pairs[first : last + 1]
        rows = values(parent_bounds(FUSE, "i", (outer, inner), chosen))
        assert list(rows) == sorted({i for i, _ in met})


# ---------------------------------------------------------------- positions

POS, COORD = Pos("j", "p", "A"), Coord("p", "c")
segments = st.builds(
    Segment,
    st.lists(st.integers(0, 12), unique=True).map(sorted).map(tuple),
    st.integers(0, 3),
)
pairs = st.tuples(st.integers(0, 13), st.integers(0, 13)).map(sorted)


@given(segments)
def test_positions_and_coordinates_recover_each_other(stored: Segment) -> None:
    whole = interval(0, 13)
    for position in values(child_bounds(POS, "p", (whole,), stored)):
        given = (build.const(position),)
        coordinate = recover_parent(POS, "j", (whole,), given, stored)
        assert value(coordinate) == stored.coordinates[position - stored.begin]
        assert value(recover_child(POS, "p", (whole,), (coordinate,), stored)) == position
        assert recover_child(COORD, "c", (whole,), given, stored) == coordinate
        assert value(recover_parent(COORD, "p", (whole,), (coordinate,), stored)) == position


@given(segments, pairs)
def test_positions_of_a_range_of_coordinates(stored: Segment, limits: list[int]) -> None:
    lo, hi = limits
    found = values(child_bounds(POS, "p", (interval(lo, hi),), stored))
    met = [stored.coordinates[p - stored.begin] for p in found]
    assert met == [c for c in stored.coordinates if lo <= c < hi]
    again = parent_bounds(COORD, "p", (stored.segment,), (interval(lo, hi),), stored)
    assert values(again) == found or not found


@given(segments, pairs)
def test_coordinates_of_a_range_of_positions(stored: Segment, limits: list[int]) -> None:
    """The smallest interval with them, so that coordinates in it are those at the positions."""
    first, last = (min(stored.begin + n, values(stored.segment).stop) for n in limits)
    met = stored.coordinates[first - stored.begin : last - stored.begin]
    whole = interval(0, 13)
    for found in (
        parent_bounds(POS, "j", (whole,), (interval(first, last),), stored),
        child_bounds(COORD, "c", (interval(first, last),), stored),
    ):
        inside = values(found)
        assert [c for c in stored.coordinates if c in inside] == list(met)
        assert list(inside) == (list(range(met[0], met[-1] + 1)) if met else [])


@pytest.mark.parametrize("relation", [POS, COORD], ids=str)
def test_positions_need_what_is_stored(relation: Pos | Coord) -> None:
    with pytest.raises(InternalError, match="asked without the coordinates"):
        child_bounds(relation, relation.child, (interval(0, 3),))


# ---------------------------------------------------------------- replaced

KINDS: dict[BoundKind, tuple[int, range | None, Callable[[int, int], bool]]] = {
    BoundKind.MIN_EXACT: (3, range(3, 8), lambda lo, hi: lo == 3),
    BoundKind.MIN_CONSTRAINT: (3, None, lambda lo, hi: lo >= 3),
    BoundKind.MAX_EXACT: (8, range(2, 8), lambda lo, hi: hi == 8),
    BoundKind.MAX_CONSTRAINT: (8, None, lambda lo, hi: hi <= 8),
}


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_are_promises(kind: BoundKind) -> None:
    number, range_, holds = KINDS[kind]
    relation = Bound("i", "b", number, kind)
    whole = interval(2, 8) if kind is not BoundKind.MIN_EXACT else interval(3, 8)
    found = child_bounds(relation, "b", (whole,))
    assert values(found) == (range_ or values(whole))
    for lo, hi in product(range(6), range(6, 12)):
        assert bool(value(relation.holds(interval(lo, hi)))) == holds(lo, hi)


@pytest.mark.parametrize(
    "relation", [Bound("i", "b", 8, BoundKind.MAX_EXACT), Rename("i", "b", "w")], ids=str
)
def test_replaced_variables_are_the_same(relation: Bound | Rename) -> None:
    whole, part, five = interval(0, 8), interval(2, 4), build.const(5)
    assert parent_bounds(relation, "i", (whole,), (part,)) == part
    assert recover_parent(relation, "i", (whole,), (five,)) == five
    assert recover_child(relation, "b", (whole,), (five,)) == five


def test_relations_print_as_they_are_written() -> None:
    printed = {
        Split("i", "i0", "i1", 32): "split(i,i0,i1,32)",
        Divide("i", "i0", "i1", 4): "divide(i,i0,i1,4)",
        FUSE: "fuse(i,j,f)",
        POS: "pos(j,p,A)",
        COORD: "coord(p,c)",
        Bound("i", "b", 8, BoundKind.MAX_EXACT): "bound(i,b,8,MaxExact)",
        Rename("i", "b", "w"): "precompute(i,b,w)",
    }
    assert {str(relation): text for relation, text in printed.items()} == {
        text: text for text in printed.values()
    }
