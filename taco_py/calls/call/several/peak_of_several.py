"""What several statements take at most at once, beside their operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from taco_py.arguments.settings import Settings
from taco_py.calls.call.prepare import prepare_statements
from taco_py.calls.call.several.wishes import Asked
from taco_py.data.kernels import KERNELS
from taco_py.language.notation.nodes import Assignment
from taco_py.running.execute.peak_memory import moments


def peak_of_several(
    written: Sequence[Assignment],
    objects: Mapping[str, Any],
    settings: Settings,
    asked: Asked,
) -> tuple[int, int]:
    """Return the bytes of results, temporaries and workspaces: at most at once, and all together.

    What is sparse counts with the most that it may take.
    """
    prepared = prepare_statements(written, objects, settings, asked.outputs, asked.formats)
    tensors = {name: given.data for name, given in prepared.given.items()}
    limit = settings.threads or KERNELS.cores
    found = tuple(moments(prepared.plan, tensors, prepared.kernels, limit, False))
    peak = max((moment.most for moment in found), default=0)
    return peak, sum(moment.made.most for moment in found)
