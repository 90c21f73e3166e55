"""The line of `explain()` about memory: what there is at once where it is most.

memory    up to 76.2 kB at once: C in the format ds (up to 73.2 kB), the workspace w (3.0 kB)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from taco_py.compiler.driver import CompiledKernel
from taco_py.data.kernels import KERNELS
from taco_py.data.storage.tensor_data import TensorData
from taco_py.language.diagnostics.memory_errors import bytes_text
from taco_py.planner.ir.plan import Plan
from taco_py.running.execute.peak_memory import moments


def describe_peak(
    plan: Plan,
    kernels: Sequence[CompiledKernel],
    tensors: Mapping[str, TensorData],
    threads: int,
) -> Iterator[str]:
    """Describe the peak memory of a plan besides its operands, and its limit."""
    steps = zip(plan.kernels, kernels, strict=True)
    compiled = {(step.target, "evaluate"): kernel for step, kernel in steps}
    every = tuple(moments(plan, tensors, compiled, threads, False))
    if not every:
        return
    peak = max(every, key=lambda moment: moment.most)
    up_to = "up to " if peak.least < peak.most else ""
    parts = ", ".join(f"{part.what} {part.described_size}" for part in peak.parts(True))
    limit = KERNELS.memory.limit
    allowed = "" if limit is None else f"; allowed are {bytes_text(limit)}"
    yield f"memory    {up_to}{bytes_text(peak.most)} at once: {parts or 'nothing'}{allowed}"
