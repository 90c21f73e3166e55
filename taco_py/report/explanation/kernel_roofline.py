"""The roofline picture of a compiled kernel: its bound, its expected and its measured speed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from taco_py.arguments.operands import BoundOperand
from taco_py.compiler.driver import CompiledKernel
from taco_py.data.kernels import KERNELS
from taco_py.planner.ir.plan import Plan
from taco_py.report.explanation.plan_roofline import timed_roofline

if TYPE_CHECKING:
    from taco_py.report.show.graphs import Drawing


def kernel_roofline(
    path: str | Path | None,
    plan: Plan,
    kernels: Sequence[CompiledKernel],
    threads: int | None,
    operands: Mapping[str, BoundOperand] | None,
    call: Callable[[], object] | None,
) -> Drawing:
    """Draw the kernels of a plan below the roofs of the processor.

    path      of a file to write, None for none
    operands  operands, with which `call` is timed; None for those that the plan was made for

    Raises CompilerError where the processor cannot be measured, OutputError for the file.
    """
    from taco_py.report.limits.roofline_picture import draw_roofline

    tensors = None if operands is None else {name: o.data for name, o in operands.items()}
    drawing = draw_roofline(timed_roofline(plan, kernels, tensors, threads or KERNELS.cores, call))
    if path is not None:
        drawing.save(path)
    return drawing
