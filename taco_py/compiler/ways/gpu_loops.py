"""Kernels of a GPU: the same loops, shared by the threads of a grid, in CUDA C++.

    y[i] = sum(j, A[i,j] * x[j])   →   make(cuda)

A plan is computed for a machine (`cost.machine`), whose target names what runs its kernels: a
device, or the CPU, which emulates one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codegen.machine.target import Target
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

    price = price_of(problem, schedule, stats)
    return None if price is None else price.seconds


def can(question: Question) -> bool:
    """Tell whether a problem is planned for a GPU, which makes all problems in loops."""
    return question.statistics is not None and question.stats.machine.is_gpu


def choose(question: Question) -> Offer | None:
    """Return the offer of loops for any problem that is planned for a GPU."""
    return Offer() if can(question) else None


WAY = Way("cuda", can, choose, lower, in_loops=True, on_gpu=True, priced=priced, shares=shares)
