"""A call tuned: plans are searched for, timed on its operands, and kept in a store.

text, operands, options  →  key, space  →  search on a bench  →  records in the store  →  best plan
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from time import monotonic
from types import MappingProxyType
from typing import Any

from codegen.records import dataclass
from taco_py.arguments.device_tensor import place_of
from taco_py.arguments.operands import bind_operands
from taco_py.arguments.options import CallOptions
from taco_py.calls.call.computation import Computation
from taco_py.data.kernels import KERNELS
from taco_py.language.diagnostics.errors import OperandTypeError
from taco_py.report.limits.operand_memory import OperandMemory, operand_memory
from taco_py.report.limits.plan_bound import least_seconds
from taco_py.tuning.bench.bench_here import BenchHere
from taco_py.tuning.bench.bench_process import bench_process
from taco_py.tuning.bench.call_key import key_of_call
from taco_py.tuning.bench.call_space import CallSpace, space_of
from taco_py.tuning.bench.plan_bench import PlanBench
from taco_py.tuning.bench.text_key import keyed_computation
from taco_py.tuning.bench.tuning_store import TuningStore
from taco_py.tuning.measure.operand_file import UnpassableError
from taco_py.tuning.prices.plan_counts import counts_text
from taco_py.tuning.prices.plan_seconds import PlanSeconds
from taco_py.tuning.searches.search_table import search_of
from taco_py.tuning.searches.store_lessons import lessons_in
from taco_py.tuning.session.tuning_session import Attempt, Bench, Limits, Outcome, Session
from taco_py.tuning.space.axis import NO_OPTIONS
from taco_py.tuning.store.tuning_record import OK, SLOWER, TuningKey, TuningRecord
from taco_py.tuning.tasks.search_options import SearchOptions

Watch = Callable[[Attempt, int, float], None]
"""Is told each plan that was tried, how many were, and the seconds that are over."""


@dataclass(frozen=True, slots=True, eq=False)
class Tuned:
    """What tuning a call has found: its key, and how the search went.

    where  why plans ran in this process, "" where they did not
    """

    key: TuningKey
    outcome: Outcome
    search: str
    where: str = ""


def tunable(text: str, objects: Mapping[str, Any], options: Mapping[str, Any]) -> Computation:
    """Return the computation of a text over operands, whose plans may be searched for.

    options  the arguments of `evaluate` by name

    Raises what the call raises.
    """
    _refuse_devices(objects)
    return replace(keyed_computation(text, objects, options), cautions=())


def _refuse_devices(objects: Mapping[str, Any]) -> None:
    """Raise OperandTypeError for operands in the memory of a GPU."""
    for name, operand in objects.items():
        if place_of((operand,)):
            raise OperandTypeError(
                f"Expected operands on the host, where plans are timed, found {name} on a GPU",
                hint="tune with .to_host(); plans of GPUs are not searched for yet",
            )


def tune_text(
    text: str,
    objects: Mapping[str, Any],
    options: Mapping[str, Any],
    search: SearchOptions,
    store: TuningStore,
    watch: Watch | None = None,
    isolated: bool = True,
) -> Tuned:
    """Search for the fastest plan of a call, time it on its operands, and keep it.

    options  the arguments of `evaluate` by name: format, dtype, threads, semiring, …
    store    takes a record of each plan as soon as it was tried
    isolated whether plans run in a process of their own

    Raises what the call raises. An interrupt ends the search, and what was found is kept.
    """
    begin, start = monotonic(), search_of(search.search)
    call = tunable(text, objects, options)
    key, plans = key_of_call(call), space_of(call)
    with _bench(call.with_options(_with_threads(call.options)), isolated) as (bench, where):
        session = Session(
            plans.space,
            bench,
            plans.price,
            Limits(search.trials, float(search.seconds)),
            partial(least_seconds, threads=call.options.threads, memory=_memory(call)),
            _recording(key, store, watch, PlanCounts(plans)),
            begin=begin,
        )
        weights = lessons_in(store.file).weights if plans.seconds.model is None else {}
        outcome = session.run(start, search.seed, weights)
    return Tuned(key, outcome, search.search, where)


@contextmanager
def _bench(call: Computation, isolated: bool) -> Iterator[tuple[Bench, str]]:
    """Yield the bench of a call, and why its plans run in this process, "" where they do not."""
    if not isolated:
        yield BenchHere(PlanBench(call)), "in this process, as asked"
        return
    with ExitStack() as stack:
        try:
            bench: Bench = stack.enter_context(bench_process(call))
            reason = ""
        except UnpassableError as error:
            bench = BenchHere(PlanBench(call))
            reason = f"in this process, for the call cannot be passed to another one: {error}"
        yield bench, reason


def _memory(call: Computation) -> OperandMemory:
    """Return the operands that share memory."""
    return operand_memory({name: bound.data for name, bound in bind_operands(call.objects).items()})


def _with_threads(settings: CallOptions) -> CallOptions:
    """Return the settings with the threads of this process, which the other one does not know."""
    return replace(settings, threads=settings.threads or KERNELS.cores)


class PlanCounts:
    """What is counted of the plans that a search tried, by their texts."""

    def __init__(self, call: CallSpace) -> None:
        self.call = call
        self.prices = PlanSeconds(call.priced, None, with_features=True)
        self.texts: dict[str, str] = {}

    def of(self, attempt: Attempt) -> Mapping[str, str]:
        """Return the counts of the plan of an attempt and of all before, by text."""
        if attempt.text and attempt.text not in self.texts:
            plan = self.call.plan(attempt.point)
            self.texts[attempt.text] = "" if plan is None else counts_text(self.prices, plan)
        return self.texts


def _recording(
    key: TuningKey, store: TuningStore, watch: Watch | None, counts: PlanCounts
) -> Watch:
    """Write each attempt down, then tell it."""

    def record(attempt: Attempt, trials: int, seconds: float) -> None:
        store.add(*records_of(key, attempt, counts.of(attempt)))
        if watch is not None:
            watch(attempt, trials, seconds)

    return record


def records_of(
    key: TuningKey, attempt: Attempt, counts: Mapping[str, str] = MappingProxyType({})
) -> tuple[TuningRecord, ...]:
    """Return the records of an attempt, and of the plan that it took turns with: of the two one is
    "ok".

    counts  of plans by their texts

    One that was beaten before takes no part unless the last comparison says so.
    """
    timed = attempt.timed
    record = TuningRecord(
        key,
        attempt.text,
        attempt.label,
        timed.seconds,
        timed.spread,
        timed.trials,
        timed.result,
        timed.note,
        counts=counts.get(attempt.text, ""),
    )
    won = timed.result == OK
    if not attempt.rival or timed.rival is None or not (won or attempt.last):
        return (record,)
    word = SLOWER if won else OK
    label = NO_OPTIONS if attempt.last else "the best before"
    rival = TuningRecord(
        key, attempt.rival, label, timed.rival, 0.0, timed.trials, word,
        counts=counts.get(attempt.rival, ""),
    )  # fmt: skip
    return record, rival
