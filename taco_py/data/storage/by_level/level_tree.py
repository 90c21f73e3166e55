"""Tensors with levels of unusual kinds: packing sorted entries, and listing entries.

Both proceed level by level from the root, for all entries at once (`level_packing`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from taco_py.data.storage.by_level.kinds_packed import packing_of
from taco_py.data.storage.by_level.level_packing import Column, Packing
from taco_py.data.storage.coordinates import scatter_sum
from taco_py.data.storage.room import room
from taco_py.data.storage.tensor_data import Array, LevelArrays, TensorData
from taco_py.language.diagnostics.errors import FormatError
from taco_py.language.fill import Fill, as_number
from taco_py.language.formats import Format, LevelKind


def is_usual(format: Format) -> bool:
    """Tell whether all levels are dense, compressed or singletons."""
    return all(level.kind.usual for level in format.levels)


def fills_up(format: Format) -> bool:
    """Tell whether zeros are stored as padding: the last level has a range of coordinates.

    ds no, sd yes, db yes, ddo yes: its last level stores diagonals as long as rows
    """
    kinds = [level.kind for level in format.levels]
    while kinds and kinds[-1] is LevelKind.OFFSET:
        kinds.pop()
    return bool(kinds) and (kinds[-1].full or kinds[-1].fills)


def asks_order(format: Format) -> bool:
    """Tell whether entries must ascend to be packed."""
    return any(packing_of(level.kind).in_order for level in format.levels)


FILLED = "formats without ragged, banded and bitmap levels store the entries alone"


def pack_tree(
    columns: Sequence[Array],
    values: Array,
    shape: tuple[int, ...],
    format: Format,
    dtype: np.dtype[Any],
    fill: Fill = "",
) -> TensorData:
    """Pack distinct entries from columns in level order. Raises FormatError."""
    levels: list[LevelArrays] = []
    above: list[Column] = []
    counts = [1]
    places = np.zeros(len(values), np.int64)
    columns = list(columns)
    for k, (level, size) in enumerate(zip(format.levels, format.stored(shape), strict=True)):
        packing = Packing(places, columns[k], counts[-1], size, dtype, above, counts)
        packed = packing_of(level.kind).pack(packing)
        levels.append(packed.arrays)
        above.append(Column(packed.places, columns[k]))
        counts.append(packed.count)
        places = packed.places
        if not level.kind.ordered:  # levels below are packed in the order of positions
            order = np.argsort(places, kind="stable")
            places, values = places[order], values[order]
            columns = [column[order] for column in columns]
            above = [Column(column.places[order], column.coordinates[order]) for column in above]
    what = f"a tensor of shape {shape} in the format {format}"
    with room(what, counts[-1] * values.itemsize, FILLED):
        stored = _scattered(counts[-1], places, values, format, fill)
    ascends = all(level.kind.ordered for level in format.levels)
    return TensorData(format, shape, tuple(levels), stored, ascends, True, fill)


def _scattered(count: int, places: Array, values: Array, format: Format, fill: Fill) -> Array:
    """Return the values at their positions. Raises FormatError for different values at one."""
    if not any(level.kind.shared for level in format.levels):
        return scatter_sum(count, places, values, fill)
    stored = np.full(count, as_number(fill, values.dtype) if fill else 0, values.dtype)
    stored[places] = values
    same = (stored[places] == values) | ((values != values) & (stored[places] != stored[places]))
    if not same.all():
        raise FormatError(
            "Expected equal values where a level has one for several coordinates, found others",
            hint="a pattern has one value for all; RLE has one for each run of equal ones",
        )
    return stored


def list_tree(data: TensorData) -> tuple[list[Array], Array]:
    """Return the coordinates, a column a level, and the values of all entries in storage order."""
    above, places = list_levels(data, data.format.order)
    return [column.coordinates for column in above], data.values[places]


def list_levels(data: TensorData, depth: int) -> tuple[list[Column], Array]:
    """Return the entries of the outermost levels, and the positions of the last of these."""
    above: list[Column] = []
    places = np.zeros(1, np.int64)
    sizes = data.format.stored(data.shape)[:depth]
    for level, arrays, size in zip(data.format.levels, data.levels, sizes, strict=False):
        level_entries = packing_of(level.kind).listed(arrays, places, size, above)
        above = [
            Column(column.places[level_entries.owner], column.coordinates[level_entries.owner])
            for column in above
        ]
        above.append(Column(level_entries.places, level_entries.coordinates))
        places = level_entries.places
    return above, places


def counts_of(data: TensorData) -> list[int]:
    """Return the number of positions above each level, and last the number of values."""
    counts = [1]
    sizes = data.format.stored(data.shape)
    for level, arrays, size in zip(data.format.levels, data.levels, sizes, strict=True):
        counts.append(packing_of(level.kind).count(arrays, counts[-1], size))
    return counts
