"""Stored tensors from arrays that a kernel has grown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taco_py.data.storage.tensor_data import Array, LevelArrays, TensorData
from taco_py.language.fill import Fill
from taco_py.language.formats import Format

BARE = LevelArrays()


def of_grown(
    shape: tuple[int, ...],
    grown: tuple[Array, ...],
    form: Format,
    dtype: str,
    owned: Sequence[Sequence[int | None]],
    values: int | None,
    ordered: bool | None,
    unique: bool | None,
    fill: Fill = "",
) -> TensorData:
    """Return the tensor; its values are zeros where the kernel grows none.

    owned   the places in `grown` of each level's pos and crd
    values  the place of the values
    """
    levels = tuple(
        BARE
        if pos is None and crd is None
        else LevelArrays(None if pos is None else grown[pos], None if crd is None else grown[crd])
        for pos, crd in owned
    )
    if values is not None:
        return TensorData(form, shape, levels, grown[values], ordered, unique, fill)
    zeros = np.zeros(_positions(form, levels, shape), dtype)
    return TensorData(form, shape, levels, zeros, ordered, unique, fill)


def _positions(form: Format, levels: tuple[LevelArrays, ...], shape: tuple[int, ...]) -> int:
    """Return the number of positions of the last level."""
    count = 1
    for level, mode, arrays in zip(form.levels, form.mode_order, levels, strict=True):
        count = count * shape[mode] if level.full else len(arrays.crd)  # type: ignore[arg-type]
    return count
