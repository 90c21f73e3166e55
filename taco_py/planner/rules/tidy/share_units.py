"""Share a kernel's loops among the units of a GPU as is expected to take the least time.

    y[i] = sum(j, A[i,j] * x[j])    by loops(i,j), make(cuda)
    → the same    split(i,i_block,i_warp,8): blocks take i_block, warps i_warp, their lanes j

Prices and candidates are those of `ways.unit_prices` and `ways.unit_choices`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from taco_py.compiler.schedule.commands import Serial
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.compiler.ways.gpu_check import ATOMIC_SUMS
from taco_py.compiler.ways.unit_choices import ONE_THREAD, choose_sharing, is_fixed, scheduled
from taco_py.compiler.ways.ways import way_of
from taco_py.planner.context import Context
from taco_py.planner.ir.goal import real_statistics
from taco_py.planner.ir.program import Program
from taco_py.planner.rules.base import Numbers, Outcome, Phase, Rewrite, Rule, Site, Trait


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Add the commands that share the loops of a GPU's kernel."""
    kernel = program.kernel(site.target)
    facts = {name: program.facts[kernel.source(name)] for name, _ in kernel.problem.operands}
    stats = real_statistics(kernel.problem.assignment, facts, context.goal.machine)
    target = stats.machine.target
    fixed, choice = not context.may(ATOMIC_SUMS), None
    if not kernel.schedule.on_loops.commands:
        choice = choose_sharing(kernel.problem, kernel.schedule, stats, fixed)
    if choice is None and fixed and not is_fixed(kernel.problem, kernel.schedule, target):
        one = kernel.schedule.then(Schedule((Serial(),)))
        if is_fixed(kernel.problem, one, target):
            kernel = replace(kernel, schedule=one, reason=ONE_THREAD)
            return Rewrite(program.with_kernel(kernel), ONE_THREAD)
    if choice is None:
        return None
    schedule = scheduled(kernel.schedule, choice.sharing)
    kernel = replace(kernel, schedule=schedule, reason=choice.reason)
    return Rewrite(program.with_kernel(kernel), choice.sharing.words)


def gpu_kernels(program: Program) -> Iterator[Site]:
    """Yield every kernel of loops that runs on a GPU."""
    ways = ((kernel, way_of(kernel.schedule.make)) for kernel in program.kernels)
    return (Site(kernel.target) for kernel, way in ways if way.on_gpu and way.in_loops)


RULE = Rule("share_units", Phase.KERNEL, apply, gpu_kernels, Numbers.ROUNDS, traits=Trait.INDICES)
