"""Plans run in this process: for calls that cannot be passed to another one, and inside workers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import InternalError, TacoError
from taco_py.tuning.bench.plan_bench import PlanBench, WrongResultError
from taco_py.tuning.measure.sequential_test import Verdict
from taco_py.tuning.measure.turns import Turns
from taco_py.tuning.session.tuning_session import Timed, with_note
from taco_py.tuning.store.tuning_record import OK, SLOWER

PATIENCE = 3.0
"""Seconds of taking turns after which no more are begun."""
BUILT = Timed(OK)


@dataclass(frozen=True, slots=True, eq=False)
class BenchHere:
    """A bench whose plans run in this process, a step at a time."""

    plans: PlanBench

    def time(self, text: str) -> Timed:
        """Build a plan, check it, and time it by itself."""
        return self._after_steps(text, lambda: self.alone(text))

    def race(self, text: str, rival: str, last: bool) -> Timed:
        """Build a plan, check it, and time it in turns with another one."""
        return self._after_steps(text, lambda: self.turns(text, rival, last))

    def _after_steps(self, text: str, timed: Callable[[], Timed]) -> Timed:
        for step in (self.build, self.first):
            outcome = step(text)
            if outcome.result != OK:
                return outcome
        return with_note(timed(), outcome.note)

    # ------------------------------------------------------------ steps

    def build(self, text: str) -> Timed:
        """Compile a plan."""

        def build() -> Timed:
            self.plans.build(text)
            return BUILT

        return in_words(build)

    def first(self, text: str) -> Timed:
        """Run a plan once, and compare its results; the note says what could not be."""

        def first() -> Timed:
            self.plans.first(text)
            reason = self.plans.check(text)
            return replace(BUILT, note=f"unchecked: {reason}" if reason else "")

        return in_words(first)

    def alone(self, text: str) -> Timed:
        """Time a plan that ran before."""
        timing = self.plans.time(text, PATIENCE)
        return Timed(OK, timing.seconds, timing.spread, timing.count)

    def turns(self, text: str, rival: str, last: bool) -> Timed:
        """Time two plans in turns, of which the first ran before."""

        def turns() -> Timed:
            self.plans.build(rival)
            self.plans.first(rival)
            return timed_of(self.plans.race(text, rival, PATIENCE * (1 + last), last))

        return in_words(turns)


def in_words(step: Callable[[], Timed]) -> Timed:
    """Return the result of a step, with its error in words."""
    try:
        return step()
    except WrongResultError as error:
        return Timed("wrong", note=str(error))
    except (InternalError, MemoryError) as error:
        return Timed("crashed", note=str(error), raised=type(error).__name__)
    except TacoError as error:
        return Timed("refused", note=error.message, raised=type(error).__name__)


def timed_of(turns: Turns) -> Timed:
    """Return the result of turns, where the first plan has to be clearly faster."""
    other = None if turns.other is None else turns.other.seconds
    result = OK if turns.verdict is Verdict.FASTER else SLOWER
    mine = turns.mine
    return Timed(result, mine.seconds, mine.spread, mine.count, other)
