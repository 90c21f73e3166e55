"""Partition of a matrix by how full the units of a remapped format are.

Each entry is in a unit: a block of BSR, a diagonal of DIA or of a slice of SDIA, a slot of ELL. A
unit has a number of places for entries; where enough are occupied, all its entries belong to the
first part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from taco_py.data.storage.tensor_data import Array, LevelArrays, TensorData
from taco_py.language.diagnostics.errors import FormatError
from taco_py.language.formats import RemappedFormat
from taco_py.language.formats.stored_modes import Coordinates, Slot


def least_fill(data: TensorData) -> float:
    """Return the share of occupied places from which a unit takes no more bytes than CSR.

    values' bytes / (values' bytes + bytes of a coordinate)
    """
    crd = data.levels[1].crd
    assert crd is not None
    return data.dtype.itemsize / (data.dtype.itemsize + crd.dtype.itemsize)


def parted(data: TensorData, format: RemappedFormat, least: float) -> tuple[TensorData, TensorData]:
    """Split a matrix in CSR, sorted and without duplicates, by how full its units are.

    least  the least share of occupied places of units of the first part

    Returns two matrices in CSR. Raises FormatError for a format that has no units.
    """
    if not format.unit:
        raise FormatError(
            f"Expected a format that stores entries in units, found {format}",
            hint="blocks, diagonals and slots are: as in tp.hybrid(A, 'sdia(8)')",
        )
    pos, crd = data.levels[1].pos, data.levels[1].crd
    assert pos is not None and crd is not None
    rows = np.repeat(np.arange(data.shape[0], dtype=crd.dtype), np.diff(pos))
    units, counts = _units((rows, crd), data.shape, format)
    sizes = format.stored_shape(data.shape, [np.zeros(0, np.int64)] * len(format.modes))
    in_full_unit = (counts >= least * max(1, format.room(sizes)))[units]
    return _select(data, in_full_unit), _select(data, ~in_full_unit)


def _units(
    coordinates: Sequence[Coordinates], shape: Sequence[int], format: RemappedFormat
) -> tuple[Array, Array]:
    """Return the number of each entry's unit, and the number of entries of each unit."""
    unit_modes = [format.modes[place] for place in format.unit]
    keys: Array = np.zeros(len(coordinates[0]), np.int64)
    size = 1
    for mode in unit_modes:
        if isinstance(mode, Slot) and all(
            mode_within in unit_modes for mode_within in mode.group_by
        ):
            mode = mode.of_mode  # the ranked coordinate identifies units as well
        column = mode.of(coordinates, shape).astype(np.int64, copy=False)
        low, high = (int(column.min()), int(column.max())) if len(column) else (0, 0)
        if size * (high - low + 1) >= 1 << 62:
            keys = np.unique(keys, return_inverse=True)[1]
            size = len(keys)
        keys = keys * (high - low + 1) + (column - low)
        size *= high - low + 1
    _, units, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return units, counts


def _select(data: TensorData, mask: Array) -> TensorData:
    """Return the marked entries of a matrix in CSR."""
    pos, crd = data.levels[1].pos, data.levels[1].crd
    assert pos is not None and crd is not None
    before = np.zeros(len(mask) + 1, pos.dtype)
    np.cumsum(mask, out=before[1:])
    levels = (data.levels[0], LevelArrays(before[pos], crd[mask]))
    return replace(data, levels=levels, values=data.values[mask])
