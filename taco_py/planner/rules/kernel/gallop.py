"""Gallop through the longer of two operands whose lengths differ much.

    y[i] = sum(j, A[i,j] * B[i,j])    by loops(i,j), A with few entries a row and B with many
    → the same    by loops(i,j), mergeby(j,Gallop)

A search in steps that double finds the next coordinate of A in B: log(n) steps in place of n.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from taco_py.compiler.concrete.nodes import Merge
from taco_py.compiler.cost.estimate import Statistics
from taco_py.compiler.iteration.graph import IterationGraph, Loop
from taco_py.compiler.iteration.region import Iterator as Walk
from taco_py.compiler.order.walk_counts import may_leap
from taco_py.compiler.schedule.apply import loops_of
from taco_py.compiler.schedule.commands import MergeBy
from taco_py.compiler.schedule.merges import check_merge
from taco_py.compiler.schedule.schedule import OPEN, Schedule
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.problem import Problem
from taco_py.planner.context import Context
from taco_py.planner.ir.goal import real_statistics
from taco_py.planner.ir.program import Program
from taco_py.planner.rules.base import Outcome, Phase, Rewrite, Rule, Site, kernels


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Let the shorter operand of a merge gallop through the longer one."""
    kernel = program.kernel(site.target)
    if not kernel.may_merge:
        return None
    stats = real_statistics(kernel.problem.assignment, program.facts, context.goal.machine)
    schedule = leaps(kernel.problem, kernel.schedule, stats)
    if not schedule.commands:
        return None
    kernel = replace(kernel, schedule=kernel.schedule.then(schedule))
    return Rewrite(program.with_kernel(kernel), str(schedule))


def leaps(problem: Problem, schedule: Schedule, stats: Statistics) -> Schedule:
    """Return the `mergeby(…,Gallop)` of loops over intersections; usually none."""
    if not may_leap(stats):
        return OPEN
    graph = loops_of(problem.assignment, schedule).graph(problem)
    paying = dict.fromkeys(loop.index for loop in graph.loops if _pays(loop, stats))
    indices = (
        i for i in paying if all(_can(graph, nest) for nest in graph.loops if nest.index == i)
    )
    return Schedule(tuple(MergeBy(index, Merge.GALLOP) for index in indices))


def _can(graph: IterationGraph, loop: Loop) -> bool:
    try:
        check_merge(graph, replace(loop, mode=replace(loop.mode, merge=Merge.GALLOP)))
    except ScheduleError:
        return False
    return True


def _pays(loop: Loop, stats: Statistics) -> bool:
    lengths = [length for walk in loop.lattice.iterators for length in _length(walk, stats)]
    return len(lengths) > 1 and max(lengths) >= stats.machine.loops.gallop_ratio * max(
        1.0, min(lengths)
    )


def _length(walk: Walk, stats: Statistics) -> Iterator[float]:
    """Yield the expected number of coordinates of a level under one entry of the levels above it.

    Nothing for a workspace, which has no pattern before the kernel runs.
    """
    pattern = stats.patterns.get(walk.access.tensor)
    if pattern is None:
        return
    modes = pattern.format.mode_order[: walk.level + 1]
    above = frozenset(walk.access.indices[mode] for mode in modes[:-1])
    bound = above | {walk.access.indices[modes[-1]]}
    entries = stats.volume(bound) * stats.access_fraction(walk.access, bound)
    yield entries / max(1.0, stats.volume(above) * stats.access_fraction(walk.access, above))


RULE = Rule("gallop", Phase.KERNEL, apply, kernels)
