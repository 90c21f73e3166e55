"""Whether kernels of a GPU and their host can do what loop IR asks for, before any is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codegen.target import CUDA, UnsupportedError
from taco_py.diagnostics.errors import ScheduleError
from taco_py.problem import Problem

if TYPE_CHECKING:
    from codegen.ir import Module


def check_kernels(problem: Problem, module: Module) -> None:
    """Raise ScheduleError where no kernels of a GPU, or no host of theirs, do it.

    module  what a problem is lowered to, before all passes
    """
    from codegen.emit.cuda import emit_cuda
    from codegen.emit.host_python import emit_host
    from codegen.passes.order import run_passes

    try:
        module = run_passes(module, CUDA)
        emit_cuda(module, CUDA)
        emit_host(module)  # which has no words for some expressions
    except UnsupportedError as error:
        raise ScheduleError(
            f"Expected what kernels of a GPU compute, found {problem}: {error}",
            hint='give commands that belong together as one step, s.apply("…"), or leave target= '
            "out to compute it on the CPU",
        ) from error
