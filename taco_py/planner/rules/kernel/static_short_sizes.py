"""Compile sizes of two and three into loops over dense arrays.

    O[i,l] = sum(k, A[i,k] * B[l,k])    l and k of size 3
    → the same with the loops  for l in 0..3: for k in 0..3: …

A C compiler unrolls such loops, keeps in registers what they read again and runs vectors along the
loop around them: 2 to 6 times as fast as loops of unknown length. Plans are shared by size classes,
in which two and three are classes of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from taco_py.compiler.cost.machine import Machine
from taco_py.compiler.ways.ways import way_of
from taco_py.data.storage.size_classes import SHORT
from taco_py.language.legal.stored import all_full, is_full_problem
from taco_py.language.problem import Problem
from taco_py.planner.context import Context
from taco_py.planner.ir.goal import real_statistics
from taco_py.planner.ir.program import Program
from taco_py.planner.rules.base import Outcome, Phase, Rewrite, Rule, Site, kernels


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Make the short sizes of a dense kernel static, for operands of these sizes alone."""
    kernel = program.kernel(site.target)
    dense = all_full(type for _, type in kernel.problem.operands)
    if not dense or not context.goal.sized or not way_of(kernel.schedule.make).in_loops:
        return None
    stats = real_statistics(kernel.problem.assignment, program.facts, context.goal.machine)
    problem = with_short_sizes(kernel.problem, stats.sizes, stats.machine)
    if problem is kernel.problem:
        return None
    return Rewrite(program.with_kernel(replace(kernel, problem=problem)))


def with_short_sizes(problem: Problem, sizes: Mapping[str, float], machine: Machine) -> Problem:
    """Return `problem` with its short sizes static, where all is dense and loops are long
    enough.
    """
    static = dict(problem.static)
    short = {i: int(size) for i, size in sizes.items() if size in SHORT and i not in static}
    least = prod(1 << (int(size).bit_length() - 1) for size in sizes.values() if size >= 1)
    enough = least >= machine.dense.static_size_iterations
    if not short or not enough or not is_full_problem(problem):
        return problem
    return replace(problem, static=tuple(sorted({**static, **short}.items())))


RULE = Rule("static_short_sizes", Phase.KERNEL, apply, kernels)
