"""What a search is: a generator that yields points in turn, and is told what came of each.

    (told) = yield point        told.seconds, None where it was pruned, refused or failed

It ends where it has no more points. It uses no numbers but those that it is given, so that equal
seeds, spaces and times give equal points.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from random import Random

from codegen.records import dataclass
from taco_py.tuning.space.axis import Point
from taco_py.tuning.space.point_texts import Space


@dataclass(frozen=True, slots=True)
class Observation:
    """What came of a point.

    seconds  that its plan took, None where it was not measured to the end
    """

    point: Point
    seconds: float | None


Search = Generator[Point, Observation, None]


@dataclass(frozen=True, slots=True, eq=False)
class SearchContext:
    """What a search is given.

    numbers  its source of random choices
    price    the expected seconds of a point, infinite where it has no plan
    weights  what is known of features from earlier measurements, as logarithms of factors
    is_over  whether the time of the search is over, for those that price many points in between
    """

    space: Space
    numbers: Random
    price: Callable[[Point], float]
    weights: Mapping[str, float]
    is_over: Callable[[], bool] = lambda: False


Start = Callable[[SearchContext], Search]
