"""Points that are bred: the fastest so far, changed at an axis or two, or two of them crossed.

population   the fastest PARENTS of all that were measured
a child      mutation of one of them, or options of two of them at random
"""

from __future__ import annotations

from collections.abc import Iterator

from taco_py.tuning.searches.search_protocol import Asked, Search
from taco_py.tuning.space.axis import Point, point_of

PARENTS = 8
FIRST = 12
"""Random points that are measured before any is bred."""
CROSSED = 0.3
"""The share of children of two."""
AGAIN = 200


def search(asked: Asked) -> Search:
    """Yield random points, then children of the fastest."""
    met: set[Point] = set()
    best: dict[Point, float] = {}
    for point in _fresh(asked, met, best):
        told = yield point
        if told is not None and told.seconds is not None:
            best[point] = told.seconds
            if len(best) > PARENTS:
                del best[max(best, key=lambda each: best[each])]


def _fresh(asked: Asked, met: set[Point], best: dict[Point, float]) -> Iterator[Point]:
    """Yield points that were not met before, until there are taken to be no more."""
    again = 0
    while again < AGAIN:
        first = () not in met
        point = () if first else _child(asked, met, best)
        again = again + 1 if point in met else 0
        if point not in met:
            met.add(point)
            yield point


def _child(asked: Asked, met: set[Point], best: dict[Point, float]) -> Point:
    numbers, parents = asked.numbers, sorted(best)
    if len(met) < FIRST or not parents:
        return asked.space.random(numbers, numbers.randint(1, 3))
    one = numbers.choice(parents)
    if len(parents) > 1 and numbers.random() < CROSSED:
        other = numbers.choice(parents)
        choices = dict(one)
        choices.update((axis, name) for axis, name in other if numbers.random() < 0.5)
        return asked.space.settled(point_of(choices))
    return asked.space.mutated(one, numbers, numbers.randint(1, 2))
