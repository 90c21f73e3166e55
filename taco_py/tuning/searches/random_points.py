"""Points at random: a few axes other than the usual, few axes as often as many."""

from __future__ import annotations

from taco_py.tuning.searches.search_protocol import Search, SearchContext
from taco_py.tuning.space.axis import Point

MOST_CHANGES = 5
MOST_REPEATS = 200
"""Points met before, one after the other, after which there are taken to be no more."""


def search(context: SearchContext) -> Search:
    """Yield random points, each once."""
    visited: set[Point] = set()
    repeats = 0
    while repeats < MOST_REPEATS:
        point = context.space.random(context.numbers, context.numbers.randint(1, MOST_CHANGES))
        if point in visited:
            repeats += 1
            continue
        repeats = 0
        visited.add(point)
        yield point
