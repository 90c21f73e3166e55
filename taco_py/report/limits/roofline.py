"""Where a plan stands under the roofs of its processor: what a picture of it shows.

operations a byte  →  operations a second, at most: min(peak, intensity · bytes a second)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import fsum

from codegen.records import dataclass
from taco_py.arguments.operands import operand_facts
from taco_py.compiler.driver import CompiledKernel
from taco_py.data.storage.tensor_data import TensorData
from taco_py.language.notation.printer import to_text
from taco_py.planner.ir.nodes import KernelStep, Operand
from taco_py.planner.ir.plan import Plan
from taco_py.report.limits.gpu_bound import gpu_bound, gpu_here
from taco_py.report.limits.kernel_bound import Bound, bound
from taco_py.report.limits.measure_ceilings import ceilings_here
from taco_py.report.limits.operand_memory import SEPARATE, operand_memory, step_memory
from taco_py.report.limits.plan_bound import total_seconds
from taco_py.report.limits.plan_facts import facts_for_bounds
from taco_py.running.execute.work import useful_threads


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """A roof that rises: its name and its bytes a second."""

    name: str
    rate: float


@dataclass(frozen=True, slots=True)
class Standing:
    """A kernel: its text, and the least seconds of it."""

    text: str
    bound: Bound


@dataclass(frozen=True, slots=True)
class Roofline:
    """The roofs, and what stands below them.

    processor  and `when` it was measured; "" of a GPU, whose data sheet it is
    threads    that run the kernels, at most
    dtype      of the result, whose peak is drawn
    peak       operations a second, None where it is not known
    seconds    the least that all kernels take together
    expected, measured  seconds of all kernels together, None where there are none
    """

    processor: str
    when: str
    threads: int
    dtype: str
    peak: float | None
    roofs: tuple[Bandwidth, ...]
    kernels: tuple[Standing, ...]
    seconds: float = 0.0
    expected: float | None = None
    measured: float | None = None

    @property
    def flops(self) -> float:
        """Return operations of all kernels."""
        return fsum(kernel.bound.flops for kernel in self.kernels)

    @property
    def bytes(self) -> float:
        """Return bytes that all kernels move at least."""
        return fsum(kernel.bound.bytes for kernel in self.kernels)

    @property
    def limiting(self) -> Bound | None:
        """Return the bound of the kernel that takes longest."""
        bounds = (kernel.bound for kernel in self.kernels)
        return max(bounds, key=lambda kernel: kernel.seconds, default=None)


def facts_with(plan: Plan, tensors: Mapping[str, TensorData] | None) -> Mapping[str, Operand]:
    """Return the facts of all tensors of a plan: of those that are there, and as they were
    planned."""
    return {**plan.program.facts, **_facts_of(tensors)}


def _facts_of(tensors: Mapping[str, TensorData] | None) -> dict[str, Operand]:
    return {name: operand_facts(data) for name, data in (tensors or {}).items()}


def roofline_of(
    plan: Plan,
    kernels: Sequence[CompiledKernel],
    tensors: Mapping[str, TensorData] | None,
    limit: int,
) -> Roofline:
    """Return the upper bound on the speed of a plan, with its reason.

    tensors  the operands, None for those that it was planned for
    limit    the most threads that a call may use

    Raises CompilerError where the processor has to be measured and cannot be.
    """
    facts, dtype = facts_for_bounds(plan, _facts_of(tensors)), plan.result.dtype
    memory = SEPARATE if tensors is None else operand_memory(tensors)
    pairs = [*_with_facts(plan, kernels, facts)]
    aliases_of = [step_memory(step, plan, memory) for step, _ in pairs]
    if plan.machine.is_gpu:
        return _on_gpu(plan, [step for step, _ in pairs], facts, aliases_of)
    ceilings = ceilings_here()
    counts = [_threads(plan, step, kernel, tensors, limit) for step, kernel in pairs]
    bounds = [
        bound(step, facts, ceilings, count, aliases)
        for (step, _), count, aliases in zip(pairs, counts, aliases_of, strict=True)
    ]
    threads = max(counts, default=1)
    roofs = tuple(
        Bandwidth(roof.name, roof.rate.of(threads, ceilings.threads)) for roof in ceilings.roofs
    )
    peak = ceilings.peak(dtype, threads)
    stands = _standings(plan, [step for step, _ in pairs], bounds)
    return Roofline(ceilings.processor, ceilings.when, threads, dtype, peak, roofs, *stands)


def _on_gpu(
    plan: Plan,
    steps: Sequence[KernelStep],
    facts: Mapping[str, Operand],
    aliases_of: Sequence[Mapping[str, str]],
) -> Roofline:
    """Return the same of a GPU, by its data sheet; no roofs where we have none."""
    gpu, dtype = gpu_here(), plan.result.dtype
    if gpu is None:
        return Roofline("a GPU without figures", "", 0, dtype, None, (), ())
    pairs = zip(steps, aliases_of, strict=True)
    bounds = [gpu_bound(step, facts, gpu, aliases) for step, aliases in pairs]
    roofs = (Bandwidth("memory", gpu.memory_bytes_per_second),)
    stands = _standings(plan, steps, bounds)
    return Roofline(gpu.name, "", 0, dtype, gpu.peak(dtype), roofs, *stands)


def _standings(
    plan: Plan, steps: Sequence[KernelStep], bounds: Sequence[Bound]
) -> tuple[tuple[Standing, ...], float]:
    """Return each kernel, and the least seconds of all."""
    pairs = [*zip(steps, bounds, strict=True)]
    seconds = {step.target: bound.seconds for step, bound in pairs}
    standings = tuple(Standing(_text(step), bound) for step, bound in pairs)
    return standings, total_seconds(plan, seconds)


def _with_facts(
    plan: Plan, kernels: Sequence[CompiledKernel], facts: Mapping[str, Operand]
) -> Iterator[tuple[KernelStep, CompiledKernel]]:
    for step, kernel in zip(plan.kernels, kernels, strict=True):
        if all(step.source(name) in facts for name, _ in step.problem.operands):
            yield step, kernel


def _threads(
    plan: Plan,
    step: KernelStep,
    kernel: CompiledKernel,
    tensors: Mapping[str, TensorData] | None,
    limit: int,
) -> int:
    """Return the threads that really run a kernel, as far as it is known."""
    if not (kernel.threaded or kernel.routine):
        return 1
    data_of = {name: (tensors or {}).get(step.source(name)) for name, _ in step.problem.operands}
    present = {name: data for name, data in data_of.items() if data is not None}
    if kernel.routine or len(present) < len(data_of):
        return limit
    return useful_threads(step, present, limit, plan.machine)


def _text(step: KernelStep) -> str:
    return to_text(step.problem.assignment)
