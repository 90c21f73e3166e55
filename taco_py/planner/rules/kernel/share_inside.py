"""Share an inner loop among threads where the outermost has one iteration.

    Y[i,j] = x[i] * A[i,j]    by loops(i,j), i of size 1
    → the same    by loops(i,j), parallelize(j,CPUThread,NoRaces)

Threads share the outermost loop where nothing else is said, which leaves all work to one of them.
"""

from __future__ import annotations

from dataclasses import replace

from taco_py.compiler.cost.estimate import Statistics
from taco_py.compiler.schedule.apply import loops_of
from taco_py.compiler.schedule.commands import Parallelize
from taco_py.compiler.schedule.parallel import check_shared
from taco_py.compiler.schedule.schedule import OPEN, Schedule
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.problem import Problem
from taco_py.planner.context import Context
from taco_py.planner.ir.goal import real_statistics
from taco_py.planner.ir.program import Program
from taco_py.planner.rules.base import Outcome, Phase, Rewrite, Rule, Site, kernels


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Share the first loop of several iterations, where it is not the outermost."""
    kernel = program.kernel(site.target)
    if len(kernel.schedule.orders) > 1 or not context.goal.machine.teams:
        return None
    stats = real_statistics(kernel.problem.assignment, program.facts, context.goal.machine)
    schedule = shared_inside(kernel.problem, kernel.schedule, stats)
    if not schedule.commands:
        return None
    kernel = replace(kernel, schedule=kernel.schedule.then(schedule))
    return Rewrite(program.with_kernel(kernel), str(schedule))


def shared_inside(problem: Problem, schedule: Schedule, stats: Statistics) -> Schedule:
    """Return the `parallelize(…)` of the first loop with several iterations inside the
    outermost.
    """
    order, *further = schedule.orders
    if further or not order or stats.sizes[order[0]] != 1:
        return OPEN
    first = next((index for index in order if stats.sizes[index] > 1), None)
    if first is None:
        return OPEN
    parallel = Schedule((Parallelize(first),))
    try:
        loops = loops_of(problem.assignment, schedule.then(parallel))
        check_shared(loops.graph(problem))
    except ScheduleError:
        return OPEN
    return parallel


RULE = Rule("share_inside", Phase.KERNEL, apply, kernels)
