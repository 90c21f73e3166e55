"""What a plan does, as commands and as graphs: the compiler's choices included."""

from __future__ import annotations

from taco_py.concrete.concretize import Order
from taco_py.diagnostics.errors import ScheduleError
from taco_py.iteration.graph import IterationGraph
from taco_py.notation.nodes import Assignment
from taco_py.plan.ir.nodes import KernelStep
from taco_py.plan.ir.plan import Plan
from taco_py.schedule.apply import apply_all
from taco_py.schedule.commands import Command, Fission, MergeBy, Parallelize, Precompute, Reorder
from taco_py.schedule.loop_state import Loops, textual_orders
from taco_py.schedule.schedule import OPEN, Schedule
from taco_py.ways.loops import scheduled_graph
from taco_py.ways.recipe import Recipe
from taco_py.ways.ways import way_of


def schedule_of(plan: Plan, asked: Schedule | None) -> Schedule:
    """Commands that lead to the same kernels again.

    What was asked for, and what was chosen besides: the order of loops, how they meet operands, the
    loop that threads share. Choices that no command makes, such as several kernels in place of one,
    sums multiplied out, copies of operands or register tiles, are left open, and made again the
    same way.
    """
    wanted = asked or OPEN
    *others, kernel = plan.steps
    several = others or plan.rewritten
    if several or not isinstance(kernel, KernelStep) or not way_of(kernel.schedule.make).in_loops:
        return wanted
    if wanted.shapes:
        return Schedule((*wanted.commands, *_sharing(kernel, wanted)))
    orders = reordering(kernel.problem.assignment, kernel.schedule.orders)
    if orders is None:
        return wanted
    met = (c for c in kernel.schedule.commands if isinstance(c, Precompute | MergeBy | Fission))
    chosen = (c for c in met if c not in wanted.commands)
    return Schedule((*orders, *chosen, *wanted.commands, *_sharing(kernel, wanted)))


def recipe_of(step: KernelStep) -> Recipe:
    """The recipe of a kernel that makes its result in one call."""
    return Recipe(step.problem, step.schedule)


def graphs_of(plan: Plan) -> tuple[IterationGraph, ...]:
    """The iteration graph of each kernel. Raises ScheduleError."""
    return tuple(scheduled_graph(recipe_of(step))[0] for step in plan.kernels)


def reordering(assignment: Assignment, orders: tuple[Order, ...]) -> tuple[Command, ...] | None:
    """Commands from the order of the text to `orders`; None where there are none.

    Terms with the same indices cannot be told apart by a command.
    """
    loops = Loops(assignment, textual_orders(assignment))
    wanted = sorted(dict.fromkeys(o for o in orders if o not in loops.orders), key=len)
    commands = tuple(Reorder(order) for order in wanted)
    try:
        reached = apply_all(loops, Schedule(commands)).orders
    except ScheduleError:
        return None
    return commands if reached == orders else None


def _sharing(kernel: KernelStep, wanted: Schedule) -> tuple[Command, ...]:
    """The loop that threads share where nobody said which."""
    if wanted.serial or wanted.parallel is not None:
        return ()
    graph, _ = scheduled_graph(recipe_of(kernel))
    shared = ((graph.called(loop), loop.mode) for loop in graph.loops)
    found = (
        Parallelize(index, mode.parallel, mode.unit)
        for index, mode in shared
        if mode.parallel is not None
    )
    return tuple(dict.fromkeys(found))
