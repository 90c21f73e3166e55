"""Time contenders in turns, and say what came out as records.

A shared machine slows down for minutes at a time, so contenders never run one after the other: each
round runs all of them, in an order that rotates, and a figure is the minimum over rounds (the
median is shown beside it: when they are far apart the machine was busy).
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

Compute = Callable[[], Any]
SECONDS = 3.0  # of repetitions for each input
ROUNDS = 5  # at least, unless they take far more than SECONDS
OURS = "tacopy"
REFERENCE = "scipy"
TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Record:
    """What one contender took on one input. `unit` says of what: ms, us, MB."""

    question: str
    input: str
    contender: str
    unit: str
    minimum: float
    median: float
    repetitions: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Contest:
    """One input and the ways to compute the same result on it; the first is the reference."""

    input: str
    contenders: Mapping[str, Compute]


def records(question: str, contests: Iterator[Contest]) -> Iterator[Record]:
    """Check each contender against the first, then time all in turns."""
    for contest in contests:
        notes = check(contest)
        times = in_turns(contest.contenders)
        for name, seconds in times.items():
            yield record(
                question, contest.input, name, [1e3 * t for t in seconds], "ms", notes[name]
            )


def record(
    question: str, name: str, contender: str, samples: Sequence[float], unit: str, note: str = ""
) -> Record:
    median = statistics.median(samples)
    return Record(question, name, contender, unit, min(samples), median, len(samples), note)


@contextmanager
def in_threads(number: int) -> Iterator[None]:
    """Let our kernels use so many threads; without this they use one, as `__init__.py` says."""
    import taco_py as tp

    tp.set_threads(number)
    try:
        yield
    finally:
        tp.set_threads(None)


def check(contest: Contest) -> dict[str, str]:
    """A note for each contender: empty, or that its result differs from the reference's."""
    from taco_py.tool.demo import compare

    (reference, compute), *others = contest.contenders.items()
    expected = compute()
    notes = {reference: ""}
    for name, other in others:
        difference, largest = compare(other(), expected)
        agrees = difference <= TOLERANCE * max(largest, 1.0)
        notes[name] = "" if agrees else f"WRONG by {difference:.1e}"
    return notes


def in_turns(contenders: Mapping[str, Compute], seconds: float = SECONDS) -> dict[str, list[float]]:
    """Seconds of each repetition. The call before each timed one is not timed: it warms the caches
    for this contender instead of the one before.

    seconds  that all repetitions may take together
    """
    times: dict[str, list[float]] = {name: [] for name in contenders}
    names = list(contenders)
    started = time.perf_counter()
    round_number = 0
    while round_number < ROUNDS or time.perf_counter() - started < seconds:
        for name in names[round_number % len(names) :] + names[: round_number % len(names)]:
            contenders[name]()
            times[name].append(once(contenders[name]))
        round_number += 1
        if round_number >= 2 and time.perf_counter() - started > 8 * seconds:
            break
    return times


def once(compute: Compute) -> float:
    gc.disable()
    try:
        start = time.perf_counter()
        result = compute()
        seconds = time.perf_counter() - start
    finally:
        gc.enable()
    del result
    return seconds
