"""The ways to compute a kernel, one table: the first that offers to compute a problem is chosen.

    C[i,j] = sum(k, A[i,k] * B[k,j]), all dense and large   →   make(tiles)

A way is a file in this folder with a `WAY`, and a line in the table, in order of preference: each
way's `choose` compares it with later ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from codegen.machine.target import TARGETS
from codegen.records import dataclass
from taco_py.compiler.cost.estimate import Statistics
from taco_py.compiler.schedule.commands import Make
from taco_py.compiler.ways import (
    gpu_loops,
    gpu_tiles,
    library,
    loops,
    staged,
    tiles,
    transpose,
)
from taco_py.compiler.ways.contraction_match import product_of, products_at_most, reuse
from taco_py.compiler.ways.entry_kernels import entry_slabs
from taco_py.compiler.ways.epilogues import visited_rows
from taco_py.compiler.ways.gpu_check import check_kernels
from taco_py.compiler.ways.on_gpu import gpu_slabs, gpu_transpose
from taco_py.compiler.ways.places import paired
from taco_py.compiler.ways.slab_kernels import slabs
from taco_py.compiler.ways.way import Question, Way
from taco_py.language.diagnostics.errors import InternalError
from taco_py.language.problem import Problem

if TYPE_CHECKING:
    from taco_py.compiler.iteration.graph import IterationGraph
    from taco_py.compiler.ways.library_choice import Libraries
    from taco_py.compiler.ways.recipe import Recipe

WAYS: Mapping[str, Way] = {
    way.name: way
    for way in (
        gpu_tiles.WAY,
        gpu_transpose.WAY,
        gpu_slabs.WAY,
        gpu_loops.WAY,
        paired.WAY,
        library.WAY,
        tiles.WAY,
        transpose.WAY,
        staged.WAY,
        visited_rows.WAY,
        slabs.WAY,
        entry_slabs.WAY,
        loops.WAY,
    )
}


@dataclass(frozen=True, slots=True)
class Choice:
    """The command that names a way, and the reason where it is specific to the problem."""

    make: Make
    reason: str = ""

    @property
    def way(self) -> Way:
        """Return the way of the command."""
        return way_of(self.make)


def way_of(make: Make) -> Way:
    """Return the way that a command names."""
    way = WAYS.get(make.way)
    if way is None:
        raise InternalError(f"Expected one of the ways {', '.join(WAYS)}, found {make.way}")
    return way


def in_loops_on(on_gpu: bool) -> Make:
    """Return the way that runs a schedule's loops and commands, on a GPU or on the CPU."""
    return Make(next(w.name for w in WAYS.values() if w.in_loops and w.on_gpu == on_gpu))


def in_slabs(parameters: tuple[int, ...] = ()) -> Make:
    """Return the way that computes several values of the same slabs of dense tensors."""
    return Make(next(way.name for way in WAYS.values() if way.in_slabs), parameters)


def check_recipe(recipe: Recipe) -> None:
    """Raise ScheduleError where a kernel's target cannot execute its schedule."""
    way = way_of(recipe.schedule.make)
    if way.on_gpu and way.lower is not None:
        target = TARGETS[recipe.target]
        check_kernels(recipe.problem, way.lower(recipe, target).module, target)
    elif way.in_loops:
        loops.lower_recipe(recipe)


def graph_of(recipe: Recipe) -> IterationGraph:
    """Return the iteration graph of a kernel, with loops shared as by its way. Raises
    ScheduleError."""
    return loops.scheduled_graph(recipe, way_of(recipe.schedule.make).shares)[0]


def choose(question: Question) -> Choice:
    """Return the way that is expected to take the least time."""
    for way in WAYS.values():
        offer = way.choose(question)
        if offer is not None:
            return Choice(Make(way.name, offer.parameters), offer.reason)
    raise InternalError(f"Expected a way to make {question.problem}, found none")


def generator(problem: Problem) -> Make:
    """Return the first way that generates code for a problem, for any sizes of its operands."""
    question = Question(problem)
    names = (way.name for way in WAYS.values() if way.lower is not None and way.can(question))
    return Make(next(names))


def way_with_reuse(question: Question) -> Way | None:
    """Return the way that computes a product with reuse, None for other problems.

    Libraries count where no generated code reuses elements of the type.
    """
    able = [way for way in WAYS.values() if way.reuses and way.can(question)]
    if not able:
        return None
    way = choose(replace(question, libraries=None)).way
    if not way.reuses and all(candidate.lower is None for candidate in able):
        way = choose(question).way
    return way if way.reuses else None


def seconds(question: Question) -> float | None:
    """Return the expected seconds of a problem by a way with reuse; None for the estimate of its
    loops."""
    way = way_with_reuse(question)
    return None if way is None or way.seconds is None else way.seconds(question)


def worth_own_kernel(
    problem: Problem, stats: Statistics, libraries: Libraries | None = None
) -> bool:
    """Tell whether a product with reuse is large enough to deserve a separate kernel."""
    question, machine = Question(problem, lambda: stats, libraries), stats.machine
    product = question.recall(product_of)
    if product is None or products_at_most(product, stats) < machine.dense.own_kernel_products:
        return False
    enough = reuse(product, stats) >= machine.dense.own_kernel_reuse_products
    return enough and way_with_reuse(question) is not None
