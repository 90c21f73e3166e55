"""How much memory a kernel's growing arrays get before it starts."""

from __future__ import annotations

from collections.abc import Mapping

from taco_py.compiler.lower.bindings import Source
from taco_py.data.storage.tensor_data import TensorData


def first_room(source: Source | None, operands: Mapping[str, TensorData]) -> int:
    """Return elements to reserve: what the sparse operands store together, never less than their
    union.

    A kernel that makes more, as products do, enlarges the array; what is left over is given back.
    Room that is not used costs addresses only (`codegen.runtime.memory.memory_pool`), while an
    array that grows from nothing is copied until it is large. The kernel reserves the first pos
    exactly.
    """
    if source is not None and source.what == "pos":
        return 0
    return sum(data.nnz for data in operands.values() if not data.format.is_dense)
