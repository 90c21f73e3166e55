"""Lists of coordinates: fused into sortable keys, sorted, with the values of duplicates summed.

A coordinate list holds one integer array a level ("columns", outermost first) and one value an
entry. The columns are fused into as few int64 keys as hold their bits,

    key = (c0 << bits(size1) | c1) << bits(size2) | c2 …

so that lexicographic order is the order of one number. When the entry's own index also fits into
those 63 bits it is appended below the key: one plain sort then gives both the order and a stable
permutation, several times faster than a stable argsort. Longer keys are sorted by as many bits at a
time as fit, the lowest first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taco_py.language.fill import Fill, as_number
from taco_py.language.notation.half_types import computed_dtype, is_half

Array = NDArray[Any]
KEY_BITS = 63  # an int64 without its sign
FEW = 16
"""The number of entries per duplicate from which duplicates are added one by one."""


def bits_of(size: int) -> int:
    """Return the number of bits that hold every coordinate 0 … size - 1."""
    return max(size - 1, 0).bit_length()


def group_bits(sizes: Sequence[int]) -> list[list[int]]:
    """Group the columns' bits into runs that fit one key each, outermost first.

    >>> group_bits([2**40, 2**30, 8])
    [[40], [30, 3]]
    """
    groups: list[list[int]] = []
    for size in sizes:
        bits = bits_of(size)
        if groups and sum(groups[-1]) + bits <= KEY_BITS:
            groups[-1].append(bits)
        else:
            groups.append([bits])
    return groups


def fuse(columns: Sequence[Array], sizes: Sequence[int]) -> list[Array]:
    """Return keys, most significant first, with the lexicographic order of the columns."""
    keys, start = [], 0
    for bits in group_bits(sizes):
        key = columns[start]
        if len(bits) > 1:
            key = key.astype(np.int64)
            for column, width in zip(columns[start + 1 :], bits[1:], strict=False):
                key <<= width
                key |= column
        keys.append(key)
        start += len(bits)
    return keys


def split(keys: Sequence[Array], sizes: Sequence[int]) -> list[Array]:
    """Return the columns that `fuse` built the keys from."""
    columns = []
    for key, bits in zip(keys, group_bits(sizes), strict=True):
        below = sum(bits)
        for place, width in enumerate(bits):
            below -= width
            column = key >> below if below else key
            columns.append(column & ((1 << width) - 1) if place else column)
    return columns


def unravel(places: Array, sizes: Sequence[int]) -> list[Array]:
    """Return the coordinates of places in an array of these sizes, a column a mode.

    `np.unravel_index` is several times slower: NumPy divides by a constant with multiplications.

    >>> unravel(np.array([1, 5]), (2, 3))
    [array([0, 1]), array([1, 2])]
    """
    if not sizes:
        return []
    columns: list[Array] = []
    for size in reversed(sizes[1:]):
        above = places // size
        columns.append(places - above * size)
        places = above
    return [places, *reversed(columns)]


def ascends(keys: Sequence[Array], strictly: bool) -> NDArray[np.bool_]:
    """Tell for each entry but the first whether it comes (strictly) after its predecessor."""
    last = keys[-1]
    rises = last[1:] > last[:-1] if strictly else last[1:] >= last[:-1]
    for key in reversed(keys[:-1]):
        rises &= key[1:] == key[:-1]
        rises |= key[1:] > key[:-1]
    return rises


def sort_keys(keys: Sequence[Array]) -> tuple[list[Array], Array]:
    """Return the keys in ascending order, and the stable permutation that sorts them."""
    count = len(keys[0])
    index_bits = bits_of(count)
    if len(keys) == 1 and int(keys[0].max()).bit_length() + index_bits <= KEY_BITS:
        packed = keys[0].astype(np.int64)
        packed <<= index_bits
        packed |= np.arange(count)
        packed.sort()
        return [packed >> index_bits], packed & ((1 << index_bits) - 1)
    permutation = np.arange(count)
    for part in _parts(keys, KEY_BITS - index_bits):
        packed = part[permutation].astype(np.int64, copy=False)
        packed <<= index_bits
        packed |= np.arange(count)
        packed.sort()
        packed &= (1 << index_bits) - 1
        permutation = permutation[packed]
    return [key[permutation] for key in keys], permutation


def _parts(keys: Sequence[Array], width: int) -> Iterator[Array]:
    """Yield the keys split into numbers of at most `width` bits, the least significant first."""
    for key in reversed(keys):
        bits = int(key.max()).bit_length()
        for start in range(0, bits, width):
            part = key >> start if start else key
            yield part & ((1 << width) - 1) if bits - start > width else part


def sum_runs(values: Array, starts: Array) -> Array:
    """Return the sum of each run values[starts[r]:starts[r+1]] in the values' own dtype (bool: or).

    Values of 16-bit types are summed in float32, and the sum is rounded.
    """
    if values.dtype == np.bool_:
        return np.logical_or.reduceat(values, starts)
    numbers = values.astype(computed_dtype(values.dtype), copy=False)
    return np.add.reduceat(numbers, starts, dtype=numbers.dtype).astype(values.dtype, copy=False)


def sum_duplicates(values: Array, is_kept: NDArray[np.bool_]) -> Array:
    """Return the kept values, each plus the values up to the next one, in order (bool: or).

    >>> sum_duplicates(np.array([5, 6, 7]), np.array([True, True, False]))
    array([ 5, 13])
    """
    duplicates = np.flatnonzero(~is_kept)
    if values.dtype == np.bool_ or is_half(values.dtype) or len(duplicates) * FEW > len(values):
        return sum_runs(values, np.flatnonzero(is_kept))
    sums = values[is_kept]
    np.add.at(sums, duplicates - np.arange(1, len(duplicates) + 1), values[duplicates])
    return sums


def sort_and_sum(
    columns: Sequence[Array], values: Array, sizes: Sequence[int]
) -> tuple[list[Array], Array]:
    """Return the entries in lexicographic order, without duplicates.

    Values of duplicates are summed in their order of appearance. Sorted entries without duplicates
    are returned without a copy.

    >>> sort_and_sum([np.array([1, 0, 1])], np.array([5, 6, 7]), [2])
    ([array([0, 1])], array([ 6, 12]))
    """
    if not columns:
        total = sum_runs(values, np.array([0])) if len(values) else values
        return [], total
    if len(values) < 2:
        return list(columns), values
    keys = fuse(columns, sizes)
    rises = ascends(keys, strictly=True)
    if rises.all():
        return list(columns), values
    if not ascends(keys, strictly=False).all():
        keys, permutation = sort_keys(keys)
        values = values[permutation]
        rises = ascends(keys, strictly=True)
    if not rises.all():
        is_kept = np.concatenate(([True], rises))
        keys = [key[is_kept] for key in keys]
        values = sum_duplicates(values, is_kept)
    return split(keys, sizes), values


def has_duplicates(columns: Sequence[Array], sizes: Sequence[int]) -> bool:
    """Tell whether a coordinate tuple occurs twice, in any order of the entries."""
    if not columns or len(columns[0]) < 2:
        return False
    keys, _ = sort_keys(fuse(columns, sizes))
    return not bool(ascends(keys, strictly=True).all())


def scatter_sum(size: int, places: Array, values: Array, fill: Fill = "") -> Array:
    """Return a vector in which each value was added at its place (bool: or).

    Places without a value have the fill value; a zero beside it keeps its sign.
    """
    out = np.zeros(size, dtype=computed_dtype(values.dtype))
    if fill and values.dtype != np.bool_:
        np.negative(out, out)
    if values.dtype == np.bool_:
        out[places[values]] = True
    else:
        np.add.at(out, places, values.astype(out.dtype, copy=False))
    out = out.astype(values.dtype, copy=False)
    if fill:
        absent = np.ones(size, dtype=np.bool_)
        absent[places] = False
        out[absent] = as_number(fill, values.dtype)
    return out
