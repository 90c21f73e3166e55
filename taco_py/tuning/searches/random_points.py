"""Points at random: a few axes other than the usual, few axes as often as many."""

from __future__ import annotations

from taco_py.tuning.searches.search_protocol import Asked, Search
from taco_py.tuning.space.axis import Point

MOST_CHANGES = 5
AGAIN = 200
"""Points met before, one after the other, after which there are taken to be no more."""


def search(asked: Asked) -> Search:
    """Yield random points, each once."""
    met: set[Point] = set()
    again = 0
    while again < AGAIN:
        point = asked.space.random(asked.numbers, asked.numbers.randint(1, MOST_CHANGES))
        if point in met:
            again += 1
            continue
        again = 0
        met.add(point)
        yield point
