"""Small operands of the same kinds as those of a call, for a check against the oracle.

    A: ds/float64/int32 of 100 000 by 80 000   →   A: ds/float64/int32 of 37 by 29

Sizes that plans compile in stay as they are. Values are drawn from those of the operand, so that
what must be positive is. Dense ones have the same order of strides, and gaps where it has gaps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from math import prod

import numpy as np

from taco_py.data.storage.pack import pack_coo
from taco_py.data.storage.size_classes import SHORT
from taco_py.data.storage.tensor_data import Array, TensorData, dense_data
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access, Assignment
from taco_py.planner.ir.nodes import Operand

SIZES = (37, 29, 41, 31, 23, 43)
"""The sizes of indices, in order of their first use, where they are as large at least."""
MOST_ELEMENTS = 1_000_000
"""Elements over all indices, which the oracle forms at once."""
STORED = 0.3
"""The share that sparse operands store."""
LEAST = 4


def small_sizes(
    statements: Sequence[Assignment], sizes: Mapping[str, int], static: Mapping[str, int]
) -> dict[str, int]:
    """Return a small size for each index; static ones, and those of two and three, as they are.

    Indices that read one mode of a tensor, as k and j of A[i,k] * A[k,j], have one size.
    """
    first = _first_of_mode(statements, sizes)
    fixed = {first[i] for i, n in sizes.items() if i in static or n in SHORT or n < LEAST}
    unchanged = {i: n for i, n in sizes.items() if first[i] in fixed}
    free = list(dict.fromkeys(first[i] for i in sizes if i not in unchanged))
    small = {i: min(sizes[i], n) for i, n in zip(free, cycle(SIZES), strict=False)}
    while small and prod(_sizes_by_mode(sizes, first, unchanged, small).values()) > MOST_ELEMENTS:
        largest = max(small, key=lambda index: small[index])
        if small[largest] <= LEAST:
            break
        small[largest] = max(LEAST, small[largest] * 2 // 3)
    return _sizes_by_mode(sizes, first, unchanged, small)


def all_accesses(statements: Sequence[Assignment]) -> list[Access]:
    """Return the accesses of statements; of several statements also their targets."""
    targets = [statement.target for statement in statements] if len(statements) > 1 else []
    return [*(access for statement in statements for access in accesses(statement)), *targets]


def _first_of_mode(statements: Sequence[Assignment], sizes: Iterable[str]) -> dict[str, str]:
    """Return the first index of all that read the same modes: in A[i,k] * A[k,j] that is i of
    each."""
    first = {index: index for index in sizes}
    of_mode: dict[tuple[str, int], str] = {}
    for access in all_accesses(statements):
        for mode, index in enumerate(access.indices):
            if index not in first:
                continue
            one, other = of_mode.setdefault((access.tensor, mode), index), index
            one, other = first[one], first[other]
            first = {i: one if root == other else root for i, root in first.items()}
    return first


def _sizes_by_mode(
    sizes: Iterable[str],
    first: Mapping[str, str],
    unchanged: Mapping[str, int],
    small: Mapping[str, int],
) -> dict[str, int]:
    """Return the size of each index: as it was, or that of the first of its modes."""
    return {index: unchanged.get(index, small.get(first[index], 1)) for index in sizes}


def small_tensors(
    statements: Sequence[Assignment],
    tensors: Mapping[str, TensorData],
    operands: Mapping[str, Operand],
    sizes: Mapping[str, int],
    squeezed: Mapping[str, tuple[int, ...]],
    seed: int = 0,
) -> dict[str, TensorData]:
    """Return a tensor like each operand, where indices have these sizes.

    squeezed  modes of operands that no index stands for, of size 1
    """
    numbers = np.random.default_rng(seed)
    shapes: dict[str, tuple[int, ...]] = {}
    for access in all_accesses(statements):
        if access.tensor in tensors:
            left = iter(access.indices)
            axes = squeezed.get(access.tensor, ())
            order = len(tensors[access.tensor].shape)
            shapes[access.tensor] = tuple(
                1 if m in axes else sizes[next(left)] for m in range(order)
            )
    cache: dict[tuple[int, tuple[int, ...]], TensorData] = {}
    small = {}
    for name, shape in shapes.items():
        key = id(tensors[name]), shape
        if key not in cache:
            cache[key] = _like(tensors[name], operands[name], shape, numbers)
        small[name] = cache[key]
    return small


def _like(
    data: TensorData, operand: Operand, shape: tuple[int, ...], numbers: np.random.Generator
) -> TensorData:
    if data.format.is_dense:
        return _dense_like(data, operand, shape, numbers)
    places = np.flatnonzero(numbers.random(prod(shape)) < STORED)
    columns = np.unravel_index(places, shape) if shape else ()
    values = _drawn(data.values, len(places), numbers)
    index = operand.type.index_dtype
    return pack_coo(columns, values, shape, data.format, index, data.fill, unique=True)


def _dense_like(
    data: TensorData, operand: Operand, shape: tuple[int, ...], numbers: np.random.Generator
) -> TensorData:
    """Return memory with an element more where levels do not go on from the one before."""
    order = operand.type.format.mode_order
    stored = [shape[mode] for mode in order]
    padded = (False, *(not contiguous for contiguous in operand.contiguous))
    room = [n + gap for n, gap in zip(stored, padded + (False,) * len(stored), strict=False)]
    step = 1 if operand.type.unit_stride or not stored else 2
    if stored:
        room[-1] *= step
    memory = np.zeros(room, data.dtype)
    inside = tuple(slice(0, n) for n in stored[:-1])
    array = memory[(*inside, slice(0, stored[-1] * step, step))] if stored else memory
    array[...] = _drawn(data.values, prod(shape), numbers).reshape(stored)
    return dense_data(
        array.transpose(np.argsort(order)) if stored else array, data.format, data.fill
    )


def _drawn(values: Array, count: int, numbers: np.random.Generator) -> Array:
    """Draw so many values of an operand at random; ones where it has none."""
    if not values.size:
        return np.ones(count, values.dtype)
    picked = numbers.integers(0, values.size, count)
    return values.flat[picked]


def stored_places(data: TensorData, coordinates: Sequence[Array]) -> Array:
    """Return a mask of the coordinates that a sparse tensor stores."""
    mask = np.zeros(data.shape, bool)
    mask[tuple(coordinates)] = True
    return mask
