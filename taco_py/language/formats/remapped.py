"""Formats whose levels store coordinates derived from the modes of the tensor: blocks, diagonals.

    BSR((3, 2))    (i, j) → (i/3, j/2, i%3, j%2), stored in dsdd

The levels belong to a plain format, `inner`, of a tensor over the stored modes, so that kernels
over stored modes are kernels of plain formats.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index as as_integer
from typing import Any, TypeGuard

import numpy as np

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import FormatError
from taco_py.language.formats.format import LETTERS, Format, format_named
from taco_py.language.formats.stored_modes import (
    Coordinates,
    Folded,
    PlainMode,
    Quotient,
    Remainder,
    StoredMode,
    letter,
)


@dataclass(frozen=True, slots=True)
class RemappedFormat:
    """A storage format over modes that are derived from the tensor's modes.

    >>> form = BSR((3, 2))
    >>> print(form, form.inner, form.mapping)
    BSR(3,2) dsdd (i,j) -> (i/3, j/2, i%3, j%2)
    >>> form.stored_shape((6, 5))
    (2, 3, 3, 2)

    name   as it is printed
    inner  the plain format of the tensor over the stored modes
    modes  the definition of each stored mode
    unit   places of the modes that tell in which unit an entry is: the block, diagonal or slot that
           is stored as one piece; empty where there is none

    Raises FormatError where these are no format, or do not determine every mode.
    """

    name: str
    inner: Format
    modes: tuple[StoredMode, ...]
    unit: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if len(self.modes) != self.inner.order:
            raise FormatError(
                f"Expected a stored mode for each of the {self.inner.order} levels of "
                f"{str(self.inner)!r}, found {len(self.modes)}",
                hint="as in BSR((3, 2)): i/3, j/2, i%3 and j%2 in dsdd",
            )
        probe = [np.zeros(0, np.int64)] * len(self.modes)
        self._restored(probe, (1,) * self.order)

    @property
    def order(self) -> int:
        """Return the number of modes of the tensor."""
        return 1 + max((mode for stored in self.modes for mode in stored.reads), default=-1)

    @property
    def is_dense(self) -> bool:
        """Tell whether every element is stored."""
        return self.inner.is_dense

    @property
    def mapping(self) -> str:
        """Return the modes of the tensor and the stored modes as text."""
        modes = ",".join(map(letter, range(self.order)))
        return f"({modes}) -> ({', '.join(map(str, self.modes))})"

    @property
    def cuts(self) -> tuple[int, ...]:
        """Return the size of the blocks of each mode, 0 for modes without blocks."""
        sizes = [0] * self.order
        for mode in self.modes:
            if isinstance(mode, Quotient):
                sizes[mode.mode] = mode.block
        return tuple(sizes)

    @property
    def is_blocked(self) -> bool:
        """Tell whether all stored modes are modes of the tensor or blocks of them."""
        return all(isinstance(mode, PlainMode | Quotient | Remainder) for mode in self.modes)

    @property
    def is_symmetric(self) -> bool:
        """Tell whether it stores one triangle, so that only symmetric matrices have it."""
        return any(isinstance(mode, Folded) for mode in self.modes)

    @property
    def is_bsr(self) -> bool:
        """Tell whether the format equals that of `BSR` for its blocks, whatever its name."""
        if self.order != 2 or not all(self.cuts):
            return False
        bsr = BSR(self.cuts)
        return (bsr.inner, bsr.modes) == (self.inner, self.modes)

    def stored_shape(
        self, shape: Sequence[int], stored: Sequence[Coordinates] = ()
    ) -> tuple[int, ...]:
        """Return the shape of the stored tensor.

        stored  the entries' coordinates, which determine the size of a counter of entries
        """
        sizes = []
        for place, mode in enumerate(self.modes):
            size = mode.size(shape)
            if size is None:
                size = int(stored[place].max()) + 1 if len(stored[place]) else 0
            sizes.append(size)
        return tuple(sizes)

    @property
    def slots(self) -> tuple[int, ...]:
        """Return the stored modes, numbers of entries, that no index of a text runs over."""
        return tuple(k for k, mode in enumerate(self.modes) if mode.is_summed)

    def room(self, stored_shape: Sequence[int]) -> int:
        """Return the number of entries that a unit has places for.

        >>> BSR((3, 2)).room((2, 3, 3, 2))
        6
        """
        levels = zip(self.inner.mode_order, self.inner.levels, strict=True)
        free = (m for m, level in levels if m not in self.unit and not level.branchless)
        return prod(stored_shape[mode] for mode in free)

    @property
    def is_walkable(self) -> bool:
        """Tell whether loops over stored modes have all indices of a text, split or not."""
        kinds = PlainMode | Quotient | Remainder
        return all(mode.is_summed or isinstance(mode, kinds) for mode in self.modes)

    def check(self, coordinates: Sequence[Coordinates], shape: Sequence[int], values: Any) -> None:
        """Raise FormatError for entries that the format cannot store: a matrix that is not
        symmetric."""
        for mode in self.modes:
            mode.check(coordinates, shape, values)

    def stored(
        self, coordinates: Sequence[Coordinates], shape: Sequence[int], values: Any = None
    ) -> tuple[Coordinates, ...]:
        """Map entries' coordinates, an array a mode, to coordinates over the stored modes.

        values  of the entries, whose equal neighbours form runs
        """
        return tuple(mode.of(coordinates, shape, values) for mode in self.modes)

    def logical(
        self, stored: Sequence[Coordinates], shape: Sequence[int]
    ) -> tuple[Coordinates, ...]:
        """Map coordinates over the stored modes back; `stored` is the inverse.

        Padding of the last block of a mode is beyond `shape`.
        """
        return self._restored(stored, shape)

    def _restored(
        self, stored: Sequence[Coordinates], shape: Sequence[int]
    ) -> tuple[Coordinates, ...]:
        coordinates = dict(self._from_blocks(stored))
        for _ in self.modes:
            for stored_mode, mode_coordinates in zip(self.modes, stored, strict=True):
                restored = stored_mode.restored(mode_coordinates, coordinates, shape)
                if restored is not None:
                    coordinates.setdefault(*restored)
        missing = [letter(mode) for mode in range(self.order) if mode not in coordinates]
        if missing:
            raise FormatError(
                f"Expected stored modes that say each mode, found none for {', '.join(missing)} "
                f"in {self.mapping}",
                hint="a mode is stored whole, or as its quotient and remainder by the same number",
            )
        return tuple(coordinates[mode] for mode in range(self.order))

    def _from_blocks(self, stored: Sequence[Coordinates]) -> dict[int, Coordinates]:
        """Return the coordinates of each mode that is stored in blocks."""
        coordinates = {}
        inside = dict(zip(self.modes, stored, strict=True))
        for mode, block_coordinates in zip(self.modes, stored, strict=True):
            if isinstance(mode, Quotient):
                rest = inside.get(Remainder(mode.mode, mode.block))
                if rest is not None:
                    wide = block_coordinates.astype(np.int64, copy=False)
                    coordinates[mode.mode] = wide * mode.block + rest
        return coordinates

    def __str__(self) -> str:
        return self.name


def BSR(blocks: int | Sequence[int]) -> RemappedFormat:  # noqa: N802 - the field's name
    """Return the format of matrices that store dense blocks, with rows of blocks as in CSR.

    >>> print(BSR((3, 2)), BSR(4))
    BSR(3,2) BSR(4,4)
    >>> BSR((3, 2)).mapping
    '(i,j) -> (i/3, j/2, i%3, j%2)'

    blocks  rows and columns of a block, or one number for both

    Raises FormatError for sizes below 1.
    """
    pair = blocks if isinstance(blocks, Sequence) else (blocks, blocks)
    sizes = sizes_of_blocks(pair, "BSR((3, 3))")
    if len(sizes) != 2:
        raise FormatError(
            f"Expected rows and columns of a block, found {len(sizes)} numbers",
            hint="as in BSR((3, 3)); Blocked((3, 1, 2)) has blocks of more modes",
        )
    modes = (*(Quotient(m, n) for m, n in enumerate(sizes)),)
    rests = (*(Remainder(m, n) for m, n in enumerate(sizes)),)
    name = f"BSR({sizes[0]},{sizes[1]})"
    return RemappedFormat(name, Format.parse("dsdd"), (*modes, *rests), (0, 1))


BCSR = BSR
"""Another name of `BSR`."""


def Blocked(blocks: Sequence[int], format: Format | str = "csf") -> RemappedFormat:  # noqa: N802
    """Return the format of tensors that store dense blocks, the blocks themselves in any format.

    >>> form = Blocked((2, 1, 3), "sss")
    >>> print(form, form.inner, form.mapping)
    Blocked(2,1,3,sss) sssdd (i,j,k) -> (i/2, j, k/3, i%2, k%3)

    blocks  the size of a block along each mode; modes with size 1 are not split
    format  of the tensor of blocks: a Format, its letters or its name

    Raises FormatError for sizes below 1, or for a format with another number of modes.
    """
    sizes = sizes_of_blocks(blocks, "Blocked((3, 3))")
    outer = format_named(format, len(sizes)) if isinstance(format, str) else format
    if not isinstance(outer, Format) or outer.order != len(sizes):
        raise FormatError(
            f"Expected a format of {len(sizes)} levels for blocks of as many modes, found "
            f"{str(format)!r}",
            hint='as in Blocked((2, 1, 3), "sss")',
        )
    if any(level.branchless for level in outer.levels) or not outer.is_unique:
        raise FormatError(
            f"Expected blocks that are stored once each, below dense or compressed levels, found "
            f"{str(outer)!r}",
            hint='as in Blocked((2, 1, 3), "sss")',
        )
    cut = [(mode, size) for mode, size in enumerate(sizes) if size > 1]
    inside = (LETTERS["d"],) * len(cut)
    places = range(len(sizes), len(sizes) + len(cut))
    inner = Format((*outer.levels, *inside), (*outer.mode_order, *places))
    modes = tuple(Quotient(m, n) if n > 1 else PlainMode(m) for m, n in enumerate(sizes))
    rests = tuple(Remainder(mode, size) for mode, size in cut)
    name = f"Blocked({','.join(map(str, sizes))},{outer})"
    unit = tuple(range(len(sizes)))
    return RemappedFormat(name, inner, (*modes, *rests), unit)


def sizes_of_blocks(blocks: Any, example: str) -> tuple[int, ...]:
    """Return the sizes of blocks as ints. Raises FormatError.

    example  a correct call, for the hint
    """
    try:
        sizes = tuple(-1 if isinstance(n, bool) else as_integer(n) for n in blocks)
    except TypeError:
        sizes = (-1,)
    if not sizes or any(not 1 <= size < 2**31 for size in sizes):
        raise FormatError(
            f"Expected sizes of blocks of 1 or more, found {blocks!r}", hint=f"as in {example}"
        )
    return sizes


def is_remapped(form: object) -> TypeGuard[RemappedFormat]:
    """Tell whether a format stores blocks, diagonals, padded rows, or one side."""
    return isinstance(form, RemappedFormat)
