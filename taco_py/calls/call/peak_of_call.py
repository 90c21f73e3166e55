"""The bytes that a computation takes at most at once, beside its operands."""

from __future__ import annotations

from taco_py.calls.call.computation import Computation
from taco_py.calls.call.compute import with_chosen_plan
from taco_py.calls.call.prepare import prepare_computation
from taco_py.data.kernels import KERNELS
from taco_py.running.execute.peak_memory import moments


def peak(computation: Computation) -> tuple[int, int]:
    """Return the bytes of results, temporaries and workspaces: at most at once, and all together.

    What is sparse counts with the most that it may take.
    """
    computation, _ = with_chosen_plan(computation)
    prepared = prepare_computation(computation)
    tensors = {name: operand.data for name, operand in prepared.operands.items()}
    limit = computation.options.threads or KERNELS.cores
    steps = tuple(moments(prepared.plan, tensors, prepared.kernels, limit, False))
    return max((step.most for step in steps), default=0), sum(step.result.most for step in steps)
