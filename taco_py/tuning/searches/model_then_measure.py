"""The best points by price are measured, and prices are corrected by what that shows.

    candidates   neighbours of the plan as it is and of the fastest so far, and random points
    next         the one of least corrected price that was not measured
    correction   a factor for each option, refitted after each measurement (`learned_factors`)

(Beck et al. 2022, ALCOP, rank by a model before measuring, in this form.)
"""

from __future__ import annotations

from math import inf

from taco_py.tuning.searches.learned_factors import Example, corrected, ratio, weights_of
from taco_py.tuning.searches.search_protocol import Search, SearchContext
from taco_py.tuning.space.axis import Point

EXPLORED = 5
"""One of so many points is taken at random among candidates."""
TIE = 1e-3
RANDOM = 16
"""Random candidates that come with each fastest point."""


def search(context: SearchContext) -> Search:
    """Yield the candidate of least corrected price, time and again."""
    model = Ranking(context)
    usual: float | None = None
    best = inf
    point: Point | None = ()
    while point is not None:
        observation = yield point
        seconds = None if observation is None else observation.seconds
        if seconds is not None:
            usual = seconds if usual is None else usual
            model.learn(point, seconds, usual)
            if seconds < best:
                best = seconds
                model.add_neighbours(point)
        elif not model.candidates:
            model.add_neighbours(())
        point = model.next()


class Ranking:
    """Candidates with their prices, and what is learned of their features."""

    def __init__(self, context: SearchContext) -> None:
        self.context = context
        self.candidates: dict[Point, float] = {}
        self.visited: set[Point] = {()}
        self.examples: list[Example] = []
        self.weights = dict(context.weights)
        self.count = 0

    def add_neighbours(self, point: Point) -> None:
        """Take the neighbours of a point among the candidates, and some points at random."""
        space, numbers = self.context.space, self.context.numbers
        points = list(space.neighbours(point))
        points += [space.mutated(point, numbers, numbers.randint(2, 3)) for _ in range(RANDOM)]
        for neighbour in points:
            if neighbour not in self.visited and neighbour not in self.candidates:
                price = self.context.price(neighbour)
                if price < inf:  # equal prices are told apart by chance, not by their names
                    self.candidates[neighbour] = price * (1.0 + TIE * numbers.random())

    def learn(self, point: Point, seconds: float, usual: float) -> None:
        """Refit the factors with the seconds of a point."""
        if point:
            features = self.context.space.features(point)
            priced = ratio(self.context.price(point), self.context.price(()))
            self.examples.append(Example(features, priced, ratio(seconds, usual)))
            self.weights = weights_of(self.examples, self.context.weights)

    def next(self) -> Point | None:
        """Return the candidate that promises most, now and then another one."""
        if not self.candidates:
            return None
        self.count += 1
        if self.count % EXPLORED == 0:
            point = self.context.numbers.choice(sorted(self.candidates))
        else:
            point = min(sorted(self.candidates), key=self.expected)
        del self.candidates[point]
        self.visited.add(point)
        return point

    def expected(self, point: Point) -> float:
        """Return the corrected price of a candidate."""
        return corrected(self.candidates[point], self.context.space.features(point), self.weights)
