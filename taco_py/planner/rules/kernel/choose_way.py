"""Choose the way to make a kernel: loops, register tiles, transposed tiles, or a library's routine.

    C[i,j] = sum(k, A[i,k] * B[k,j])    by loops(i,k,j), all dense and large
    → the same    by loops(i,k,j), make(tiles)

Each way says what it can make and when it takes no more time than the ways behind it (`ways.ways`).
"""

from __future__ import annotations

from dataclasses import replace

from taco_py.compiler.ways.way import Question
from taco_py.compiler.ways.ways import choose
from taco_py.planner.context import Context
from taco_py.planner.ir.goal import real_statistics
from taco_py.planner.ir.program import Program
from taco_py.planner.rules.base import Numbers, Outcome, Phase, Rewrite, Rule, Site, kernels


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Make a kernel by the method with the least expected time."""
    kernel = program.kernel(site.target)
    stats = real_statistics(kernel.problem.assignment, program.facts, context.goal.machine)
    choice = choose(Question(kernel.problem, lambda: stats, context.goal.libraries))
    if choice.make == kernel.schedule.make:
        return None
    kernel = replace(kernel, schedule=kernel.schedule.with_way(choice.make), reason=choice.reason)
    return Rewrite(program.with_kernel(kernel), choice.reason or choice.make.way)


RULE = Rule("choose_way", Phase.KERNEL, apply, kernels, Numbers.ROUNDS)
