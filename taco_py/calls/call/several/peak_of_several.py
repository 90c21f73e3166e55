"""What several statements take at most at once, beside their operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from taco_py.arguments.options import CallOptions
from taco_py.calls.call.prepare import prepare_statements
from taco_py.calls.call.several.requested_outputs import RequestedOutputs
from taco_py.data.kernels import KERNELS
from taco_py.language.notation.nodes import Assignment
from taco_py.running.execute.peak_memory import moments


def peak_of_several(
    written: Sequence[Assignment],
    objects: Mapping[str, Any],
    options: CallOptions,
    asked: RequestedOutputs,
) -> tuple[int, int]:
    """Return the bytes of results, temporaries and workspaces: at most at once, and all together.

    What is sparse counts with the most that it may take.
    """
    prepared = prepare_statements(written, objects, options, asked.outputs, asked.formats)
    tensors = {name: given.data for name, given in prepared.given.items()}
    limit = options.threads or KERNELS.cores
    found = tuple(moments(prepared.plan, tensors, prepared.kernels, limit, False))
    peak = max((moment.most for moment in found), default=0)
    return peak, sum(moment.made.most for moment in found)
