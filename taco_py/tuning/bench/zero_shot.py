"""The plan of a call that nobody has tuned: the best of its space by price, within a time.

    analytic price of a plan (`space.plan_price`)  ×  what its options were worth in other calls,
                                                      where the store has enough trials of these
    or the learned price that the call names

Nothing is run. The plan that is chosen without this stays unless another one is expected to be
clearly faster.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from random import Random
from time import monotonic

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.running.plan_texts.fitted_plan import can_be_made
from taco_py.tuning.bench.call_space import CallSpace
from taco_py.tuning.searches.learned_factors import corrected
from taco_py.tuning.searches.store_lessons import Lessons, lessons_in
from taco_py.tuning.space.axis import Point, label_of
from taco_py.tuning.store.store_file import StoreFile

SECONDS = 1.0
"""What the search may take where no schedule_budget says it."""
LEAST_GAIN = 1.1
"""How many times faster than auto's plan another one has to be expected to be."""
STEPS = 4
"""Axes that are changed, one after the other."""


@dataclass(frozen=True, slots=True)
class ZeroShot:
    """What was chosen by price.

    label     what it is called in a store
    expected  seconds of it
    lines     for explain()
    """

    label: str
    expected: float
    lines: tuple[str, ...]


def zero_shot(call: CallSpace, file: StoreFile | None) -> tuple[str, ZeroShot]:
    """Return the text of the best plan by price, "" for the one that is chosen without timing."""
    seconds = (
        SECONDS
        if call.space.settings.schedule_budget is None
        else min(SECONDS, call.space.settings.schedule_budget)
    )
    lessons = lessons_in(file) if call.seconds.model is None else Lessons({}, 0)
    begin = monotonic()
    point, priced = _walk(call, lessons, begin + seconds)
    usual = _expected(call, lessons, ())
    expected = _expected(call, lessons, point)
    where = f"{priced} plans by price, {lessons.count} trials of others to learn from"
    if point == () or expected * LEAST_GAIN > usual or not _can_make(call, point):
        line = f"tuned     as auto plans it: no record, and none of {where} promises more"
        return "", ZeroShot(_label(()), usual, (line,))
    gain = f"{usual / expected:.2g} times as fast as auto's plan is expected to be"
    lines = (f"tuned     {_label(point)}", f"  expected     {gain}; {where}")
    return call.space.text(point), ZeroShot(_label(point), expected, lines)


def _label(point: Point) -> str:
    return f"zero-shot: {label_of(point)}"


def _expected(call: CallSpace, lessons: Lessons, point: Point) -> float:
    """Return the corrected price of a point."""
    return corrected(call.price(point), call.space.features(point), lessons.weights)


def _walk(call: CallSpace, lessons: Lessons, until: float) -> tuple[Point, int]:
    """Return the best point that is reached by one axis after the other, and how many were
    priced."""
    best: Point = ()
    least, priced = _expected(call, lessons, ()), 1
    for _ in range(STEPS):
        better: Point | None = None
        for point in _shuffled(call, best):
            if monotonic() > until:
                return best if better is None else better, priced
            priced += 1
            expected = _expected(call, lessons, point)
            if expected < least and expected < inf:
                better, least = point, expected
        if better is None:
            return best, priced
        best = better
    return best, priced


def _shuffled(call: CallSpace, point: Point) -> Iterator[Point]:
    """Yield the neighbours of a point in an order that leaves no axis for the end."""
    neighbours = list(call.space.neighbours(point))
    Random(0).shuffle(neighbours)
    yield from neighbours


def _can_make(call: CallSpace, point: Point) -> bool:
    """Tell whether a point has a plan whose kernels can be made."""
    try:
        return can_be_made(call.space.plan(point), call.space.settings.target)
    except ScheduleError:
        return False
