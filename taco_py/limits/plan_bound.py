"""The least seconds of a plan: of its kernels in turn, each on the processor that it was made for.

    least_seconds(plan)   →   1.2e-05

What takes longer than something that was measured already need not be compiled: `tune` and others
ask before they do. Copies and conversions between kernels count nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import fsum

from taco_py.diagnostics.errors import CompilerError
from taco_py.kernels import KERNELS
from taco_py.limits.ceilings import Ceilings
from taco_py.limits.gpu_bound import gpu_bound
from taco_py.limits.kernel_bound import Bound, bound
from taco_py.limits.measure_ceilings import ceilings_here
from taco_py.plan.ir.nodes import KernelStep, Operand
from taco_py.plan.ir.plan import Plan


def least_seconds(
    plan: Plan, facts: Mapping[str, Operand] | None = None, threads: int | None = None
) -> float:
    """Return the least seconds of a plan here; 0.0 where nothing is known of what it does.

    facts    of the operands, where they are not those that it was made for
    threads  that a call may use, None for as many as are allowed
    """
    try:
        found = plan_bound(plan, facts, threads)
    except CompilerError:  # nothing can be measured, so that nothing is known
        return 0.0
    return found.seconds


def plan_bound(
    plan: Plan,
    facts: Mapping[str, Operand] | None = None,
    threads: int | None = None,
    ceilings: Ceilings | None = None,
) -> Bound:
    """The least seconds of the kernels of a plan in turn, and what says so of the longest.

    Raises CompilerError where the processor has to be measured and cannot be.
    """
    known = {**plan.program.facts, **(facts or {})}
    bounds = [step_bound(step, plan, known, threads, ceilings) for step in plan.kernels]
    found = [each for each in bounds if each is not None]
    if not found:
        return Bound(0.0, "nothing", "nothing is known of it", 0.0, 0.0)
    longest = max(found, key=lambda each: each.seconds)
    if len(found) == 1:
        return longest
    return Bound(
        fsum(each.seconds for each in found),
        longest.limited_by,
        longest.why,
        fsum(each.flops for each in found),
        fsum(each.bytes for each in found),
        longest.limits,
    )


def step_bound(
    step: KernelStep,
    plan: Plan,
    facts: Mapping[str, Operand],
    threads: int | None = None,
    ceilings: Ceilings | None = None,
) -> Bound | None:
    """The least seconds of one kernel of a plan; None where facts of an operand are not known."""
    if any(step.source(name) not in facts for name, _ in step.problem.operands):
        return None
    if plan.machine.is_gpu:
        return gpu_bound(step, facts)
    limit = KERNELS.cores if threads is None else threads
    return bound(step, facts, ceilings or ceilings_here(), limit)
