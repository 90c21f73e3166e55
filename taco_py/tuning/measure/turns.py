"""Two functions timed in turns: A B B A A B …, each time of many calls where one is short.

What other programs take falls on both alike; the least of the times is the one that others
disturbed least, and (longest - least) / least says how much they did.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, inf
from time import perf_counter

from codegen.records import dataclass
from taco_py.tuning.measure.sequential_test import ERROR, Verdict, fewest_pairs, verdict

Call = Callable[[], object]
LEAST_SECONDS = 2e-4
"""What one time takes at least: shorter calls are repeated within it."""
MOST_REPEATS = 1000
ROUNDS = 12
"""Pairs of times at most, where the test does not end before."""


@dataclass(frozen=True, slots=True)
class Times:
    """The times of one function.

    seconds  the least, of one call
    spread   (longest - least) / least
    count    how many times were taken
    """

    seconds: float
    spread: float
    count: int


@dataclass(frozen=True, slots=True)
class Turns:
    """What two functions took in turns, and which is faster."""

    mine: Times
    other: Times | None
    verdict: Verdict


def times_of(seconds: list[float]) -> Times:
    """Return the summary of times."""
    least = min(seconds)
    return Times(least, (max(seconds) - least) / least if least > 0 else 0.0, len(seconds))


def alone(call: Call, rounds: int = ROUNDS, limit: float = inf) -> Times:
    """Return the times of one function that ran before, for so many seconds at most."""
    repeats = _repeats(call)
    begin, seconds = perf_counter(), list[float]()
    while len(seconds) < rounds and (len(seconds) < 2 or perf_counter() - begin < limit):
        seconds.append(_seconds(call, repeats))
    return times_of(seconds)


def in_turns(
    mine: Call,
    other: Call,
    rounds: int = ROUNDS,
    limit: float = inf,
    margin: float = 0.0,
    error: float = ERROR,
) -> Turns:
    """Return the times of two functions that ran before, until it is clear which is faster.

    limit   seconds after which no pair is begun, once there are enough for a verdict
    margin, error  as `verdict` has them

    What is faster in most pairs has to be so in the least times too, else it is open.
    """
    repeats = 1 if _is_hopeless(mine, other) else _repeats(other)
    begin, pairs = perf_counter(), list[tuple[float, float]]()
    outcome = Verdict.OPEN
    while outcome is Verdict.OPEN and len(pairs) < rounds:
        pairs.append(_pair(mine, other, repeats, len(pairs) % 2 == 1))
        outcome = verdict(pairs, margin, error)
        if len(pairs) >= fewest_pairs(error) and perf_counter() - begin > limit:
            break
    if outcome is Verdict.FASTER and min(a for a, _ in pairs) >= (1 - margin) * min(
        b for _, b in pairs
    ):
        outcome = Verdict.OPEN
    return Turns(times_of([a for a, _ in pairs]), times_of([b for _, b in pairs]), outcome)


def _is_hopeless(mine: Call, other: Call) -> bool:
    """Tell whether one call of the first takes so much longer that no more are needed."""
    return _seconds(mine, 1) > 4 * max(LEAST_SECONDS, _seconds(other, 1))


def _pair(mine: Call, other: Call, repeats: int, reverse: bool) -> tuple[float, float]:
    """Return the times of both, one after the other."""
    if reverse:
        late = _seconds(other, repeats)
        return _seconds(mine, repeats), late
    early = _seconds(mine, repeats)
    return early, _seconds(other, repeats)


def _repeats(call: Call) -> int:
    """Count how many calls one time is of."""
    seconds = _seconds(call, 1)
    return max(1, min(MOST_REPEATS, ceil(LEAST_SECONDS / max(seconds, 1e-9))))


def _seconds(call: Call, repeats: int) -> float:
    begin = perf_counter()
    for _ in range(repeats):
        call()
    return (perf_counter() - begin) / repeats
