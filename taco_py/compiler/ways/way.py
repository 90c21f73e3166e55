"""The protocol of a way to compute a kernel: a name, a test, a price, and a generator.

    WAY = Way("tiles", can, choose, lower=lower, reuses=True, seconds=seconds)

A way generates code (`lower`), or calls an existing routine (`routine`). A kernel names
its way by a command of its schedule, `make(tiles,8)`; the table of ways is in `ways.ways`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeVar

from codegen.records import dataclass
from taco_py.compiler.cost.estimate import Statistics
from taco_py.compiler.schedule.commands import Make
from taco_py.language.diagnostics.errors import InternalError
from taco_py.language.problem import Problem

if TYPE_CHECKING:
    from codegen.machine.target import Target
    from taco_py.compiler.iteration.graph import IterationGraph
    from taco_py.compiler.schedule.parallel import Parallelism
    from taco_py.compiler.schedule.schedule import Schedule
    from taco_py.compiler.ways.library_choice import Libraries
    from taco_py.compiler.ways.recipe import LoweredRecipe, Recipe, Routine

Fact = TypeVar("Fact")


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """A problem whose way is to be chosen.

    statistics  returns the sizes and patterns of its operands, when a way first needs them
    libraries   the libraries whose routines may be called, or None for none
    facts       cached facts of the problem and its statistics, by the functions that compute them
    """

    problem: Problem
    statistics: Callable[[], Statistics] | None = None
    libraries: Libraries | None = None
    facts: dict[Callable[[Question], Any], Any] = field(default_factory=dict)

    @property
    def stats(self) -> Statistics:
        """Return the sizes and patterns of the operands."""
        return self.recall(_statistics)

    def recall(self, fact: Callable[[Question], Fact]) -> Fact:
        """Return a fact that does not depend on the libraries; compute it once for all ways."""
        if fact not in self.facts:
            self.facts[fact] = fact(self)
        value: Fact = self.facts[fact]
        return value


def _statistics(question: Question) -> Statistics:
    if question.statistics is None:
        raise InternalError(f"Expected statistics of {question.problem}, found none")
    return question.statistics()


@dataclass(frozen=True, slots=True)
class Offer:
    """The parameters of a way for a problem, and the reason where it is specific to the problem."""

    parameters: tuple[int, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """A way to compute the kernel of a problem.

    name      in `make(name)` and in explain()
    can       whether it can compute a problem, for any sizes of its operands
    choose    the offer for a problem on which it is expected to take no more time than any later
              way in the table; else None
    lower     the loop IR of a recipe on a machine; None where nothing is generated
    routine   the routine for a recipe, where nothing is generated; else None
    in_slabs  whether it computes several values of the same slabs of dense tensors
    in_loops  whether the kernel runs the loops of its schedule, with its commands
    reuses    whether each element of a product's operands is read from memory few times only
    seconds   the expected time of a problem on which it is chosen; None for that of its loops
        on_gpu    whether its kernels are those of a GPU, emulated or not; else those of the CPU
    priced    the expected seconds of a kernel of a problem, None where there is no figure; for GPUs
              alone
    shares    the choice of the loops that units share; None for the threads of the CPU
    traffic   explain()'s line of the bytes that move between caches, for sizes of the indices; None
              for those of its loops
    epilogue  the command for a problem of a product with an epilogue, from the schedule of the
              product; None where no kernel computes both
    tuning_parameters  parameters of `make` that tuning tries, besides those that the way chooses
    """

    name: str
    can: Callable[[Question], bool]
    choose: Callable[[Question], Offer | None]
    lower: Callable[[Recipe, Target], LoweredRecipe] | None = None
    routine: Callable[[Recipe], Routine] | None = None
    in_slabs: bool = False
    in_loops: bool = False
    reuses: bool = False
    seconds: Callable[[Question], float] | None = None
    on_gpu: bool = False
    priced: Callable[[Problem, Schedule, Statistics], float | None] | None = None
    shares: Callable[[IterationGraph, Schedule], Parallelism] | None = None
    traffic: Callable[[Problem, Make, Mapping[str, int], Target], str] | None = None
    tuning_parameters: tuple[tuple[int, ...], ...] = ()
    epilogue: Callable[[Problem, Schedule], Make | None] | None = None
