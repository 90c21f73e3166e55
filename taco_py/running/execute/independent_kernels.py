"""Kernels of a plan that may run beside each other, and when their arrays are free."""

from __future__ import annotations

from taco_py.compiler.cost.machine import Machine
from taco_py.compiler.ways.ways import way_of
from taco_py.planner.ir.nodes import Fuse, KernelStep, Step, TakeSize, Unfuse
from taco_py.planner.ir.plan import Plan
from taco_py.planner.ir.program import reads

VIEWS = Fuse | Unfuse | TakeSize
"""Steps between kernels that read no value which a kernel makes, unless they read its result."""


def least_taken_over(machine: Machine) -> int:
    """Return the iterations from which it pays that other threads take over kernels of a group.

    Two kernels of as many iterations have those of a loop that threads share.
    """
    return machine.units.parallel_iterations // 2


def independent_groups(plan: Plan) -> tuple[tuple[int, ...], ...]:
    """Return the numbers of kernels that follow each other and read nothing of each other.

    A group ends with a kernel after which arrays are free, so that it holds no more than its
    kernels do one after another. It is for CPUs: a GPU's kernels are launched in order.
    """
    if plan.machine.is_gpu:
        return ()
    free = free_after(plan)
    groups: list[tuple[int, ...]] = []
    members: list[int] = []
    targets: set[str] = set()
    for number, step in enumerate(plan.steps):
        if targets.intersection(reads(step)) or not _may_join(step):
            groups.append(tuple(members))
            members, targets = [], set()
        if isinstance(step, KernelStep) and _may_join(step):
            members.append(number)
            targets.add(step.target)
        if members and free.get(number):
            groups.append(tuple(members))
            members, targets = [], set()
    return tuple(group for group in (*groups, tuple(members)) if len(group) > 1)


def _may_join(step: Step) -> bool:
    """Tell whether a step may run before or beside the earlier kernels that it does not read."""
    if not isinstance(step, KernelStep):
        return isinstance(step, VIEWS)
    return step.problem.result.format.is_dense and way_of(step.schedule.make).routine is None


def free_after(plan: Plan) -> dict[int, list[str]]:
    """Return the tensors whose memory is free after a step."""
    root: dict[str, str] = {}
    last: dict[str, int] = {}
    for number, step in enumerate(plan.steps):
        for name in reads(step):
            if name in root:
                last[root[name]] = number
        shares = not isinstance(step, KernelStep | TakeSize)
        source = "" if isinstance(step, KernelStep) else step.source
        root[step.target] = root.get(source, source) if shares else step.target
        last.setdefault(root[step.target], number)
    results = {root[name] for name in plan.program.results if name in root}
    freed: dict[int, list[str]] = {}
    for name, source in root.items():
        if source not in results:
            freed.setdefault(last.get(source, 0), []).append(name)
    return freed
