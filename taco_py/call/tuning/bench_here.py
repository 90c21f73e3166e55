"""Plans run in this process: for calls that cannot be passed to another one, and inside workers."""

from __future__ import annotations

from collections.abc import Callable

from codegen.records import dataclass
from taco_py.call.tuning.plan_bench import PlanBench, WrongResultError
from taco_py.diagnostics.errors import CompilerError, InternalError, ScheduleError, TacoError
from taco_py.tune.measure.sequential_test import Verdict
from taco_py.tune.measure.turns import Turns
from taco_py.tune.store.tuning_record import OK, SLOWER
from taco_py.tune.tuning_session import Timed

PATIENCE = 3.0
"""Seconds of taking turns after which no more are begun."""


@dataclass(frozen=True, slots=True, eq=False)
class BenchHere:
    """A bench whose plans run in this process."""

    plans: PlanBench

    def time(self, text: str) -> Timed:
        """Build a plan, check it, and time it by itself."""

        def timed() -> Timed:
            found = self.plans.time(text, PATIENCE)
            return Timed(OK, found.seconds, found.spread, found.count)

        return self._checked(text, timed)

    def race(self, text: str, rival: str, last: bool) -> Timed:
        """Build a plan, check it, and time it in turns with another one."""

        def timed() -> Timed:
            self.plans.build(rival)
            return timed_of(self.plans.race(text, rival, PATIENCE * (1 + last), last))

        return self._checked(text, timed)

    def _checked(self, text: str, timed: Callable[[], Timed]) -> Timed:
        try:
            self.plans.build(text)
            note = self.plans.check(text)
            found = timed()
        except WrongResultError as error:
            return Timed("wrong", note=str(error))
        except (ScheduleError, CompilerError) as error:
            return Timed("refused", note=error.message)
        except (InternalError, MemoryError) as error:
            return Timed("crashed", note=str(error))
        except TacoError as error:
            return Timed("refused", note=error.message)
        return (
            found
            if not note
            else Timed(
                found.result,
                found.seconds,
                found.spread,
                found.trials,
                found.rival,
                f"unchecked: {note}",
            )
        )


def timed_of(turns: Turns) -> Timed:
    """What two plans took, where the first has to be clearly faster."""
    other = None if turns.other is None else turns.other.seconds
    result = OK if turns.verdict is Verdict.FASTER else SLOWER
    mine = turns.mine
    return Timed(result, mine.seconds, mine.spread, mine.count, other)
