"""What a plan does and why, as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from taco_py.compiler.cost.machine import Machine
from taco_py.compiler.driver import CompiledKernel, native_target
from taco_py.compiler.schedule.loop_state import textual_orders
from taco_py.data.storage.tensor_data import TensorData
from taco_py.language.notation.printer import to_text
from taco_py.planner.ir.nodes import (
    KernelStep,
    Locate,
    TakeValues,
    has_format,
    reads_elements,
)
from taco_py.planner.ir.plan import Plan
from taco_py.report.explanation.gpu_resources import describe_resources
from taco_py.report.explanation.memory_traffic import describe_traffic
from taco_py.report.explanation.peak import describe_peak
from taco_py.report.explanation.plan_roofline import describe_roofline
from taco_py.report.explanation.summary import summary
from taco_py.running.execute.independent_kernels import independent_groups, least_taken_over
from taco_py.running.execute.run import IN_ORDER
from taco_py.running.execute.transform import transformed
from taco_py.running.execute.work import describe_threads

ON_HOST = ", on the host, to which arrays of a device are copied for it"
"""What is said of steps without a kernel in the plan of a GPU."""


def explain(
    plan: Plan,
    kernels: Sequence[CompiledKernel],
    copies: Sequence[str] = (),
    limit: int = 1,
    tensors: Mapping[str, TensorData] | None = None,
) -> str:
    """Return every step, with the notation, iteration graph, loops, formats and workspaces of its
    kernel.

    kernels  the compiled kernel of each KernelStep, in order
    copies   what is copied besides, because of the data at hand
    limit    the most threads that a call may use
    tensors  the operands, where they are known
    """
    operands = None if tensors is None else _with_copies(plan, tensors)
    lines = [*summary(plan, limit), *describe_roofline(plan, kernels, tensors, limit)]
    if tensors is not None and not plan.machine.is_gpu:
        lines += describe_peak(plan, kernels, tensors, limit)
    lines += [f"copy      {copy}" for copy in copies]
    lines += [f"budget    {cut}" for cut in plan.cuts]
    lines += [f"result    {plan.stored}"] if plan.stored else []
    lines += [f"sizes     {plan.sizes}"] if plan.sizes else []
    lines += [f"sums      {form}" for form in plan.forms]
    lines += _concurrent_kernels(plan, limit)
    compiled = iter(kernels)
    for note in plan.notes:
        lines.append(f"split     {note}")
    for step in plan.steps:
        if isinstance(step, KernelStep):
            lines += _kernel(step, next(compiled), operands, limit, plan.machine)
        else:
            moves = plan.machine.is_gpu and reads_elements(step)
            lines.append(f"{step.line}{ON_HOST * moves}")
    return "\n".join(lines)


def _concurrent_kernels(plan: Plan, limit: int) -> Iterator[str]:
    """Tell which kernels run beside each other in later calls, and from when on."""
    for group in independent_groups(plan) if limit > 1 else ():
        names = ", ".join(plan.steps[number].target for number in group)
        yield (
            f"together  {names}: each in a thread of its own in later calls, where those but the "
            f"largest have {least_taken_over(plan.machine)} iterations and none so many that it "
            "shares its own loops"
        )


def _with_copies(plan: Plan, tensors: Mapping[str, TensorData]) -> Mapping[str, TensorData]:
    """Return the operands, and as many entries of the same shapes for copies of them."""
    operands = dict(tensors)
    for step in plan.steps:
        if isinstance(step, KernelStep) or step.source not in operands:
            continue
        source = operands[step.source]
        if has_format(step):
            operands[step.target] = source
        if isinstance(step, Locate | TakeValues):
            operands[step.target] = transformed(step, source)
    return operands


def _kernel(
    step: KernelStep,
    kernel: CompiledKernel,
    tensors: Mapping[str, TensorData] | None,
    limit: int,
    machine: Machine,
) -> Iterator[str]:
    problem = step.problem
    yield f"kernel    {to_text(problem.assignment)}"
    if step.sources:
        sources = [f"{name} = {tensor}" for name, tensor in step.sources]
        yield f"  computes    {step.target}, with " + ", ".join(sources)
    types = [*problem.operands, (problem.assignment.target.tensor, problem.result)]
    yield "  formats     " + ", ".join(f"{name}: {type}" for name, type in types)
    if problem.static:
        yield "  made for    " + ", ".join(f"{index} = {size}" for index, size in problem.static)
    yield f"  loop order  {_order(step)}"
    yield from _block("  concrete    ", kernel.report.concrete)
    yield from _block("  iterates    ", kernel.report.graph)
    yield from _block("  tiles       ", "\n".join(_tiles(step, kernel, tensors, machine)))
    yield from _block(f"  {step.schedule.make.way:<11} ", step.reason)
    yield from _block("  looks up    ", step.looked_up)
    yield from _block("  adds        ", step.in_turn)
    if kernel.report.stored:
        target = problem.assignment.target.tensor
        every = " and ".join(kernel.report.stored)
        yield f"  stores      every {every} of {target}, for nothing that is walked leaves some out"
    yield "  workspaces  " + ("; ".join(kernel.report.workspaces) or "none")
    needs = [
        f"{tensor} {' and '.join(w for w, on in (('sorted', o), ('without duplicates', u)) if on)}"
        for tensor, o, u in kernel.requirements
    ]
    yield "  relies on   " + ("; ".join(needs) or "nothing but valid arrays")
    if needs:
        yield f"  otherwise   {IN_ORDER}"
    yield from _block("  parallel    ", kernel.report.parallel.replace("; loop ", "\nloop "))
    yield from _block("  launches    ", "\n".join(kernel.report.launches))
    yield from _block("  takes       ", "\n".join(describe_resources(kernel, machine.target)))
    if kernel.threaded:
        yield f"  threads     {describe_threads(step, tensors, limit, machine)}"
    yield f"  compiled    {kernel.seconds * 1e3:.1f} ms, {_hit(kernel.hit)}"


def _order(step: KernelStep) -> str:
    """Return the loops of each term; that nobody chose them, where a schedule derives others from
    them."""
    order = "; ".join(",".join(order) for order in step.schedule.orders)
    is_textual = step.schedule.orders == textual_orders(step.problem.assignment)
    has_commands = step.schedule.shapes and not (step.looked_up or step.in_turn or step.reason)
    has_choice = any(len(loops) > 1 for loops in step.schedule.orders)
    if not (has_commands and is_textual and has_choice):
        return order
    return f"{order}, as written: with commands on loops, reorder(…) alone changes it"


def _tiles(
    step: KernelStep,
    kernel: CompiledKernel,
    tensors: Mapping[str, TensorData] | None,
    machine: Machine,
) -> Iterator[str]:
    """Describe the loops after tiling, and the bytes that move where the sizes are known."""
    tiles = kernel.report.tiles
    yield from tiles
    traffic = describe_traffic(step, tensors, native_target(), machine) if tiles else ""
    if traffic and not any("traffic: " in line for line in tiles):
        yield f"  {traffic}"


def _hit(hit: str) -> str:
    return {
        "memory": "found in this process",
        "disk": "found in the kernel cache on disk",
        "built": "built now",
        "routine": "as it is in the library",
    }[hit]


def _block(head: str, text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines()):
        yield (head if number == 0 else " " * len(head)) + line
