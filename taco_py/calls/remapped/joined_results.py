"""Results over stored modes → the result that the user expects.

y[i0,i1]                an array     →  y, a view
C[i0,i1,j0,j1]          in dsdd      →  a tensor in BSR, around the same arrays
C[i0,i1,k]              in dds       →  ds, around the same arrays
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from taco_py.data.storage.by_level.level_tree import is_usual, list_levels
from taco_py.data.storage.pack import expand
from taco_py.data.storage.tensor_data import Array, LevelArrays, TensorData, ordered
from taco_py.data.tensors.remapped_tensor import RemappedTensor
from taco_py.data.tensors.tensor import Tensor
from taco_py.language.fill import as_number
from taco_py.language.formats import BSR, LETTERS, Blocked, Format, RemappedFormat
from taco_py.language.formats.stored_modes import PlainMode, Quotient, Remainder, StoredMode


def joined_array(
    values: Array, shape: tuple[int, ...], cuts: Sequence[int], modes: Sequence[StoredMode]
) -> Array:
    """Return a dense result with its modes joined, without the padding of last blocks."""
    padded = tuple(-(-n // cut) * cut if cut else n for n, cut in zip(shape, cuts, strict=True))
    paired = stored_modes(cuts)
    if tuple(modes) != paired:
        values = values.transpose([modes.index(mode) for mode in paired])
    array = values.reshape(padded)
    if padded == shape:
        return array
    return np.ascontiguousarray(array[tuple(slice(n) for n in shape)])


def stored_modes(cuts: Sequence[int]) -> tuple[StoredMode, ...]:
    """Return the modes of a result over stored modes: quotient and remainder beside one another."""
    modes: list[StoredMode] = []
    for mode, cut in enumerate(cuts):
        modes += [Quotient(mode, cut), Remainder(mode, cut)] if cut else [PlainMode(mode)]
    return tuple(modes)


def outer_first(cuts: Sequence[int]) -> tuple[StoredMode, ...]:
    """Return the same modes with remainders behind all others, as blocks are stored."""
    modes = stored_modes(cuts)
    return (
        *(mode for mode in modes if not mode.is_inside_blocks),
        *(mode for mode in modes if mode.is_inside_blocks),
    )


def in_level_order(data: TensorData) -> TensorData:
    """Return the same arrays of a sparse tensor over modes in the order of its levels."""
    form = Format(data.format.levels, tuple(range(data.format.order)))
    return replace(data, format=form, shape=data.format.stored(data.shape))


def joined_tensor(
    tensor: TensorData,
    shape: tuple[int, ...],
    cuts: Sequence[int],
    modes: Sequence[StoredMode],
    block_formats: Sequence[RemappedFormat],
) -> Tensor:
    """Return a sparse result as a Tensor: in blocks where it is stored so, else in a plain format.

    modes          what each mode of it is
    block_formats  the formats of operands, which a result may have too
    """
    if not any(cuts):
        return Tensor(tensor)
    rows = merged(tensor, shape, cuts, modes)
    if rows is not None:
        return Tensor(rows)
    form = blocks_of_result(tensor, cuts, modes)
    if form is not None and (all(cuts) or form in block_formats):
        places = [modes.index(mode) for mode in form.modes]
        stored_format = Format(form.inner.levels, tuple(places[m] for m in form.inner.mode_order))
        if ordered(tensor.format) == stored_format:
            sizes = tuple(tensor.shape[place] for place in places)
            stored = replace(tensor, format=form.inner, shape=sizes)
            return RemappedTensor(without_ends(stored, form, shape), form, shape)
    data = in_level_order(tensor)
    levels = tuple(tensor.format.stored(modes))
    result = RemappedTensor(data, RemappedFormat("the result", data.format, levels), shape)
    return result.to_format(plain_of(tensor, levels))


def merged(
    tensor: TensorData, shape: tuple[int, ...], cuts: Sequence[int], modes: Sequence[StoredMode]
) -> TensorData | None:
    """Return the same arrays with two dense levels for each mode in blocks as one; None where they
    do not follow each other, or the last block is not full."""
    if any(n % cut for n, cut in zip(shape, cuts, strict=True) if cut):
        return None
    modes = tensor.format.stored(modes)
    levels, arrays, order = [], list[LevelArrays](), list[int]()
    pending: StoredMode | None = None
    for level, level_arrays, mode in zip(tensor.format.levels, tensor.levels, modes, strict=True):
        if pending is not None:
            if not mode.is_inside_blocks or mode.reads[0] != pending.reads[0]:
                return None
            if not level.full:
                return None
            pending = None
            continue
        if mode.is_inside_blocks:
            return None
        if mode.numbers_blocks:
            if not level.full or level.arrays:
                return None
            pending = mode
        levels.append(level)
        arrays.append(level_arrays)
        order.append(mode.reads[0])
    form = Format(tuple(levels), tuple(order))
    return replace(tensor, format=form, shape=shape, levels=tuple(arrays))


def blocks_of_result(
    tensor: TensorData, cuts: Sequence[int], modes: Sequence[StoredMode]
) -> RemappedFormat | None:
    """Return the format of a result that stores blocks below all else; None where it does not."""
    form, modes = ordered(tensor.format), tensor.format.stored(modes)
    outer = len(cuts)
    places = [mode.reads[0] for mode in modes[:outer]]
    inside = [mode.reads[0] for mode in modes[outer:]]
    if any(mode.is_inside_blocks for mode in modes[:outer]) or inside != sorted(inside):
        return None
    if any(level != LETTERS["d"] for level in form.levels[outer:]):
        return None
    above = Format(form.levels[:outer], tuple(places))
    if any(level.branchless for level in above.levels) or not above.is_unique:
        return None
    if len(cuts) == 2 and all(cuts) and str(above) == "ds":
        return BSR(cuts)
    if 1 in cuts:
        return None
    return Blocked([cut or 1 for cut in cuts], above)


def plain_of(tensor: TensorData, modes: Sequence[StoredMode]) -> Format:
    """Return the plain format that has the levels of modes and of blocks.

    modes  what each level stores
    """
    outer = [k for k, mode in enumerate(modes) if not mode.is_inside_blocks]
    levels = tuple(ordered(tensor.format).levels[k] for k in outer)
    if any(level.branchless for level in levels) or all(level.full for level in levels):
        levels = (LETTERS["s"],) * len(outer)
    return Format(levels, tuple(modes[k].reads[0] for k in outer))


def without_ends(stored: TensorData, form: RemappedFormat, shape: tuple[int, ...]) -> TensorData:
    """Return the stored tensor with the fill value in the padding of last blocks.

    Other products read zeros there.
    """
    short = [m for m, cut in enumerate(form.cuts) if cut and shape[m] % cut]
    if not short or not stored.nnz:
        return stored
    if not is_usual(stored.format):
        return _without_places_beyond(stored, form, shape)
    outer = form.order
    coordinates = expand(stored, range(outer))
    modes = [mode.reads[0] for mode in form.modes]
    inside = [stored.shape[place] for place in range(outer, len(modes))]
    blocks = stored.values.reshape(-1, *inside)
    values = blocks.copy()
    levels = {mode: level for level, mode in enumerate(form.inner.stored(modes)[:outer])}
    for mode in short:
        last = coordinates[levels[mode]] == shape[mode] // form.cuts[mode]
        axis = 1 + modes[outer:].index(mode)
        index: list[Any] = [slice(None)] * values.ndim
        index[0], index[axis] = last, slice(shape[mode] % form.cuts[mode], None)
        values[tuple(index)] = as_number(stored.fill, values.dtype)
    return replace(stored, values=values.reshape(-1))


def _without_places_beyond(
    stored: TensorData, form: RemappedFormat, shape: tuple[int, ...]
) -> TensorData:
    """Return `without_ends` of formats in which not every position stores a block."""
    columns, places = list_levels(stored, form.inner.order)
    modes = np.argsort(form.inner.mode_order)
    coordinates = form.logical([columns[level].coordinates for level in modes], shape)
    beyond = np.zeros(len(places), np.bool_)
    for column, size in zip(coordinates, shape, strict=True):
        beyond |= column >= size
    values = stored.values.copy()
    values[places[beyond]] = as_number(stored.fill, values.dtype)
    return replace(stored, values=values)
