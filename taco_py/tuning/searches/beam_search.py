"""The best points of each round are gone on from: by price, or by what they took.

    round        the neighbours of the WIDTH best points so far, at first of the plan as it is
    by price     nothing runs until all rounds are over; then the cheapest, one after the other
    by time      each neighbour runs, and the fastest are gone on from

(Baghdadi et al. 2021 search so with a learned price, and compare with execution.)
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from taco_py.tuning.searches.search_protocol import Observation, Search, SearchContext
from taco_py.tuning.space.axis import Point

WIDTH = 3
"""Points that a round goes on from."""
ROUNDS = 3
"""Options that are changed, one after the other."""
TIE = 1e-3


def search_by_price(context: SearchContext) -> Search:
    """Yield the plan as it is, then all points of the beam, the cheapest first."""
    prices: dict[Point, float] = {(): context.price(())}
    front: list[Point] = [()]
    yield ()
    for _ in range(ROUNDS):
        fresh = _neighbours(context, front, prices)
        for point in fresh:  # equal prices are told apart by chance, not by their names
            prices[point] = context.price(point) * (1.0 + TIE * context.numbers.random())
            if context.is_over():
                return
        if not fresh:
            break
        front = _best(prices)
    for point in sorted(prices, key=lambda point: (prices[point], point)):
        if point and prices[point] < inf:
            yield point


def search_by_time(context: SearchContext) -> Search:
    """Yield the neighbours of the fastest points, round after round."""
    seconds: dict[Point, float] = {}
    front: list[Point] = [()]
    seconds[()] = _seconds((yield ()))
    while front:
        fresh = _neighbours(context, front, seconds)
        context.numbers.shuffle(fresh)
        for point in fresh:
            seconds[point] = _seconds((yield point))
        front = _best(seconds) if fresh else []


def _seconds(observation: Observation) -> float:
    return inf if observation.seconds is None else observation.seconds


def _neighbours(
    context: SearchContext, front: list[Point], visited: Mapping[Point, float]
) -> list[Point]:
    """Return the neighbours of some points that were not visited."""
    near = (neighbour for point in front for neighbour in context.space.neighbours(point))
    return [point for point in dict.fromkeys(near) if point not in visited]


def _best(values: Mapping[Point, float]) -> list[Point]:
    """Return the points of least value."""
    return sorted(values, key=lambda point: (values[point], point))[:WIDTH]
