"""A call tuned: plans are searched for, timed on its operands, and kept in a store.

text, operands, options  →  key, space  →  search on a bench  →  records in the store  →  best plan
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from codegen.records import dataclass
from taco_py.call.over_semirings import over_numbers, over_of
from taco_py.call.prepare import statements_of
from taco_py.call.texts.in_blocks import concerns
from taco_py.call.tuning.bench_here import BenchHere
from taco_py.call.tuning.call_space import CallSpace, space_of
from taco_py.call.tuning.plan_bench import PlanBench
from taco_py.call.tuning.text_key import KEYED, key_of_call, refuse_unkeyed
from taco_py.notation.nodes import Assignment
from taco_py.tune.searches.search_table import search_of
from taco_py.tune.space.axis import NO_OPTIONS
from taco_py.tune.store.tuning_record import OK, SLOWER, TuningKey, TuningRecord
from taco_py.tune.tuning_session import Attempt, Bench, Bound, Limits, Outcome, Session
from taco_py.values.settings import Settings, settings_of

Watch = Callable[[Attempt, int, float], None]
"""Is told each plan that was tried, how many were, and the seconds that are over."""


class Records(Protocol):
    """Where records are kept: a `TuningStore`."""

    def add(self, *records: TuningRecord) -> int:
        """Keep records."""


@dataclass(frozen=True, slots=True, eq=False)
class Tuned:
    """What tuning a call has found: its key, and how the search went."""

    key: TuningKey
    outcome: Outcome
    search: str


@dataclass(frozen=True, slots=True, eq=False)
class Tunable:
    """A call over numbers as the planner has it."""

    assignment: Assignment
    objects: Mapping[str, Any]
    settings: Settings


def tunable(text: str, objects: Mapping[str, Any], options: Mapping[str, Any]) -> Tunable:
    """The call of a text over operands, whose plans may be searched for.

    options  the arguments of `evaluate` by name

    Raises what the call raises, and OperandError for calls that have no key.
    """
    read = statements_of(text, objects)
    refuse_unkeyed(read, concerns(objects.values(), options.get("format")))
    settings = settings_of(options.get("format"), None, *(options.get(n, KEYED[n]) for n in KEYED))
    over = over_of(options.get("semiring"), options.get("mask"), False)
    assignment = read[0].assignment
    if over.is_usual:
        return Tunable(assignment, objects, settings)
    ready = over_numbers(assignment, objects, settings, over)
    return Tunable(ready.assignment, ready.objects, ready.settings)


def tune_text(
    text: str,
    objects: Mapping[str, Any],
    options: Mapping[str, Any],
    *,
    trials: int,
    seconds: float,
    search: str,
    seed: int,
    store: Records,
    watch: Watch | None = None,
    bound: Bound | None = None,
) -> Tuned:
    """Search for the fastest plan of a call, time it on its operands, and keep what was found.

    options  the arguments of `evaluate` by name: format, dtype, threads, semiring, …
    trials   plans that are run at most, and seconds for all of it
    search   a name of `searches.search_table`
    store    takes a record of each plan as soon as it was tried
    bound    the least seconds that a plan can take, None where it is not known: it prunes

    Raises what the call raises. An interrupt ends the search, and what was found is kept.
    """
    start = search_of(search)
    call = tunable(text, objects, options)
    key = key_of_call(call.assignment, call.objects, call.settings)
    found = space_of(call.assignment, call.objects, call.settings)
    session = Session(
        found.space,
        _bench(found),
        found.price,
        Limits(trials, seconds),
        bound,
        _recording(key, store, watch),
    )
    return Tuned(key, session.run(start, seed, {}), search)


def _bench(found: CallSpace) -> Bench:
    return BenchHere(PlanBench(found.assignment, found.objects, found.settings, found.squeezed))


def _recording(key: TuningKey, store: Records, watch: Watch | None) -> Watch:
    """Write each attempt down, then tell it."""

    def record(attempt: Attempt, trials: int, seconds: float) -> None:
        store.add(*records_of(key, attempt))
        if watch is not None:
            watch(attempt, trials, seconds)

    return record


def records_of(key: TuningKey, attempt: Attempt) -> tuple[TuningRecord, ...]:
    """The records of an attempt, and of the plan that it took turns with: of the two one is "ok".

    One that was beaten before takes no part unless the last comparison says so.
    """
    timed = attempt.timed
    own = TuningRecord(
        key,
        attempt.text,
        attempt.label,
        timed.seconds,
        timed.spread,
        timed.trials,
        timed.result,
        timed.note,
    )
    won = timed.result == OK
    if not attempt.rival or timed.rival is None or not (won or attempt.last):
        return (own,)
    word = SLOWER if won else OK
    label = NO_OPTIONS if attempt.last else "the best before"
    return own, TuningRecord(key, attempt.rival, label, timed.rival, 0.0, timed.trials, word)
