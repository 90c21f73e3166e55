"""Merge lattices: how one loop runs over several sparse levels at once.

A lattice is a set of points, each a set of iterators that are still alive; the top point has them
all. Multiplication pairs points (conjunction), addition also keeps each side's own points
(disjunction):

    A * B  →  {A,B}                    one loop while both last
    A + B  →  {A,B}, {A}, {B}          three loops
    A + b  →  {A,all}, {all}           one loop over the dimension that looks out for A

(Kjolstad et al. 2017, section 5.)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from codegen.records import dataclass
from taco_py.compiler.iteration.region import (
    Coordinates,
    Everything,
    Intersection,
    Iterator,
    Nothing,
    Region,
    Union,
)


@dataclass(frozen=True, slots=True)
class Point:
    """Iterators, in order of first appearance; `full` when every coordinate counts."""

    iterators: tuple[Iterator, ...]
    full: bool

    def __le__(self, other: Point) -> bool:
        return set(self.iterators) <= set(other.iterators) and (other.full or not self.full)

    def __str__(self) -> str:
        names = [*map(str, self.iterators), *(["all"] if self.full else [])]
        return "{" + ",".join(names) + "}"


@dataclass(frozen=True, slots=True)
class Lattice:
    """Points from the top down, each before the points below it; none where nothing is iterated."""

    points: tuple[Point, ...]

    @property
    def iterators(self) -> tuple[Iterator, ...]:
        """Return the iterators of the top point, which has all of them."""
        return self.points[0].iterators if self.points else ()

    @property
    def full(self) -> bool:
        """Tell whether the loop visits the whole dimension."""
        return any(point.full for point in self.points)

    def below(self, point: Point) -> tuple[Point, ...]:
        """Return `point` and the points below it, from the top down: the cases inside its loop."""
        return tuple(p for p in self.points if p <= point)

    def __str__(self) -> str:
        return " ".join(map(str, self.points)) or "{}"


def build_lattice(region: Region) -> Lattice:
    """Return the lattice whose loops visit exactly the coordinates of `region`."""
    return Lattice(tuple(sorted(_points(region), key=lambda p: -len(p.iterators))))


def is_full(region: Region) -> bool:
    """Tell whether the loop over `region` visits the full dimension, without building its lattice.

    A lattice has as many points as there are sets of its iterators.
    """
    match region:
        case Nothing() | Coordinates():
            return False
        case Everything():
            return True
        case Intersection(left, right):
            return is_full(left) and is_full(right)
        case Union(left, right):
            return is_full(left) or is_full(right)
        case _:
            assert_never(region)


def _points(region: Region) -> tuple[Point, ...]:
    """Return a point for each set of iterators that may be alive together in the region."""
    match region:
        case Nothing():
            return ()
        case Everything():
            return (Point((), True),)
        case Coordinates(iterator):
            return (Point((iterator,), False),)
        case Intersection(left, right):
            ours, theirs = _points(left), _points(right)
            return _unique_points(_join(a, b, a.full and b.full) for a in ours for b in theirs)
        case Union(left, right):
            ours, theirs = _points(left), _points(right)
            pairs = tuple(_join(a, b, a.full or b.full) for a in ours for b in theirs)
            return _unique_points((*pairs, *ours, *theirs))
        case _:
            assert_never(region)


def _unique_points(points: Iterable[Point]) -> tuple[Point, ...]:
    """Return one point for each set of iterators: a full one where there is any."""
    best: dict[frozenset[Iterator], Point] = {}
    for point in points:
        key = frozenset(point.iterators)
        if key not in best or point.full:
            best[key] = point
    return tuple(best.values())


def _join(a: Point, b: Point, full: bool) -> Point:
    return Point(tuple(dict.fromkeys(a.iterators + b.iterators)), full)
