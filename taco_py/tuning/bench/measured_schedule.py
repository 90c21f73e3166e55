"""`schedule="measure"`: a search among the planner's options, timed on the first call's operands.

points   one option of one axis each, the least expected time first (`space.planner_options`)
bench    this process, where plans run as calls run them
kept     beside the kernels, for later calls and processes (`session.timing_store`)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from functools import partial
from math import inf
from time import monotonic

from codegen.records import dataclass
from taco_py.arguments.operands import facts
from taco_py.arguments.options import CallOptions
from taco_py.calls.call.computation import Computation
from taco_py.calls.call.prepare import check_computation, prepare_computation, start
from taco_py.data.kernels import KERNELS
from taco_py.language.diagnostics.errors import ScheduleError, TacoError
from taco_py.running.execute.run import run_all
from taco_py.tuning.bench.bench_here import PATIENCE, in_words, timed_of
from taco_py.tuning.bench.call_space import CallSpace, space_of
from taco_py.tuning.bench.plan_bench import later_call
from taco_py.tuning.measure.turns import alone, in_turns
from taco_py.tuning.searches.search_protocol import Search, SearchContext
from taco_py.tuning.session.timing_store import (
    TimedChoice,
    facts_of,
    keep,
    note_key,
    recalled,
)
from taco_py.tuning.session.tuning_session import Attempt, Limits, Session, Timed
from taco_py.tuning.space.axis import Point
from taco_py.tuning.store.tuning_record import OK

TRIALS = 12
"""Plans that are timed at most."""
REPEATS = 3
SLOWER, LEAST = 10.0, 1e-3
"""What is expected to take so many times longer than the plan itself, and than so many seconds, is
not tried."""
SECONDS, TIMES = 5.0, 20.0
"""Nothing new is tried after so many seconds, compiling included, and so many times what the plan
itself takes."""
PLAIN = "as it is chosen without timing"


@dataclass(frozen=True, slots=True)
class Measured:
    """The settings that are fastest on these operands, and what they were compared with.

    is_recalled  whether an earlier process timed them
    """

    settings: CallOptions
    label: str
    timings: tuple[TimedChoice, ...]
    is_recalled: bool = False


def measured(computation: Computation) -> Measured:
    """Return the fastest settings for these operands.

    They are remembered for operands with the same facts, in this process and beside the kernels on
    disk. What other operands were timed for is raced against the usual plan on these, and all are
    timed anew where it does not win here too.
    """
    plain = computation.with_options(replace(computation.options, measure=False))
    checked, options = check_computation(plain)
    key = ("measured", *plain.identity, options, facts(checked.operands, options.counts))

    def search() -> Measured:
        attempt, call = attempts_of(plain), space_of(plain)
        points, note = points_of(call), note_key(key, checked.operands)
        operand_facts, times = facts_of(checked.operands), recalled(note, points)
        alike = times is None or times.are_of(operand_facts)
        if times is not None and not alike and not pays(call, points[times.label], attempt):
            times = None
        if times is None:
            label, timings = measure(call, points, attempt)
            keep(note, label, timings, operand_facts)
        else:
            label, timings = times.label, times.timings
        settings = call.space.settings_of(points[label])
        return Measured(settings, label, timings, is_recalled=times is not None)

    return KERNELS.recall(key, search)


def attempts_of(computation: Computation) -> Callable[[CallOptions], None]:
    """Return a function that carries a call out with options: planned once, then as later calls
    are."""
    calls: dict[CallOptions, Callable[[], object]] = {}

    def attempt(choice: CallOptions) -> None:
        if choice in calls:
            calls[choice]()
            return
        prepared = prepare_computation(computation.with_options(choice))
        execution = start(prepared, choice, None)
        run_all(prepared.plan, execution)
        calls[choice] = later_call(computation, prepared, choice, execution.threads)

    return attempt


def pays(call: CallSpace, point: Point, attempt: Callable[[CallOptions], None]) -> bool:
    """Tell whether a point is no slower on these operands than the plan without timing."""
    if point == ():
        return True
    mine, usual = (partial(attempt, call.space.settings_of(p)) for p in (point, ()))
    try:
        mine()
        usual()
    except TacoError:
        return False
    turns = in_turns(mine, usual, limit=PATIENCE)
    return turns.other is not None and turns.mine.seconds <= turns.other.seconds


def points_of(call: CallSpace) -> dict[str, Point]:
    """Return the points with one option that has words, by these.

    There are none where the user said which operands are contracted in turn.
    """
    settings = call.space.settings
    axes = call.space.planner if settings.path is None and not settings.paths else ()
    options = ((axis.name, option) for axis in axes for option in axis.options)
    points = {option.words: ((axis, option.name),) for axis, option in options if option.words}
    return {PLAIN: (), **points}


def measure(
    call: CallSpace, points: Mapping[str, Point], attempt: Callable[[CallOptions], None]
) -> tuple[str, tuple[TimedChoice, ...]]:
    """Return the label of the fastest point, and the times of points or why they have none."""
    labels = {point: label for label, point in points.items()}
    return MeasuredSearch(call, labels, CallBench(attempt)).run()


# ---------------------------------------------------------------- timing


@dataclass(frozen=True, slots=True, eq=False)
class CallBench:
    """A bench whose plans run in this process, as calls run them.

    run       carries the call out with settings
    settings  by the text of their plan
    """

    run: Callable[[CallOptions], None]
    settings: dict[str, CallOptions] = field(default_factory=dict)

    def time(self, text: str) -> Timed:
        """Time a plan by itself. Raises what the call raises."""
        call = partial(self.run, self.settings[text])
        call()
        times = alone(call, REPEATS)
        return Timed(OK, times.seconds, times.spread, times.count)

    def race(self, text: str, rival: str, last: bool) -> Timed:
        """Time a plan in turns with another one."""
        call, other = (partial(self.run, self.settings[plan]) for plan in (text, rival))

        def turns() -> Timed:
            call()
            return timed_of(in_turns(call, other, limit=PATIENCE))

        return in_words(turns)


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredSearch:
    """A search among points that notes their times, and why some have none.

    labels  of the points
    """

    call: CallSpace
    labels: Mapping[Point, str]
    bench: CallBench
    times: dict[str, float] = field(default_factory=dict)
    untimed: dict[str, str] = field(default_factory=dict)

    def run(self) -> tuple[str, tuple[TimedChoice, ...]]:
        """Return the label of the fastest point, and the times of points or why they have none."""
        space = self.call.space
        self.bench.settings[space.text(())] = space.settings
        limits = Limits(TRIALS, inf)
        session = Session(space, self.bench, self.call.price, limits, watch=self.watch)
        best = session.run(self.search, 0, {}).best
        timed = (TimedChoice(label, seconds) for label, seconds in self.times.items())
        passed = (TimedChoice(label, None, reason) for label, reason in self.untimed.items())
        return self.labels[best.point], (*timed, *passed)

    def search(self, _: SearchContext) -> Search:
        """Yield the points that may pay, the least expected time first, until time is over."""
        begin, usual = monotonic(), (yield ()).seconds or 0.0
        seconds, slowest = max(SECONDS, TIMES * usual), SLOWER * max(LEAST, usual)
        prices = self.prices(begin + seconds)
        for point, price in prices.items():
            if price > slowest:
                self.untimed[self.labels[point]] = f"expected to take {price:.2g} s"
        for point in sorted(prices, key=lambda point: prices[point]):
            label = self.labels[point]
            if label not in self.untimed and monotonic() - begin > seconds:
                over = f"the {seconds:.2g} s for trying others were over, for what follows too"
                self.untimed[label] = over
                return
            if label not in self.untimed:
                yield point

    def prices(self, until: float) -> dict[Point, float]:
        """Return the expected seconds of points, as many as are planned in time."""
        space, prices = self.call.space, dict[Point, float]()
        for point, label in self.labels.items():
            if monotonic() > until:
                break
            try:
                plan, text = space.plan(point), space.text(point)
            except ScheduleError as error:
                self.untimed[label] = f"refused: {error.message}"
                continue
            if text not in self.bench.settings:
                self.bench.settings[text] = space.settings_of(point)
                prices[point] = self.call.priced.plan(plan)
        return prices

    def watch(self, attempt: Attempt, trials: int, seconds: float) -> None:
        """Note the time of a point, or why it has none."""
        label, timed = self.labels[attempt.point], attempt.timed
        if timed.seconds is None:
            self.untimed[label] = f"{timed.result}: {timed.note}"
        elif not attempt.last:
            self.times[label] = attempt.share * self.times.get(PLAIN, timed.seconds)


def lines_of(times: Measured) -> Iterator[str]:
    """Yield a line for each plan with its time, the fastest first, then for plans without one."""
    where = "in an earlier process, remembered" if times.is_recalled else "in this process"
    yield f"measured  {times.label}; {where}"
    timed = sorted((t.seconds, t.label) for t in times.timings if t.seconds is not None)
    for seconds, label in timed:
        mark = ", taken" if label == times.label else ""
        yield f"  {seconds * 1e3:8.3f} ms  {label}{mark}"
    for plan in times.timings:
        if plan.seconds is None:
            yield f"  {'not timed':>11}  {plan.label}: {plan.reason}"
