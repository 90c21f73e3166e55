"""Sparse operands with subscripts, as sparse operands over indices: their entries, relabelled.

    A[i,j+1]     an entry (r, c) becomes (r, c - 1), where that is a column
    x[i+k]       an entry r becomes (r - k, k) for each k: one for each place of a kernel on it
    A[p[i],j]    an entry (r, c) becomes (i, c) for each i with p[i] = r

The work is in proportion to the entries that come out and those that went in, not to the sizes of
the operand. No entry is added to another.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from taco_py.calls.indexed.domains import Sizes, bounds
from taco_py.calls.indexed.positions import check_inside, is_inside, positions
from taco_py.data.storage.pack import unpack
from taco_py.data.storage.room import room
from taco_py.data.storage.tensor_data import Array, TensorData
from taco_py.language.notation.nodes import Access, Subscript

SMALL = 2**30
"""Below it, sums of two coordinates fit 32 bits."""

SPARSE = 8
"""Coordinates an entry beyond which to count positions takes longer than to search for them."""


class Entries:
    """The entries of a sparse operand while indices are found for them, one mode after another.

    places   the number of each entry in the operand; None while these are all, in order
    columns  the coordinate along each index that is known so far
    """

    def __init__(self, data: TensorData, access: Access, sizes: Sizes) -> None:
        self.shape = data.shape
        self.coords, self.values = unpack(data)
        self.sizes = sizes
        limits = [bounds(mode, sizes) for mode in access.modes]
        small = all(-SMALL < low <= high < SMALL for low, high in limits)
        if not small or max(data.shape, default=0) >= SMALL:
            self.coords = tuple(crd.astype(np.int64, copy=False) for crd in self.coords)
        self.places: Array | None = None
        self.columns: dict[str, Array] = {}

    @property
    def count(self) -> int:
        return len(self.values) if self.places is None else len(self.places)

    def coordinate(self, place: int) -> Array:
        """Return the coordinate of each entry in a mode of the operand."""
        crd = self.coords[place]
        return crd if self.places is None else crd.take(self.places)

    def selected_values(self) -> Array:
        """Return the value of each entry."""
        return self.values if self.places is None else self.values.take(self.places)

    def choose(self, numbers: Array) -> None:
        """Keep or repeat entries, by their numbers."""
        self.places = numbers if self.places is None else self.places.take(numbers)
        self.columns = {name: column.take(numbers) for name, column in self.columns.items()}

    def keep(self, mask: Array) -> None:
        """Keep the entries where `mask` holds."""
        if not mask.all():
            self.choose(np.flatnonzero(mask))

    def solve(self, place: int, mode: Subscript, index: str) -> None:
        """Find the one index of an affine subscript that is not known, from the coordinate."""
        factor = dict(mode.indices)[index]
        left = self.coordinate(place)
        for name, times in mode.indices:
            if name != index:
                left = left - times * self.columns[name]
        if mode.constant:
            left = left - mode.constant
        if abs(factor) > 1:
            mask = left % factor == 0
            self.keep(mask)
            left = left[mask] // factor
        elif factor < 0:
            left = -left
        mask = (left >= 0) & (left < self.sizes[index])
        if mask.all():
            self.columns[index] = left
            return
        numbers = np.flatnonzero(mask)
        self.choose(numbers)
        self.columns[index] = left.take(numbers)

    def spread(self, index: str) -> None:
        """Repeat all entries for each value of an index."""
        size, count = self.sizes[index], self.count
        with room("entries at each place of a window", size * count * 24):
            self.choose(np.tile(np.arange(count), size))
            self.columns[index] = np.repeat(np.arange(size, dtype=self.coords[0].dtype), count)

    def join(self, place: int, mode: Subscript, grid: Array) -> None:
        """Repeat each entry for all indices of which a subscript is its coordinate.

        grid  the position that the subscript is, over its indices
        """
        names, flat, crd = mode.names, grid.reshape(-1), self.coordinate(place)
        inside = np.flatnonzero(is_inside(flat, self.shape[place]))
        order = inside.take(np.argsort(flat.take(inside), kind="stable"))
        first, counts = self.runs(place, flat.take(order), crd)
        total = int(counts.sum())
        with room("entries that are gathered", total * 24):
            begins = np.cumsum(counts) - counts
            steps = np.arange(total) - np.repeat(begins - first, counts)
            self.choose(np.repeat(np.arange(self.count), counts))
            coordinates = np.unravel_index(order[steps], grid.shape)
        for name, column in zip(names, coordinates, strict=True):
            self.columns[name] = column

    def runs(self, place: int, ascending: Array, crd: Array) -> tuple[Array, Array]:
        """Return the first place of each coordinate among ascending positions, and its count."""
        size = self.shape[place]
        if size > SPARSE * (len(ascending) + len(crd)):
            first = np.searchsorted(ascending, crd, "left")
            return first, np.searchsorted(ascending, crd, "right") - first
        counts = np.bincount(ascending, minlength=size)
        return (np.cumsum(counts) - counts).take(crd), counts.take(crd)

    def match(self, place: int, expected: Array) -> None:
        """Keep the entries whose coordinate equals the position of a subscript."""
        self.keep(self.coordinate(place) == expected)


def sparse_window(
    access: Access,
    data: TensorData,
    sizes: Sizes,
    tensors: Mapping[str, TensorData],
    fills: bool,
) -> tuple[list[Array], Array]:
    """Return the entries of an access: a column for each of its indices, and their values.

    fills  whether what is gathered may lie outside of the operand, where nothing is stored

    Raises DimensionError for a position outside, OutOfMemoryError.
    """
    entries = Entries(data, access, sizes)
    modes = list(enumerate(access.modes))
    grids: dict[int, Array] = {}
    for place, mode in modes:
        if mode.gathered:
            shape = tuple(sizes[name] for name in mode.names)
            grid = positions(mode, mode.names, sizes, tensors)
            grids[place] = np.broadcast_to(grid, shape)
            if not fills and 0 not in shape:
                all_positions = positions(mode, access.indices, sizes, tensors)
                check_inside(all_positions, data.shape[place], access, place, tensors)
    while modes:
        place, mode = min(modes, key=lambda candidate: _steps(candidate[1], entries))
        if _advance(entries, place, mode, grids.get(place)):
            modes.remove((place, mode))
    for name in access.indices:
        if name not in entries.columns:  # of no subscript: the same elements for all of its values
            entries.spread(name)
    columns = [entries.columns[name] for name in access.indices]
    return columns, entries.selected_values()


def _steps(mode: Subscript, entries: Entries) -> float:
    """Count how many entries there are for each one after the next step with a mode, about."""
    left = [name for name in mode.names if name not in entries.columns]
    if not left:
        return 0.0
    if mode.gathered:
        has_known = len(left) < len(mode.names)
        return float(prod(entries.sizes[name] for name in left)) if has_known else 2.0
    return 1.0 if len(left) == 1 else 1.0 + min(entries.sizes[name] for name in left)


def _advance(entries: Entries, place: int, mode: Subscript, grid: Array | None) -> bool:
    """Find indices from a mode; whether all of its are found."""
    left = [name for name in mode.names if name not in entries.columns]
    if not left:
        if grid is None:
            total = sum((f * entries.columns[name] for name, f in mode.indices), mode.constant)
            entries.match(place, np.asarray(total))
        else:
            entries.match(place, grid[tuple(entries.columns[name] for name in mode.names)])
        return True
    if grid is not None and len(left) == len(mode.names):
        entries.join(place, mode, grid)
        return True
    if grid is None and len(left) == 1:
        entries.solve(place, mode, left[0])
        return True
    entries.spread(min(left, key=entries.sizes.__getitem__))
    return False
