"""Operands over stored modes, of the user's: views wherever blocks fill their modes.

x of n elements in blocks of 3    →  a view of shape (n/3, 3), or of a copy with zeros behind
A in ds, rows in blocks of 3      →  the same arrays as dds
A in BSR(3,3), a bsr_array        →  the arrays that it stores, as dsdd
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.calls.remapped.cut_indices import Part
from taco_py.data.interop.scipy_remapped import from_remapped
from taco_py.data.storage.room import room
from taco_py.data.storage.tensor_data import Array, LevelArrays, TensorData
from taco_py.data.tensors.remapped_tensor import RemappedTensor
from taco_py.data.tensors.tensor import Tensor, as_data
from taco_py.language.formats import LETTERS, Format
from taco_py.language.formats.remapped import RemappedFormat

Maker = Callable[[Any], Any]


@dataclass(frozen=True, slots=True, eq=False)
class OperandRecipe:
    """How an operand over stored modes is made of the user's, and that in words."""

    make: Maker
    note: str


def adjacent(shape: Sequence[int], cuts: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes of the modes, a mode in blocks as the block count and the block size.

    >>> adjacent((7, 4), (3, 0))
    (3, 3, 4)
    """
    sizes: list[int] = []
    for size, cut in zip(shape, cuts, strict=True):
        sizes += [-(-size // cut), cut] if cut else [size]
    return tuple(sizes)


def filled_up(shape: Sequence[int], cuts: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes of the modes where the last blocks are full.

    >>> filled_up((7, 4), (3, 0))
    (9, 4)
    """
    pairs = zip(shape, cuts, strict=True)
    return tuple(-(-size // cut) * cut if cut else size for size, cut in pairs)


def operand_recipe(part: Part, obj: Any, shape: tuple[int, ...]) -> OperandRecipe:
    """Return the recipe that makes an operand, for operands of this kind and shape."""
    form, cuts = part.form, part.cuts
    if isinstance(form, RemappedFormat):
        return OperandRecipe(stored_tensor, f"the arrays of {form}")
    if not any(cuts):
        return OperandRecipe(_itself, "")
    fills = filled_up(shape, cuts) == shape
    if form.is_dense:
        if isinstance(obj, Tensor):
            inner = dense_maker(shape, cuts)
            make: Maker = lambda tensor: inner(tensor.data.values)  # noqa: E731
        elif isinstance(obj, np.ndarray):
            make = dense_maker(shape, cuts)
        else:
            inner = dense_maker(shape, cuts)
            make = lambda operand: inner(as_data(operand).values)  # noqa: E731
        note = "a view" if fills else f"a copy of {prod(filled_up(shape, cuts))} elements, 0 behind"
        return OperandRecipe(make, note)
    return OperandRecipe(sparse_maker(shape, cuts), f"the arrays of {form}, dense levels in blocks")


def _itself(obj: Any) -> Any:
    return obj


def stored_tensor(obj: Any) -> Tensor:
    """Return the stored tensor of a tensor in blocks, or of a bsr array."""
    if isinstance(obj, RemappedTensor):
        return obj.stored
    return Tensor(from_remapped(obj)[0])


def dense_maker(shape: tuple[int, ...], cuts: Sequence[int]) -> Callable[[Array], Array]:
    """Make a function of arrays of this shape: a view in blocks, of a copy where they are not
    full."""
    blocks, padded = adjacent(shape, cuts), filled_up(shape, cuts)
    if padded == shape:
        return lambda array: array.reshape(blocks)
    padding = [(0, full - size) for full, size in zip(padded, shape, strict=True)]

    def make(array: Array) -> Array:
        with room("an operand with zeros behind it", prod(padded) * array.itemsize):
            return np.pad(array, padding).reshape(blocks)

    return make


def sparse_maker(shape: tuple[int, ...], cuts: Sequence[int]) -> Callable[[Any], Tensor]:
    """Make a function of sparse operands of this shape: dense levels in blocks are two."""
    blocks, padded = adjacent(shape, cuts), filled_up(shape, cuts)

    def make(obj: Any) -> Tensor:
        data = as_data(obj)
        if padded != shape:
            data = _with_empty_rows(data, padded)
        return Tensor(in_two(data, cuts, blocks))

    return make


def in_two(data: TensorData, cuts: Sequence[int], shape: tuple[int, ...]) -> TensorData:
    """Return the same arrays with each dense level of a mode in blocks as two levels."""
    places, at = list[int](), 0
    for cut in cuts:
        places.append(at)
        at += 2 if cut else 1
    levels, arrays, order = [], list[LevelArrays](), list[int]()
    for level, level_arrays, mode in zip(
        data.format.levels, data.levels, data.format.mode_order, strict=True
    ):
        levels.append(level)
        arrays.append(level_arrays)
        order.append(places[mode])
        if cuts[mode]:
            levels.append(LETTERS["d"])
            arrays.append(LevelArrays())
            order.append(places[mode] + 1)
    form = Format(tuple(levels), tuple(order))
    return replace(data, format=form, shape=shape, levels=tuple(arrays))


def format_in_two(form: Format, cuts: Sequence[int]) -> Format:
    """Return the format of an operand whose dense levels of modes in blocks are two each.

    >>> str(format_in_two(Format.parse("ds"), (3, 0)))
    'dds'
    """
    nothing = (LevelArrays(),) * form.order
    empty = TensorData(form, (0,) * form.order, nothing, np.zeros(0))
    return in_two(empty, cuts, ()).format


def can_fill_up(form: Format, cuts: Sequence[int], shape: Sequence[int]) -> bool:
    """Tell whether the sparse operand's last blocks are full, or empty rows fill them up."""
    short = {m for m, (a, b) in enumerate(zip(filled_up(shape, cuts), shape, strict=True)) if a > b}
    if not short:
        return True
    rows = len(form.levels) > 1 and form.levels[1].kind.listed
    return rows and short == {form.mode_order[0]}


def _with_empty_rows(data: TensorData, shape: tuple[int, ...]) -> TensorData:
    """Return a tensor whose first level is dense and whose second has a pos, with more rows."""
    below = data.levels[1]
    assert below.pos is not None
    more = shape[data.format.mode_order[0]] - data.shape[data.format.mode_order[0]]
    pos = np.concatenate((below.pos, np.repeat(below.pos[-1:], more)))
    levels = (data.levels[0], replace(below, pos=pos), *data.levels[2:])
    return replace(data, shape=shape, levels=levels)
