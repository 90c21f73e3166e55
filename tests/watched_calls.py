"""What a call does besides answering: its plans, the texts of its fast paths, the frames it takes.

with nominal(): ...          on the nominal machine, watched
WATCH.plans, WATCH.paths     what was planned and coded since WATCH.clear()
"""

from __future__ import annotations

import contextlib
import functools
import gc
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import taco_py as tp
from taco_py.compiler.driver import source_of
from taco_py.compiler.ways.recipe import Recipe
from taco_py.compiler.ways.ways import way_of
from taco_py.data.kernels import KERNELS
from taco_py.planner.ir.plan import Plan
from taco_py.planner.make import make_plan
from taco_py.planner.statements import plan_statements
from taco_py.report.limits.ceilings import Ceilings, Rate, Roof
from taco_py.report.limits.measure_ceilings import ceilings_here
from taco_py.running.replay.source_text import call_code
from taco_py.tuning.bench.tune_call import bench_process
from tests.dump import digest
from tests.machines import SERVER, on_machine

RATE = Rate(5e10, 1e11)
ROOFS = (Roof("L1", 32 << 10, False, RATE), Roof("memory", 0, True, Rate(1e10, 1.5e10)))
CEILINGS = Ceilings("nominal", "2021-01-01 12:00", 2, 32, 16, RATE, RATE, Rate(1e10, 2e10), ROOFS)
"""What the nominal machine does at most."""


@dataclass(slots=True)
class Watch:
    """What verbs do besides answering.

    depth    how many plannings are under way, which ask each other
    paths    texts of fast paths
    emitted  hashes of the C of kernels, by their keys
    """

    depth: int = 0
    plans: list[Plan] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    emitted: dict[str, str] = field(default_factory=dict)

    def clear(self) -> None:
        """Forget what the last verb did, and what the process remembers of it."""
        self.plans, self.paths = [], []
        KERNELS.memo.clear()

    def planning(self, plan: Callable[..., Plan]) -> Callable[..., Plan]:
        """Return a planning function that keeps its plans."""

        @functools.wraps(plan)
        def watched(*arguments: Any, **options: Any) -> Plan:
            self.depth += 1
            try:
                made = plan(*arguments, **options)
            finally:
                self.depth -= 1
            if not self.depth:
                self.plans.append(made)
            return made

        return watched

    def source(self, recipe: Recipe) -> str:
        """Return the hash of the C or CUDA of a kernel, "-" for a library's."""
        if way_of(recipe.schedule.make).lower is None:
            return "-"
        if recipe.key not in self.emitted:
            self.emitted[recipe.key] = digest(source_of(recipe))
        return self.emitted[recipe.key]

    def coding(self, text: str, names: Any) -> Any:
        """Keep the text of a fast path, and compile it."""
        self.paths.append(text)
        return call_code(text, names)


class TimingError(Exception):
    """A plan would be run for its time."""


def _refuse_timing(*_: Any) -> Any:
    raise TimingError


WATCH = Watch()


@contextlib.contextmanager
def nominal() -> Iterator[None]:
    """Watch what is planned and coded, on the nominal machine, and keep no calls on disk."""
    _put(make_plan, WATCH.planning(make_plan))
    _put(plan_statements, WATCH.planning(plan_statements))
    _put(call_code, WATCH.coding)
    _put(ceilings_here, lambda: CEILINGS)
    _put(bench_process, _refuse_timing)
    for method, answer in (("note", lambda _: None), ("write_note", lambda *_: None)):
        setattr(KERNELS, method, answer)
    KERNELS.compile_with(("-Og",))
    tp.set_threads(2)
    with on_machine(SERVER):
        yield


def _put(function: Callable[..., Any], other: Callable[..., Any]) -> None:
    """Put another function in its place in all modules, for the rest of the process."""
    for module in list(sys.modules.values()):
        if module.__name__.startswith("taco_py"):
            for name, value in list(vars(module).items()):
                if value is function:
                    setattr(module, name, other)


def frames(run: Callable[[], Any]) -> int:
    """Count the calls of Python functions of this project, as the fast path has few."""
    count = 0

    def note(frame: Any, event: str, _: Any) -> None:
        nonlocal count
        module = frame.f_globals.get("__name__", "")
        count += event == "call" and module.startswith(("taco_py", "codegen", "polyhedral"))
        count += event == "call" and frame.f_code.co_name == "call" and not module

    gc.disable()
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count
