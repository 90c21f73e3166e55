"""The best points by price are measured, and prices are corrected by what that shows.

    candidates   neighbours of the plan as it is and of the fastest so far, and random points
    next         the one of least corrected price that was not measured
    correction   a factor for each option, refitted after each measurement (`learned_factors`)

(Beck et al. 2022, ALCOP, rank by a model before measuring, in this form.)
"""

from __future__ import annotations

from math import inf

from taco_py.tuning.searches.learned_factors import Example, corrected, ratio, weights_of
from taco_py.tuning.searches.search_protocol import Asked, Search
from taco_py.tuning.space.axis import Point

EXPLORED = 5
"""One of so many points is taken at random among candidates."""
TIE = 1e-3
RANDOM = 16
"""Random candidates that come with each fastest point."""


def search(asked: Asked) -> Search:
    """Yield the candidate of least corrected price, time and again."""
    model = Ranking(asked)
    usual: float | None = None
    best = inf
    point: Point | None = ()
    while point is not None:
        told = yield point
        seconds = None if told is None else told.seconds
        if seconds is not None:
            usual = seconds if usual is None else usual
            model.learn(point, seconds, usual)
            if seconds < best:
                best = seconds
                model.around(point)
        elif not model.candidates:
            model.around(())
        point = model.next()


class Ranking:
    """Candidates with their prices, and what is learned of their features."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.candidates: dict[Point, float] = {}
        self.met: set[Point] = {()}
        self.examples: list[Example] = []
        self.weights = dict(asked.weights)
        self.count = 0

    def around(self, point: Point) -> None:
        """Take the neighbours of a point among the candidates, and some points at random."""
        space, numbers = self.asked.space, self.asked.numbers
        found = list(space.neighbours(point))
        found += [space.mutated(point, numbers, numbers.randint(2, 3)) for _ in range(RANDOM)]
        for each in found:
            if each not in self.met and each not in self.candidates:
                price = self.asked.price(each)
                if price < inf:  # equal prices are told apart by chance, not by their names
                    self.candidates[each] = price * (1.0 + TIE * numbers.random())

    def learn(self, point: Point, seconds: float, usual: float) -> None:
        """Refit the factors with what a point took."""
        if point:
            features = self.asked.space.features(point)
            priced = ratio(self.asked.price(point), self.asked.price(()))
            self.examples.append(Example(features, priced, ratio(seconds, usual)))
            self.weights = weights_of(self.examples, self.asked.weights)

    def next(self) -> Point | None:
        """Return the candidate that promises most, now and then another one."""
        if not self.candidates:
            return None
        self.count += 1
        if self.count % EXPLORED == 0:
            point = self.asked.numbers.choice(sorted(self.candidates))
        else:
            point = min(sorted(self.candidates), key=self.expected)
        del self.candidates[point]
        self.met.add(point)
        return point

    def expected(self, point: Point) -> float:
        """Return the corrected price of a candidate."""
        return corrected(self.candidates[point], self.asked.space.features(point), self.weights)
