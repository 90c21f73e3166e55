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
from taco_py.report.limits.operand_memory import SEPARATE, UNKNOWN, OperandMemory, step_memory
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
        slowest = plan_bound(plan, facts, threads, memory=memory)
    except CompilerError:  # nothing can be measured, so that nothing is known
        return 0.0
    return slowest.seconds


def plan_bound(
    plan: Plan,
    facts: Mapping[str, Operand] | None = None,
    threads: int | None = None,
    ceilings: Ceilings | None = None,
    memory: OperandMemory = SEPARATE,
) -> Bound:
    """Return the least seconds of the kernels of a plan, and the limit of the longest one.

    memory  behind the operands; by default each has its own, which facts do not tell

    Raises CompilerError where the processor has to be measured and cannot be.
    """
    operand_facts = facts_for_bounds(plan, facts)
    bounds = {
        step.target: step_bound(step, plan, operand_facts, threads, ceilings, memory)
        for step in plan.kernels
    }
    known_bounds = {target: b for target, b in bounds.items() if b is not None}
    if not known_bounds:
        return NOTHING
    longest = max(known_bounds.values(), key=lambda b: b.seconds)
    if len(known_bounds) == 1:
        return longest
    return Bound(
        total_seconds(plan, {target: b.seconds for target, b in known_bounds.items()}),
        longest.limited_by,
        longest.reason,
        fsum(b.flops for b in known_bounds.values()),
        fsum(b.bytes for b in known_bounds.values()),
        longest.limits,
    )


def total_seconds(plan: Plan, seconds: Mapping[str, float]) -> float:
    """Return the least seconds of kernels by their results: in turn, but for groups that may run
    beside each other.

    T, U and then y, of 1, 2 and 4 seconds, T and U together   →   6
    """
    left = dict(seconds)
    longest = []
    for group in independent_groups(plan):
        times = [left.pop(name, 0.0) for name in (plan.steps[number].target for number in group)]
        longest.append(max(times))
    return fsum((*longest, *left.values()))


def step_bound(
    step: KernelStep,
    plan: Plan,
    facts: Mapping[str, Operand],
    threads: int | None = None,
    ceilings: Ceilings | None = None,
    memory: OperandMemory = SEPARATE,
) -> Bound | None:
    """Return the least seconds of one kernel of a plan; None where facts of an operand are not
    known, or the figures of a GPU."""
    if any(step.source(name) not in facts for name, _ in step.problem.operands):
        return None
    memory_of = step_memory(step, plan, memory)
    if plan.machine.is_gpu:
        gpu = gpu_here()
        return None if gpu is None else gpu_bound(step, facts, gpu, memory_of)
    limit = KERNELS.cores if threads is None else threads
    return bound(step, facts, ceilings or ceilings_here(), limit, memory_of)
