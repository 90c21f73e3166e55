"""The least seconds of a plan: of its kernels, each on the processor that it was made for.

    least_seconds(plan, memory=APART)   →   1.2e-05

What takes longer than something that was measured already need not be compiled: `tune` and others
ask before they do. Copies and conversions between kernels count nothing, and of kernels that may
run beside each other the longest counts alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import fsum

from taco_py.data.kernels import KERNELS
from taco_py.language.diagnostics.errors import CompilerError
from taco_py.planner.ir.nodes import KernelStep, Operand
from taco_py.planner.ir.plan import Plan
from taco_py.report.limits.ceilings import Ceilings
from taco_py.report.limits.gpu_bound import gpu_bound, gpu_here
from taco_py.report.limits.kernel_bound import NOTHING, Bound, bound
from taco_py.report.limits.measure_ceilings import ceilings_here
from taco_py.report.limits.operand_memory import APART, UNKNOWN, OperandMemory, step_memory
from taco_py.report.limits.plan_facts import facts_for_bounds
from taco_py.running.execute.independent_kernels import independent_groups


def least_seconds(
    plan: Plan,
    facts: Mapping[str, Operand] | None = None,
    threads: int | None = None,
    memory: OperandMemory = UNKNOWN,
) -> float:
    """Return the least seconds of a plan here; 0.0 where nothing is known of what it does.

    facts    of the operands, where they are not those that it was made for
    threads  that a call may use, None for as many as are allowed
    memory   behind the operands; where that is unknown, bytes of dense ones count nothing
    """
    try:
        found = plan_bound(plan, facts, threads, memory=memory)
    except CompilerError:  # nothing can be measured, so that nothing is known
        return 0.0
    return found.seconds


def plan_bound(
    plan: Plan,
    facts: Mapping[str, Operand] | None = None,
    threads: int | None = None,
    ceilings: Ceilings | None = None,
    memory: OperandMemory = APART,
) -> Bound:
    """Return the least seconds of the kernels of a plan, and the limit of the longest one.

    memory  behind the operands; by default each has its own, which facts do not tell

    Raises CompilerError where the processor has to be measured and cannot be.
    """
    known = facts_for_bounds(plan, facts)
    bounds = {
        step.target: step_bound(step, plan, known, threads, ceilings, memory)
        for step in plan.kernels
    }
    found = {target: each for target, each in bounds.items() if each is not None}
    if not found:
        return NOTHING
    longest = max(found.values(), key=lambda each: each.seconds)
    if len(found) == 1:
        return longest
    return Bound(
        whole_seconds(plan, {target: each.seconds for target, each in found.items()}),
        longest.limited_by,
        longest.why,
        fsum(each.flops for each in found.values()),
        fsum(each.bytes for each in found.values()),
        longest.limits,
    )


def whole_seconds(plan: Plan, seconds: Mapping[str, float]) -> float:
    """Return the least seconds of kernels by their results: in turn, but for groups that may run
    beside each other.

    T, U and then y, of 1, 2 and 4 seconds, T and U together   →   6
    """
    left = dict(seconds)
    found = []
    for group in independent_groups(plan):
        own = [left.pop(name, 0.0) for name in (plan.steps[number].target for number in group)]
        found.append(max(own))
    return fsum((*found, *left.values()))


def step_bound(
    step: KernelStep,
    plan: Plan,
    facts: Mapping[str, Operand],
    threads: int | None = None,
    ceilings: Ceilings | None = None,
    memory: OperandMemory = APART,
) -> Bound | None:
    """Return the least seconds of one kernel of a plan; None where facts of an operand are not
    known, or the figures of a GPU."""
    if any(step.source(name) not in facts for name, _ in step.problem.operands):
        return None
    behind = step_memory(step, plan, memory)
    if plan.machine.is_gpu:
        gpu = gpu_here()
        return None if gpu is None else gpu_bound(step, facts, gpu, behind)
    limit = KERNELS.cores if threads is None else threads
    return bound(step, facts, ceilings or ceilings_here(), limit, behind)
