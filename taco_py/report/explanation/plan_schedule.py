"""What a plan does, as commands and as graphs: the compiler's choices included."""

from __future__ import annotations

from taco_py.compiler.concrete.concretize import Order
from taco_py.compiler.iteration.graph import IterationGraph
from taco_py.compiler.schedule.apply import apply_all
from taco_py.compiler.schedule.commands import (
    Command,
    Fission,
    MergeBy,
    Parallelize,
    Precompute,
    Reorder,
)
from taco_py.compiler.schedule.loop_state import Loops, textual_orders
from taco_py.compiler.schedule.schedule import OPEN, Schedule
from taco_py.compiler.ways.ways import graph_of, way_of
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.notation.nodes import Assignment
from taco_py.planner.ir.nodes import KernelStep
from taco_py.planner.ir.plan import Plan


def schedule_of(plan: Plan, requested: Schedule | None) -> Schedule:
    """Return commands that lead to the same kernels again.

    What was asked for, and what was chosen besides: the order of loops, how they meet operands, the
    loop that threads share. Choices that no command makes, such as several kernels in place of one,
    sums multiplied out, copies of operands or register tiles, are left open, and made again the
    same way.
    """
    schedule = requested or OPEN
    *earlier, kernel = plan.steps
    several = earlier or plan.rewritten
    if several or not isinstance(kernel, KernelStep) or not way_of(kernel.schedule.make).in_loops:
        return schedule
    if schedule.shapes:
        return Schedule((*schedule.commands, *_sharing(kernel, schedule)))
    orders = reordering(kernel.problem.assignment, kernel.schedule.orders)
    if orders is None:
        return schedule
    on_gpu = way_of(kernel.schedule.make).on_gpu  # whose units share loops that commands derive
    recorded = (c for c in kernel.schedule.on_loops.commands if on_gpu or isinstance(c, _RECORDED))
    remaining = (c for c in recorded if c not in schedule.commands)
    full = Schedule((*orders, *remaining, *schedule.commands))
    return full.then(Schedule(_sharing(kernel, full)))


_RECORDED = Precompute | MergeBy | Fission


def graphs_of(plan: Plan) -> tuple[IterationGraph, ...]:
    """Return the iteration graph of each kernel. Raises ScheduleError."""
    return tuple(graph_of(step.recipe()) for step in plan.kernels)


def reordering(assignment: Assignment, orders: tuple[Order, ...]) -> tuple[Command, ...] | None:
    """Return commands from the order of the text to `orders`; None where there are none.

    Terms with the same indices cannot be told apart by a command.
    """
    loops = Loops(assignment, textual_orders(assignment))
    targets = sorted(dict.fromkeys(o for o in orders if o not in loops.orders), key=len)
    commands = tuple(Reorder(order) for order in targets)
    try:
        reached = apply_all(loops, Schedule(commands)).orders
    except ScheduleError:
        return None
    return commands if reached == orders else None


def _sharing(kernel: KernelStep, schedule: Schedule) -> tuple[Command, ...]:
    """Return the loop that threads share where nobody said which."""
    if schedule.serial or schedule.parallel is not None:
        return ()
    graph = graph_of(kernel.recipe())
    shared = ((graph.called(loop), loop.mode) for loop in graph.loops)
    commands = (
        Parallelize(index, mode.parallel, mode.unit)
        for index, mode in shared
        if mode.parallel is not None
    )
    return tuple(dict.fromkeys(commands))
