"""Plans run in a process of their own, which is ended and started anew where one hangs or crashes.

open    the operands, through a file, each time that the process is started
build   a plan is compiled              at most BUILD_SECONDS
first   it is run and checked           at most SLOWEST times what auto's plan took
time    it takes turns with another     at most so long again
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import Any

from codegen.records import dataclass
from codegen.runtime.child_process import ChildEndedError, ChildLateError, ChildProcess
from taco_py.tuning.bench.bench_here import PATIENCE
from taco_py.tuning.measure.operand_file import UnpassableError, operand_file
from taco_py.tuning.session.tuning_session import Timed, with_note
from taco_py.tuning.store.tuning_record import OK, SLOWER

WORKER = "taco_py.tuning.bench.bench_worker:answer"
OPEN_SECONDS, BUILD_SECONDS = 120.0, 90.0
FIRST_SECONDS = 600.0
"""For the plan that is chosen without timing, whose time is not known yet."""
SLOWEST = 50.0
SPARE_SECONDS = 5.0
"""What a step may take besides: results are compared, other programs have the cores."""


@dataclass(slots=True, eq=False)
class BenchProcess:
    """A bench whose plans run in another process.

    path    of the file that it reads the call from
    usual   seconds of the first plan that was timed
    opened  which start of the process has the call
    """

    child: ChildProcess
    path: Path
    usual: float | None = None
    opened: int = 0
    spare: float = SPARE_SECONDS
    built: set[str] = field(default_factory=set)

    def time(self, text: str) -> Timed:
        """Build a plan, check it, and time it by itself."""
        outcome = self._run(text, "", False)
        if self.usual is None and outcome.seconds is not None:
            self.usual = outcome.seconds
        return outcome

    def race(self, text: str, rival: str, last: bool) -> Timed:
        """Build a plan, check it, and time it in turns with another one."""
        return self._run(text, rival, last)

    def _run(self, text: str, rival: str, last: bool) -> Timed:
        outcome = self._ask({"do": "build", "text": text}, BUILD_SECONDS)
        if outcome.result == OK:
            outcome = self._ask({"do": "first", "text": text}, self._limit(1))
        if outcome.result != OK:
            return outcome
        note = outcome.note
        head = {"do": "time", "text": text, "rival": rival, "last": last}
        wait = self._limit(2) + PATIENCE * (1 + last) + BUILD_SECONDS * (rival not in self.built)
        timed = self._ask(head, wait)
        if timed.result in (OK, SLOWER):  # a process that was ended has built nothing
            self.built.update((text, rival))
        return with_note(timed, note)

    def _limit(self, plans: int) -> float:
        """Return seconds for plans that are run a few times."""
        if self.usual is None:
            return FIRST_SECONDS
        return self.spare + plans * SLOWEST * self.usual

    def _ask(self, head: dict[str, Any], seconds: float) -> Timed:
        """Return the result of a step; the process is started where it does not run."""
        try:
            self._open()
            reply, _ = self.child.ask(head, (), self.opened, seconds)
        except ChildLateError as error:
            self.built.clear()
            return Timed("timed out", note=str(error))
        except ChildEndedError as error:
            self.built.clear()
            return Timed("crashed", note=str(error))
        if "error" in reply:
            return Timed("crashed", note=str(reply["error"]))
        return Timed(**reply)

    def _open(self) -> None:
        """Let the process read the call, where it was started anew. Raises ChildEndedError."""
        started = self.child.start()
        if started == self.opened:
            return
        reply, _ = self.child.ask({"do": "open", "path": str(self.path)}, (), started, OPEN_SECONDS)
        if "error" in reply:
            raise UnpassableError(str(reply["error"]))
        self.opened = started


@contextmanager
def bench_process(content: Any, target: str = WORKER) -> Iterator[BenchProcess]:
    """Yield a bench in a process that has the call, until the block is left.

    content  the computation that the worker makes a `PlanBench` of

    Raises UnpassableError where the call cannot be passed.
    """
    child = ChildProcess(target)
    try:
        with operand_file(content) as path:
            bench = BenchProcess(child, path)
            try:
                bench._open()
            except ChildEndedError as error:
                raise UnpassableError(str(error)) from error
            yield bench
    finally:
        child.close()
