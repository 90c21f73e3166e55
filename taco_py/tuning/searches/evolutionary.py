"""Points that are bred: the fastest so far, changed at an axis or two, or two of them crossed.

population   the fastest PARENTS of all that were measured
a child      mutation of one of them, or options of two of them at random
"""

from __future__ import annotations

from collections.abc import Iterator

from taco_py.tuning.searches.search_protocol import Search, SearchContext
from taco_py.tuning.space.axis import Point, point_of

PARENTS = 8
FIRST = 12
"""Random points that are measured before any is bred."""
CROSSED = 0.3
"""The share of children of two."""
MOST_REPEATS = 200


def search(context: SearchContext) -> Search:
    """Yield random points, then children of the fastest."""
    visited: set[Point] = set()
    best: dict[Point, float] = {}
    for point in _fresh(context, visited, best):
        observation = yield point
        if observation is not None and observation.seconds is not None:
            best[point] = observation.seconds
            if len(best) > PARENTS:
                del best[max(best, key=lambda candidate: best[candidate])]


def _fresh(
    context: SearchContext, visited: set[Point], best: dict[Point, float]
) -> Iterator[Point]:
    """Yield points that were not met before, until there are taken to be no more."""
    repeats = 0
    while repeats < MOST_REPEATS:
        first = () not in visited
        point = () if first else _child(context, visited, best)
        repeats = repeats + 1 if point in visited else 0
        if point not in visited:
            visited.add(point)
            yield point


def _child(context: SearchContext, visited: set[Point], best: dict[Point, float]) -> Point:
    numbers, parents = context.numbers, sorted(best)
    if len(visited) < FIRST or not parents:
        return context.space.random(numbers, numbers.randint(1, 3))
    one = numbers.choice(parents)
    if len(parents) > 1 and numbers.random() < CROSSED:
        other = numbers.choice(parents)
        choices = dict(one)
        choices.update((axis, name) for axis, name in other if numbers.random() < 0.5)
        return context.space.normalize(point_of(choices))
    return context.space.mutated(one, numbers, numbers.randint(1, 2))
