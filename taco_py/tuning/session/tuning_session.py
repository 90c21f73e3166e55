"""A search for the fastest plan of a call: points in turn, each against the fastest so far.

    point → text → it cannot be faster, by its bound    pruned
                 → built, checked                   refused · wrong · crashed · timed out
                 → timed in turns with the best     slower, or the best from now on

In the end the best takes turns with the plan that is chosen without timing, which stays unless it
is clearly beaten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from math import inf
from random import Random
from time import monotonic
from typing import Protocol

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import (
    CompilerError,
    DeviceError,
    IndexOverflowError,
    InternalError,
    OutOfMemoryError,
    ScheduleError,
    StructureError,
    TacoError,
)
from taco_py.planner.ir.plan import Plan
from taco_py.tuning.searches.search_protocol import Observation, SearchContext, Start
from taco_py.tuning.space.axis import Point, label_of
from taco_py.tuning.space.point_texts import Space
from taco_py.tuning.store.tuning_record import OK, SLOWER

STALE = 400
"""Points without a plan of their own, one after the other, after which the search is over."""
MEMORY = (OutOfMemoryError.__name__, MemoryError.__name__)
"""The errors of a call for which there is too little memory."""
OF_CALLERS = (CompilerError, DeviceError, IndexOverflowError, StructureError)
"""Other errors that calls raise for what their operands or their machine are."""
INTERRUPTED = "it was interrupted"
"""Why a search ended that Ctrl-C has ended."""

Bound = Callable[[Plan], float | None]
"""The least seconds that a plan can take, None where that is not known."""


@dataclass(frozen=True, slots=True)
class Timed:
    """What came of a plan on the bench.

    seconds, spread, trials  of its own times
    rival    seconds of the plan that it took turns with
    result   "ok" where it is clearly faster than that, or there is none; "slower", "wrong", …
    raised   the class of what it raised, "" where it raised nothing
    """

    result: str
    seconds: float | None = None
    spread: float = 0.0
    trials: int = 1
    rival: float | None = None
    note: str = ""
    raised: str = ""


def why_not(timed: Timed) -> TacoError:
    """Return the error of a call whose plan without timing does not run.

    What its caller can mend is what calls raise themselves; all else is a fault of ours.
    """
    if timed.raised in MEMORY:
        return OutOfMemoryError(timed.note or "Expected memory for the call, found too little")
    for error in OF_CALLERS:
        if timed.raised == error.__name__:
            return error(timed.note)
    if timed.result == "timed out":
        return ScheduleError(
            f"Expected a call that ends in time to be tuned, found {timed.note}",
            hint="tune it on smaller operands: calls of near sizes find what was kept",
        )
    return InternalError(f"Expected auto's plan to run, found {timed.result}: {timed.note}")


def with_note(timed: Timed, note: str) -> Timed:
    """Return the result of a plan, with a note where it has none of its own."""
    return replace(timed, note=timed.note or note)


class Bench(Protocol):
    """Where plans are run."""

    def time(self, text: str) -> Timed:
        """Build a plan, check it, and time it by itself."""

    def race(self, text: str, rival: str, last: bool) -> Timed:
        """Build a plan, check it, and time it in turns with another one.

        last  whether nobody looks again
        """


@dataclass(frozen=True, slots=True)
class Attempt:
    """A plan that was tried, and what came of it.

    rival  the text of the plan that it took turns with, "" for none
    last   whether that was the last comparison with the plan that is chosen without timing
    share  of the time of that plan, by way of the plans that took turns in between
    """

    point: Point
    label: str
    text: str
    timed: Timed
    rival: str = ""
    last: bool = False
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Limits:
    """When a search ends: trials are plans that were built, wrong ones among them."""

    trials: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a search has found.

    usual, best   the plan that is chosen without timing, and the fastest; the same where none is
                  clearly faster
    counts        how many were ok, slower, wrong, crashed, timed out, refused, pruned, alike
    reason        of the end
    """

    usual: Attempt
    best: Attempt
    usual_seconds: float
    best_seconds: float
    counts: dict[str, int]
    trials: int
    seconds: float
    reason: str


@dataclass(slots=True, eq=False)
class Session:
    """One search while it runs.

    watch  is told each attempt, and how many trials and seconds are over
    begin  when its seconds began, None for when it runs
    """

    space: Space
    bench: Bench
    price: Callable[[Point], float]
    limits: Limits
    bound: Bound | None = None
    watch: Callable[[Attempt, int, float], None] | None = None
    clock: Callable[[], float] = monotonic
    counts: Counter[str] = field(default_factory=Counter)
    trials: int = 0
    begin: float | None = None
    visited: set[str] = field(default_factory=set)

    def run(self, start: Start, seed: int, weights: Mapping[str, float]) -> Outcome:
        """Search until a limit is reached, nothing is left, or it is interrupted."""
        if self.begin is None:
            self.begin = self.clock()
        usual = self._first()
        best = usual
        context = SearchContext(
            self.space, Random(seed), self.price, weights, lambda: self.spent >= self.limits.seconds
        )
        search, stale, reason = start(context), 0, "all points were tried"
        try:
            point = next(search, None)
            while point is not None:
                if (limit_reason := self._over(stale)) is not None:
                    reason = limit_reason
                    break
                attempt = usual if point == () else self._attempt(point, best)
                stale = stale + 1 if attempt is None else 0
                if attempt is not None and attempt.timed.result == OK and attempt is not usual:
                    best = attempt
                point = _sent(search, Observation(point, _seconds_of(attempt, usual)))
        except KeyboardInterrupt:
            reason = INTERRUPTED
        return self._ended(usual, best, reason)

    @property
    def spent(self) -> float:
        """Return the seconds that are over."""
        return 0.0 if self.begin is None else self.clock() - self.begin

    def _over(self, stale: int) -> str | None:
        """Say why the search ends, None while it goes on."""
        if self.trials >= self.limits.trials:
            return f"{self.limits.trials} trials were made"
        if self.spent >= self.limits.seconds:
            return f"{self.limits.seconds:g} s were over"
        return "no other plans were found" if stale >= STALE else None

    def _first(self) -> Attempt:
        """Return the plan that is chosen without timing, which all others are measured by."""
        text = self.space.text(())
        self.visited.add(self.space.identity(self.space.plan(())))
        timed = self.bench.time(text)
        if timed.seconds is None:
            raise why_not(timed)
        attempt = Attempt((), label_of(()), text, timed)
        self._note(attempt)
        return attempt

    def _attempt(self, point: Point, best: Attempt) -> Attempt | None:
        """Try a point; None where it has no plan that was not tried, or one that cannot be best."""
        try:
            plan = self.space.plan(point)
            text = self.space.text(point)
        except ScheduleError:
            self.counts["refused"] += 1
            return None
        identity = self.space.identity(plan)
        if identity in self.visited:
            self.counts["alike"] += 1
            return None
        self.visited.add(identity)
        least = None if self.bound is None else self.bound(plan)
        if least is not None and least >= (best.timed.seconds or inf):
            self.counts["pruned"] += 1
            return None
        timed = self.bench.race(text, best.text, False)
        label = label_of(point, self.space.features(point))
        share = best.share
        if timed.seconds and timed.rival:
            share *= timed.seconds / timed.rival
        attempt = Attempt(point, label, text, timed, best.text, share=share)
        self._note(attempt)
        return attempt

    def _note(self, attempt: Attempt) -> None:
        self.counts[attempt.timed.result] += 1
        self.trials += attempt.timed.result != "refused"
        if self.watch is not None:
            self.watch(attempt, self.trials, self.spent)

    def _ended(self, usual: Attempt, best: Attempt, reason: str) -> Outcome:
        """Return the outcome; auto's plan unless the best beats it clearly once more."""
        seconds, usual_seconds = best.timed.seconds, usual.timed.seconds
        if best is not usual:
            timed = self.bench.race(best.text, usual.text, True)
            seconds, usual_seconds = timed.seconds, timed.rival or usual_seconds
            last = replace(best, timed=timed, rival=usual.text, last=True)
            if self.watch is not None:
                self.watch(last, self.trials, self.spent)
            best = last if timed.result == OK else usual
        if best is usual:
            seconds = usual_seconds
        took = self.spent
        least = seconds if seconds is not None else 0.0
        other = usual_seconds if usual_seconds is not None else least
        return Outcome(usual, best, other, least, dict(self.counts), self.trials, took, reason)


def _sent(search: object, observation: Observation) -> Point | None:
    """Return the next point of a search, None where it has no more."""
    try:
        point: Point = search.send(observation)  # type: ignore[attr-defined]
    except StopIteration:
        return None
    return point


def _seconds_of(attempt: Attempt | None, usual: Attempt) -> float | None:
    """Return the seconds of a measured plan, even a slower one, as if all were run together."""
    if attempt is None or attempt.timed.result not in (OK, SLOWER):
        return None
    return attempt.share * (usual.timed.seconds or 0.0)
