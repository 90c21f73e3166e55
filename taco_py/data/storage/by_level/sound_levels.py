"""Checks that compiled loops over levels stay within their arrays, whatever these hold."""

from __future__ import annotations

import numpy as np

from taco_py.data.storage.sizes import level_counts
from taco_py.data.storage.tensor_data import Array, LevelArrays, TensorData, row_of_bits
from taco_py.language.diagnostics.errors import StructureError
from taco_py.language.formats import LevelKind


def are_sound(stored: TensorData) -> bool:
    """Tell whether positions of each level ascend and arrays are as long as they require.

    Coordinates are not checked, which would read each entry: loops skip coordinates beyond the
    shape.
    """
    counts = level_counts(stored)
    levels = zip(stored.format.levels, stored.levels, stored.shape, strict=True)
    for k, (level, arrays, size) in enumerate(levels):
        above = (counts[max(k - 1, 0)], counts[k], counts[k + 1])
        if not _is_sound(level.kind, arrays, above, size):
            return False
    return len(stored.values) >= counts[-1]


def _is_sound(
    kind: LevelKind, arrays: LevelArrays, counts: tuple[int, int, int], size: int
) -> bool:
    """Tell whether one level is sound.

    counts  the numbers of positions two levels above, one level above, and of the level
    """
    grand, parents, count = counts
    pos, crd = arrays.pos, arrays.crd
    if kind is LevelKind.INTERVAL:
        assert pos is not None and crd is not None
        long = min(len(pos), len(crd)) >= parents
        return bool(long and pos.min(initial=0) >= 0 and crd.max(initial=0) <= size)
    required = {
        LevelKind.COMPRESSED: count,
        LevelKind.BANDED: parents,
        LevelKind.PADDED: parents,
        LevelKind.OFFSET: grand,
    }.get(kind, 0)
    if kind is LevelKind.BITMAP and crd is not None:
        required = parents * row_of_bits(size, crd.dtype) // (8 * crd.dtype.itemsize)
    if required and (crd is None or len(crd) < required):
        return False
    return pos is None or (len(pos) == parents + 1 and ascend_from_zero(pos))


def check_rows(data: TensorData) -> None:
    """Raise StructureError where arrays of CSR or CSC would lead to accesses out of bounds.

    Positions have to begin at 0, ascend, and end within the arrays; coordinates have to be within
    the mode.
    """
    pos, crd = data.levels[1].pos, data.levels[1].crd
    assert pos is not None and crd is not None
    outer, inner = data.format.stored(data.shape)
    room = min(len(crd), len(data.values))
    if len(pos) != outer + 1 or not ascend_from_zero(pos) or pos[-1] > room:
        raise StructureError(
            f"Expected {outer + 1} positions that ascend from 0 to at most {room}, found others",
            hint="tp.check says where",
        )
    used = crd[: int(pos[-1])]
    if len(used) and (used.min() < 0 or used.max() >= inner):
        raise StructureError(
            f"Expected coordinates from 0 to {inner - 1}, found {used.min()} to {used.max()}",
            hint="tp.check says where",
        )


def ascend_from_zero(pos: Array) -> bool:
    """Tell whether positions begin at 0 and do not decrease."""
    return bool(pos[0] == 0 and not np.any(pos[1:] < pos[:-1]))
