"""What a way to make a kernel is: a name, what it can make and at what price, and how.

    WAY = Way("tiles", can, choose, lower=lower, reuses=True, seconds=seconds)

A way generates code (`lower`), or calls a routine that is there already (`routine`). A kernel names
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

    statistics  finds the sizes and patterns of its operands, when a way asks for them first
    libraries   those whose routines may be called, or None for none
    known       the facts of the problem and its statistics that ways have found, each found once
    """

    problem: Problem
    statistics: Callable[[], Statistics] | None = None
    libraries: Libraries | None = None
    known: dict[Callable[[Question], Any], Any] = field(default_factory=dict)

    @property
    def stats(self) -> Statistics:
        """Return the sizes and patterns of the operands."""
        return self.recall(_statistics)

    def recall(self, fact: Callable[[Question], Fact]) -> Fact:
        """Return a fact that does not depend on the libraries, found once for all ways that ask for
        it."""
        if fact not in self.known:
            self.known[fact] = fact(self)
        found: Fact = self.known[fact]
        return found


def _statistics(question: Question) -> Statistics:
    if question.statistics is None:
        raise InternalError(f"Expected statistics of {question.problem}, found none")
    return question.statistics()


@dataclass(frozen=True, slots=True)
class Offer:
    """What a way would make a problem with, and why where that is not known of it in general."""

    parameters: tuple[int, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """A way to make a kernel out of a problem.

    name      in `make(name)` and in explain()
    can       whether it can make a problem, however large its operands are
    choose    the offer for a problem on which it is expected to take no more time than any way
              behind it in the table; else None
    lower     the loop IR of a recipe on a machine; None where nothing is generated
    routine   the routine for a recipe, where nothing is generated; else None
    in_loops  whether the kernel runs the loops that its schedule says, and carries its commands out
    reuses    whether each element of a product's operands is read from memory few times only
    seconds   the expected time of a problem on which it is chosen; None for that of its loops
    on_gpu    whether its kernels are those of a GPU, emulated or not; else those of the CPU
    priced    the expected seconds of a kernel that it has made of a problem, None where there is
              no figure; of those of GPUs alone
    shares    which loops units share, and how; None for the threads of the CPU
    traffic   explain()'s line of the bytes that move between caches, for sizes of the indices; None
              for those of its loops
    epilogue  the command that makes a problem of several values of one product, which the schedule
              that is given makes; None where no kernel does both
    tried     parameters of `make` that tuning tries besides those that the way chooses
    """

    name: str
    can: Callable[[Question], bool]
    choose: Callable[[Question], Offer | None]
    lower: Callable[[Recipe, Target], LoweredRecipe] | None = None
    routine: Callable[[Recipe], Routine] | None = None
    in_loops: bool = False
    reuses: bool = False
    seconds: Callable[[Question], float] | None = None
    on_gpu: bool = False
    priced: Callable[[Problem, Schedule, Statistics], float | None] | None = None
    shares: Callable[[IterationGraph, Schedule], Parallelism] | None = None
    traffic: Callable[[Problem, Make, Mapping[str, int], Target], str] | None = None
    tried: tuple[tuple[int, ...], ...] = ()
    epilogue: Callable[[Problem, Schedule], Make | None] | None = None
