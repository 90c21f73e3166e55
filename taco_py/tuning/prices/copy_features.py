"""What is counted of a copy of a plan: the features of a step that stores a tensor otherwise.

A_ji = reformat(A, CSC)   →   step reformat 1, log entries, log rows, lists before and after, …
"""

from __future__ import annotations

from math import log2, prod

import numpy as np
from numpy.typing import NDArray

from taco_py.language.legal.stored import is_full
from taco_py.planner.ir.nodes import Cast, Gather, Locate, Operand, Reformat
from taco_py.tuning.prices.kernel_features import ABSENT, FEATURES

Copy = Reformat | Gather | Cast | Locate
COPIES: tuple[type[Copy], ...] = (Reformat, Gather, Cast, Locate)
"""The steps whose analytic price depends on their operands."""


def features_of_copy(
    step: Copy, source: Operand, target: Operand, seconds: float, threads: int
) -> NDArray[np.float64]:
    """Return the numbers of `FEATURES` for a copy; those that only kernels have are `ABSENT`.

    source, target   what is copied, and the copy
    seconds  of it by the analytic price
    """
    format, new = source.type.format, target.type.format
    item = np.dtype(source.type.element).itemsize
    lists = sum(not level.full for level in format.levels)
    entries = log2(max(source.stored, 1.0))
    numbers = {
        "price": log2(max(seconds, 1e-12)),
        f"step {type(step).__name__.lower()}": 1.0,
        "threads": float(threads),
        "iterations": entries,
        "volume": log2(max(prod(source.shape), 1)),
        "entries": entries,
        "density": log2(max(source.stored, 0.5) / max(prod(source.shape), 1)),
        "lists": float(lists),
        "item": float(item),
        "bytes": log2(max(source.stored * (item + 4 * lists), 1.0)),
        "result order": float(len(source.shape)),
        "result dense": float(is_full(new)),
        "result entries": log2(max(prod(source.shape) if is_full(new) else source.stored, 1.0)),
        "outer size": log2(max(target.shape[new.mode_order[0]], 1)) if target.shape else 0.0,
        "outer size before": (
            log2(max(source.shape[format.mode_order[0]], 1)) if source.shape else 0.0
        ),
        "lists of the copy": float(sum(not level.full for level in new.levels)),
        "order changes": float(format.mode_order != new.mode_order),
    }
    row = np.full(len(FEATURES), ABSENT)
    for place, name in enumerate(FEATURES):
        row[place] = numbers.get(name, 0.0 if name.startswith(("step ", "way ")) else ABSENT)
    return row
