"""`schedule="tuned"`: the plan of a call from the store, without a measurement.

    exact        timed on this machine, for such operands          taken
    hint, near   timed elsewhere, or for other sizes               taken unless its price is high
    zero-shot    no such record: the best of the space by price    remembered as such
    auto         nothing is expected to be faster

It is looked for when a plan is made. Calls that were made before do not come here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from datetime import datetime
from pathlib import Path

from codegen.records import dataclass
from codegen.user_line import warn_user
from taco_py.arguments.operands import facts
from taco_py.arguments.options import CallOptions
from taco_py.calls.call.computation import Computation
from taco_py.calls.call.prepare import check_computation, prepare_computation
from taco_py.data.kernels import KERNELS
from taco_py.language.diagnostics.cautions import TuningStoreWarning
from taco_py.language.diagnostics.errors import ScheduleError, TuningStoreError
from taco_py.planner.ir.printer import program_text
from taco_py.running.plan_texts.compare_plan import UnequalPlanError
from taco_py.running.plan_texts.fitted_plan import parsed_plan, renamed
from taco_py.tuning.bench.call_key import key_of_call
from taco_py.tuning.bench.call_space import CallSpace, space_of
from taco_py.tuning.bench.zero_shot import zero_shot
from taco_py.tuning.store.active_store import active_file
from taco_py.tuning.store.look_up import FAR, TunedPlan, plans_of
from taco_py.tuning.store.store_file import StoreFile
from taco_py.tuning.store.trial_log import add_trials
from taco_py.tuning.store.tuning_record import EXPECTED, TuningKey, TuningRecord

HINTED = 2.0
"""How many times the price of auto's plan that of a hint may be."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """The settings that a tuned call is carried out with, and where its plan comes from.

    lines  of explain()
    """

    settings: CallOptions
    lines: tuple[str, ...]


def resolved(computation: Computation) -> Resolved:
    """Return the plan of a call, looked up once for operands with the same facts."""
    plain = computation.with_options(replace(computation.options, tuned=False))
    checked, options = check_computation(plain)
    key = ("tuned", *plain.identity, options, facts(checked.operands, options.counts))
    plan: Resolved | None = KERNELS.memo.get(key)
    if plan is None:
        plan = _looked_up(plain)
        KERNELS.memo.put(key, plan)
    return plan


def _looked_up(computation: Computation) -> Resolved:
    file, plain = active_file(), computation.options
    key = key_of_call(computation)
    search = _StoredPlans(computation, key)
    plan = None if file is None else search.in_store(file)
    if search.unequal:
        _warn_unequal(search.unequal, file)
    if plan is not None:
        return Resolved(replace(plain, plan=plan[0]), (*plan[1], *search.passed()))
    text, guess = zero_shot(search.space, file)
    if file is not None and search.timed == 0:
        stored = text or search.space.space.text(())
        _remember(file, TuningRecord(key, stored, guess.label, guess.expected, 0.0, 1, EXPECTED))
    return Resolved(replace(plain, plan=text), (*guess.lines, *search.passed()))


def _warn_unequal(reasons: list[str], file: StoreFile | None) -> None:
    """Warn that plans are passed over, for they compute something else."""
    where = "in memory" if file is None or file.path is None else str(file.path)
    warn_user(
        TuningStoreWarning(
            f"{len(reasons)} plans of the store {where} are passed over, for they are not shown to "
            f"compute this call. {reasons[0]}"
        )
    )


def _remember(file: StoreFile, record: TuningRecord) -> None:
    """Write a plan that was not timed; a store that cannot be written is no reason to stop."""
    if not file.write_allowed:
        return
    try:
        with file.write() as connection:
            add_trials(connection, (record,))
    except TuningStoreError as error:
        warn_user(TuningStoreWarning(f"A plan that was chosen by price is not kept: {error}"))


@dataclass(slots=True, eq=False)
class _StoredPlans:
    """The plans of a store for one call, and why some are passed over.

    timed, lost, other, dear  how many records there are of the key's; no longer parse; do not fit;
                              are hints that are expected to be slower
    unequal                   why plans are not shown to compute the call
    """

    computation: Computation
    key: TuningKey
    timed: int = 0
    lost: int = 0
    other: int = 0
    unequal: list[str] = field(default_factory=list)
    dear: int = 0
    cached_space: CallSpace | None = None

    @property
    def space(self) -> CallSpace:
        """Return the space of the call, made when it is first needed."""
        if self.cached_space is None:
            self.cached_space = space_of(self.computation)
        return self.cached_space

    def in_store(self, file: StoreFile) -> tuple[str, tuple[str, ...]] | None:
        """Return the text of the first plan that fits, in the call's names, and its lines."""
        try:
            with file.read() as connection:
                every = list(plans_of(connection, self.key, FAR, True))
        except TuningStoreError as error:
            warn_user(TuningStoreWarning(f"The store of tuned plans is left out: {error}"))
            return None
        for tuned in every:
            text = self._text(tuned)
            if text is not None and tuned is not None:
                return text, tuple(_origin_lines(tuned, file))
        return None

    def _text(self, tuned: TunedPlan | None) -> str | None:
        """Return the text of a plan in the call's names; None where it cannot be taken."""
        if tuned is None:
            self.lost += 1
            return None
        self.timed += tuned.is_timed
        try:
            text = in_names_of_call(tuned)
            options = replace(self.computation.options, plan=text)
            plan = prepare_computation(self.computation.with_options(options)).plan
        except UnequalPlanError as error:
            self.unequal.append(error.message)
            return None
        except ScheduleError:
            self.other += 1
            return None
        if tuned.is_exact:
            return text
        price = self.space.priced.plan(plan)
        if price > HINTED * self.space.price(()):
            self.dear += 1
            return None
        return text

    def passed(self) -> Iterator[str]:
        """Yield lines about the plans that were passed over."""
        words = (
            (self.lost, "no longer parse"),
            (self.other, "are for other operands"),
            (len(self.unequal), "are not shown to compute this call"),
            (self.dear, "are hints that are expected to be slower here"),
        )
        for count, reason in words:
            if count:
                yield f"  passed over  {count} plan{'s' * (count > 1)} of the store: {reason}"


def in_names_of_call(tuned: TunedPlan) -> str:
    """Return the text of a record's plan over the tensors of the call. Raises ScheduleError."""
    return program_text(renamed(parsed_plan(tuned.record.plan), tuned.renaming))


def _origin_lines(tuned: TunedPlan, file: StoreFile) -> Iterator[str]:
    """Yield the origin of a plan: the record, how it fits, when and in what time."""
    record = tuned.record
    where = "a store in memory" if file.path is None else _short_path(file.path)
    when = datetime.fromtimestamp(record.when).strftime("%Y-%m-%d %H:%M")
    yield f"tuned     {record.label}; {tuned.match}, from {where}"
    if tuned.is_timed:
        yield (
            f"  timed        {record.seconds or 0.0:.3g} s on {when}, {record.trials} times, "
            f"spread {record.spread:.0%}"
        )
    else:
        yield f"  timed        never; it was chosen by price on {when}"


def _short_path(path: Path) -> str:
    """Return a path as short as it can be from the folder of the process."""
    folder = Path.cwd()
    return str(path.relative_to(folder) if path.is_relative_to(folder) else path)
