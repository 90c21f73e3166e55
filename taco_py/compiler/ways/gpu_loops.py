"""Kernels of a GPU: the same loops, shared by the threads of a grid, in CUDA C++.

    y[i] = sum(j, A[i,j] * x[j])   →   make(cuda)             on the device of this machine
                                   →   make(cuda_emulated)    the same text, run on the CPU

A plan is computed for a machine (`cost.machine`), which names the target of its kernels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codegen.target import Target
from taco_py.compiler.ways.recipe import LoweredRecipe, Recipe
from taco_py.compiler.ways.way import Offer, Question, Way
from taco_py.language.diagnostics.errors import DeviceError
from taco_py.language.phase import EVALUATE

if TYPE_CHECKING:
    from taco_py.compiler.cost.estimate import Statistics
    from taco_py.compiler.iteration.graph import IterationGraph
    from taco_py.compiler.schedule.parallel import Parallelism
    from taco_py.compiler.schedule.schedule import Schedule
    from taco_py.language.problem import Problem


def lower(recipe: Recipe, _: Target) -> LoweredRecipe:
    """Return the loops of a recipe, with the loops marked that a GPU's threads share.

    Raises ScheduleError, DeviceError.
    """
    from taco_py.compiler.ways.loops import lower_recipe

    if recipe.phase != EVALUATE:
        raise DeviceError(
            "Expected kernels on a GPU that make a result, found those that make its structure or "
            "values alone",
            hint="leave target= out to compute it on the CPU",
        )
    return lower_recipe(recipe, shares)


def shares(graph: IterationGraph, schedule: Schedule) -> Parallelism:
    """Return the loops that units of a GPU share, and their strategies. Raises ScheduleError."""
    from taco_py.compiler.schedule.gpu.units import choose_units

    return choose_units(graph, schedule)


def priced(problem: Problem, schedule: Schedule, stats: Statistics) -> float | None:
    """Return the expected seconds of loops that are shared in a way with a price."""
    from taco_py.compiler.ways.unit_choices import price_of

    found = price_of(problem, schedule, stats)
    return None if found is None else found.seconds


def _way(name: str) -> Way:
    target = name.replace("_", "-")

    def choose(question: Question) -> Offer | None:
        planned = question.statistics is not None and question.stats.machine.target == target
        return Offer() if planned else None

    return Way(
        name,
        lambda q: choose(q) is not None,
        choose,
        lower,
        in_loops=True,
        target=target,
        priced=priced,
        shares=shares,
    )


WAY = _way("cuda")
EMULATED = _way("cuda_emulated")
