"""What kernels of a GPU take, for explain(): registers, spills, blocks at once and why no more.

evaluate_1: 40 registers a thread, no spills; 6 blocks at once, 48 of 64 warps, for its registers

The compiler of CUDA says what a thread takes; its binaries are in the kernel cache, so that it is
asked once. What runs at once follows from the limits of the architecture (`codegen.machine.gpu`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from codegen.machine.gpu import MULTIPROCESSORS
from codegen.machine.target import Target, Where
from codegen.occupancy import occupancy
from taco_py.compiler.devices import architecture_of, compiled_reports
from taco_py.compiler.driver import CompiledKernel
from taco_py.language.diagnostics.errors import CompilerError

if TYPE_CHECKING:
    from codegen.toolchain.cuda.ptxas_report import KernelReport

NOT_COMPILED = 'emulated; target="cuda" has registers and what runs at once'


def describe_resources(kernel: CompiledKernel, target: Target) -> Iterator[str]:
    """Yield a line for each kernel, or why there is none."""
    blocks = dict(kernel.report.blocks)
    if not blocks:
        return
    if target.where is not Where.DEVICE:
        yield NOT_COMPILED
        return
    architecture = architecture_of(target.name) or target.gpu.architecture
    try:
        reports = compiled_reports(kernel.source, architecture)
    except CompilerError as error:
        missing = error.hint or error.message.splitlines()[0]
        yield f"registers and what runs at once are known once nvcc is there: {missing}"
        return
    for name, block in blocks.items():
        report = reports.get(name)
        if report is not None:
            yield f"{name}: {_describe_kernel(report, block)}"
    yield f"compiled for {architecture}" if reports else "the compiler does not say it"


def _describe_kernel(report: KernelReport, block: int) -> str:
    """Describe the resources of a thread, and how many blocks a multiprocessor runs at once."""
    spills = f"{report.spills} bytes spilled" if report.spills else "no spills"
    takes = f"{report.registers} registers a thread, {spills}"
    if report.shared_bytes:
        takes += f", {report.shared_bytes} bytes of shared memory a block"
    has = MULTIPROCESSORS.get(report.architecture)
    if has is None or block == 1:
        return takes
    resident = occupancy(has, block, report.registers, report.shared_bytes)
    reason = {
        "warps": "which is all",
        "registers": f"for there are {has.registers} registers",
        "shared memory": f"for there are {has.shared_bytes} bytes of shared memory",
        "blocks": f"for there are at most {has.blocks} blocks",
    }[resident.limiter]
    warps = f"{resident.warps} of {resident.most_warps} warps"
    return f"{takes}; {resident.blocks} blocks at once, {warps}, {reason}"
