"""Positions of gathers and scatters checked, negative ones counted from the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from taco_py.data.storage.one_entry_rows import one_entry_rows
from taco_py.data.storage.tensor_data import Array
from taco_py.data.tensors.tensor import Tensor
from taco_py.graph.nodes import Node
from taco_py.language.diagnostics.errors import PositionError

INDEX_TYPES = (np.dtype("int32"), np.dtype("int64"))
"""Types of coordinates that kernels read."""


def positions_operand(node: Node, arrays: Sequence[Any], numbers: Sequence[Any]) -> Tensor:
    """Make the operand of one entry a row from positions, which it reads in place.

    numbers  the sizes of the operand; the last is that of the mode that positions are of

    Raises PositionError, which is an IndexError, for a position outside.
    """
    *extents, size = (int(number) for number in numbers)
    crd = _checked(np.asarray(arrays[0]).reshape(-1), size, node)
    crd = crd if crd.dtype in INDEX_TYPES else crd.astype(np.int64)
    return Tensor(one_entry_rows(crd, (*extents, size), len(extents), node.dtype))


def _checked(flat: Array, size: int, node: Node) -> Array:
    """Return positions from 0 to size - 1."""
    if not flat.size:
        return flat
    least, most = int(flat.min()), int(flat.max())
    if least < -size or most >= size:
        place = int(np.argmax((flat < -size) | (flat >= size)))
        raise PositionError(
            f"Expected positions from {-size} to {size - 1} along axis {node.get('axis')}, found "
            f"{flat[place]}, in {node.place or 'the graph'}",
            hint="positions count from 0; negative ones from the end",
        )
    if least >= 0:
        return flat
    wide = flat.astype(np.int64)
    return np.where(wide < 0, wide + size, wide)
