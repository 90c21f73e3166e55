"""Stored modes: coordinates in levels of a remapped format, derived from the tensor's modes.

    i        the mode itself          Whole(0)
    i/3      which block of three     Quotient(0, 3)
    i%3      the offset in the block       Remainder(0, 3)
    j-i      which diagonal           Difference(1, 0)
    #j in i  the rank of j among the stored columns of row i    Slot(Whole(1), (Whole(0),))

Coordinates are those of Chou, Kjolstad and Amarasinghe 2020 (Automatic Generation of Efficient
Sparse Tensor Format Conversion Routines, section 4).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import FormatError

Coordinates = NDArray[Any]


def letter(mode: int) -> str:
    """Name a mode as texts do: i, j, k …

    >>> letter(0), letter(2), letter(20)
    ('i', 'k', 'm20')
    """
    return "ijklmnopqrst"[mode] if mode < 12 else f"m{mode}"


class StoredMode(ABC):
    """A coordinate that a level stores, computed from the coordinates of the tensor's modes."""

    __slots__ = ()

    @property
    def is_summed(self) -> bool:
        """Tell whether no index of a text runs over the mode, so that loops sum over it."""
        return False

    @property
    def numbers_blocks(self) -> bool:
        """Tell whether the mode is the number of a block."""
        return False

    @property
    def is_inside_blocks(self) -> bool:
        """Tell whether the mode is an offset inside a block."""
        return False

    @property
    @abstractmethod
    def reads(self) -> tuple[int, ...]:
        """Return the modes of the tensor that the stored mode depends on."""

    @abstractmethod
    def size(self, shape: Sequence[int]) -> int | None:
        """Return the number of coordinates, None where only the entries determine it."""

    @abstractmethod
    def of(
        self, coordinates: Sequence[Coordinates], shape: Sequence[int], values: Any = None
    ) -> Coordinates:
        """Compute the stored coordinates of entries, from an array for each mode of the tensor.

        values  of the entries, for modes that depend on them
        """

    def check(self, coordinates: Sequence[Coordinates], shape: Sequence[int], values: Any) -> None:
        """Raise FormatError for entries that the mode cannot store."""
        return

    def restored(
        self, stored: Coordinates, recovered: Mapping[int, Coordinates], shape: Sequence[int]
    ) -> tuple[int, Coordinates] | None:
        """Recover a mode of the tensor from stored and known coordinates; None where it is
        impossible."""
        return None


class OfOneMode(StoredMode):
    """A stored mode that depends on one mode of the tensor."""

    __slots__ = ()
    mode: int

    @property
    def reads(self) -> tuple[int, ...]:
        """Return the mode."""
        return (self.mode,)


@dataclass(frozen=True, slots=True)
class PlainMode(OfOneMode):
    """The mode itself."""

    mode: int

    def size(self, shape: Sequence[int]) -> int | None:
        """Return the mode's size."""
        return shape[self.mode]

    def of(
        self, coordinates: Sequence[Coordinates], shape: Sequence[int], values: Any = None
    ) -> Coordinates:
        """Return the mode's coordinates."""
        return coordinates[self.mode]

    def restored(
        self, stored: Coordinates, recovered: Mapping[int, Coordinates], shape: Sequence[int]
    ) -> tuple[int, Coordinates] | None:
        """Return the mode and its coordinates."""
        return self.mode, stored

    def __str__(self) -> str:
        return letter(self.mode)


@dataclass(frozen=True, slots=True)
class Quotient(OfOneMode):
    """The number of the block of `block` coordinates that contains a coordinate of the mode."""

    mode: int
    block: int

    @property
    def numbers_blocks(self) -> bool:
        """Return True."""
        return True

    def size(self, shape: Sequence[int]) -> int | None:
        """Return the number of blocks, of which the last may be partial."""
        return -(-shape[self.mode] // self.block)

    def of(
        self, coordinates: Sequence[Coordinates], shape: Sequence[int], values: Any = None
    ) -> Coordinates:
        """Divide the mode's coordinates by the block."""
        coordinates_of_mode = coordinates[self.mode]
        blocks: Coordinates = coordinates_of_mode // coordinates_of_mode.dtype.type(self.block)
        return blocks

    def __str__(self) -> str:
        return f"{letter(self.mode)}/{self.block}"


@dataclass(frozen=True, slots=True)
class Remainder(OfOneMode):
    """The offset of a coordinate of the mode inside its block of `block` coordinates."""

    mode: int
    block: int

    @property
    def is_inside_blocks(self) -> bool:
        """Return True."""
        return True

    def size(self, shape: Sequence[int]) -> int | None:
        """Return the block's size."""
        return self.block

    def of(
        self, coordinates: Sequence[Coordinates], shape: Sequence[int], values: Any = None
    ) -> Coordinates:
        """Take the remainders of the mode's coordinates."""
        coordinates_of_mode = coordinates[self.mode]
        offsets: Coordinates = coordinates_of_mode % coordinates_of_mode.dtype.type(self.block)
        return offsets

    def __str__(self) -> str:
        return f"{letter(self.mode)}%{self.block}"


@dataclass(frozen=True, slots=True)
class Difference(StoredMode):
    """The offset of the mode from another one, counted from the least: j - i + (size of i) - 1."""

    mode: int
    other: int

    @property
    def reads(self) -> tuple[int, ...]:
        """Return both modes."""
        return (self.mode, self.other)

    def size(self, shape: Sequence[int]) -> int | None:
        """Return the number of diagonals."""
        return max(0, shape[self.mode] + shape[self.other] - 1)

    def of(
        self, coordinates: Sequence[Coordinates], shape: Sequence[int], values: Any = None
    ) -> Coordinates:
        """Subtract the coordinates of the modes."""
        mode, other = (coordinates[m].astype(np.int64, copy=False) for m in self.reads)
        return mode - other + (shape[self.other] - 1)

    def restored(
        self, stored: Coordinates, recovered: Mapping[int, Coordinates], shape: Sequence[int]
    ) -> tuple[int, Coordinates] | None:
        """Recover one of the two modes from the other."""
        shift = shape[self.other] - 1
        if self.other in recovered:
            return self.mode, stored + recovered[self.other] - shift
        if self.mode in recovered:
            return self.other, recovered[self.mode] - stored + shift
        return None

    def __str__(self) -> str:
        return f"{letter(self.mode)}-{letter(self.other)}"


@dataclass(frozen=True, slots=True)
class Slot(StoredMode):
    """The rank of an entry's `of_mode` among the distinct ones of entries with equal `group_by`.

    of_mode the coordinate that is ranked, in ascending order
    group_by  the group, in which ranks begin at 0
    most      the number of places of a group; 0 for as many as the entries need

    No loop of a text is over a slot: loops over stored modes sum over it.
    """

    of_mode: StoredMode
    group_by: tuple[StoredMode, ...] = ()
    most: int = 0

    @property
    def is_summed(self) -> bool:
        """Return True: loops over stored modes sum over it."""
        return True

    @property
    def reads(self) -> tuple[int, ...]:
        """Return the modes of the tensor that the stored mode depends on."""
        parts = (self.of_mode, *self.group_by)
        return tuple(dict.fromkeys(mode for one in parts for mode in one.reads))

    def size(self, shape: Sequence[int]) -> int | None:
        """Return `most`, None where the entries determine it."""
        return self.most or None

    def of(
        self, coordinates: Sequence[Coordinates], shape: Sequence[int], values: Any = None
    ) -> Coordinates:
        """Rank the entries. Raises FormatError for more than `most` in a group."""
        groups = [mode.of(coordinates, shape, values) for mode in self.group_by]
        ranks = numbered(self.of_mode.of(coordinates, shape, values), groups)
        if self.most and len(ranks) and ranks.max() >= self.most:
            raise FormatError(
                f"Expected at most {self.most} entries for each {self._place}, found "
                f"{int(ranks.max()) + 1}",
                hint="leave entries out first, or choose a format without such a bound",
            )
        return ranks

    @property
    def _place(self) -> str:
        return ", ".join(map(str, self.group_by)) or "tensor"

    def __str__(self) -> str:
        group = f" in {self._place}" if self.group_by else ""
        return f"#{self.of_mode}{group}"


@dataclass(frozen=True, slots=True)
class Run(StoredMode):
    """The rank of an entry's run among runs of adjacent equal values, within equal `group_by`."""

    mode: int
    group_by: tuple[int, ...] = ()

    @property
    def is_summed(self) -> bool:
        """Return True: loops over stored modes sum over it."""
        return True

    @property
    def reads(self) -> tuple[int, ...]:
        """Return the modes of the tensor that the stored mode depends on."""
        return (*self.group_by, self.mode)

    def size(self, shape: Sequence[int]) -> int | None:
        """Return None: the entries determine the size."""
        return None

    def of(
        self, coordinates: Sequence[Coordinates], shape: Sequence[int], values: Any = None
    ) -> Coordinates:
        """Rank the runs."""
        columns, groups = coordinates[self.mode], [coordinates[mode] for mode in self.group_by]
        order = np.lexsort((columns, *groups[::-1]))
        new = np.ones(len(order), np.bool_)
        same = values[order][1:] == values[order][:-1]
        new[1:] = ~(same & (columns[order][1:] == columns[order][:-1] + 1))
        for group in groups:
            new[1:] |= group[order][1:] != group[order][:-1]
        starts = np.cumsum(new) - 1
        runs = np.empty(len(order), np.int64)
        runs[order] = starts
        return numbered(runs, groups)

    def __str__(self) -> str:
        return f"#run of {letter(self.mode)}"


@dataclass(frozen=True, slots=True)
class Folded(StoredMode):
    """The larger coordinate of two modes, the smaller, or whether the first is smaller."""

    part: str

    @property
    def is_summed(self) -> bool:
        """Return True: loops over stored modes sum over it."""
        return True

    @property
    def reads(self) -> tuple[int, ...]:
        """Return both modes."""
        return (0, 1)

    def size(self, shape: Sequence[int]) -> int | None:
        """Return the size of the modes, or 2 for the turn."""
        return 2 if self.part == "turn" else shape[0]

    def of(
        self, coordinates: Sequence[Coordinates], shape: Sequence[int], values: Any = None
    ) -> Coordinates:
        """Compare the coordinates."""
        one, other = coordinates
        if self.part == "turn":
            return (one < other).astype(np.int64)
        result: Coordinates = (np.maximum if self.part == "larger" else np.minimum)(one, other)
        return result

    def check(self, coordinates: Sequence[Coordinates], shape: Sequence[int], values: Any) -> None:
        """Raise FormatError unless each entry has its mirror image; only "larger" checks."""
        if self.part != "larger":
            return
        hint = "tp.symmetric(A) takes one triangle of A; (A + A.T) / 2 is symmetric"
        if shape[0] != shape[1]:
            raise FormatError(
                f"Expected a square matrix, found one of shape {tuple(shape)}", hint=hint
            )
        one, other = (mode.astype(np.int64, copy=False) for mode in coordinates)
        keys, mirrored = one * shape[0] + other, other * shape[0] + one
        order, turned = np.argsort(keys), np.argsort(mirrored)
        wrong = keys[order] != mirrored[turned]
        if not wrong.any():
            wrong = (values[order] != values[turned]) & (values[order] == values[order])
        if wrong.any():
            entry = order[int(np.argmax(wrong))]
            raise FormatError(
                f"Expected a symmetric matrix, found at ({one[entry]}, {other[entry]}) another "
                f"number than at ({other[entry]}, {one[entry]})",
                hint=hint,
            )

    def __str__(self) -> str:
        return {"larger": "max(i,j)", "smaller": "min(i,j)", "turn": "i<j"}[self.part]


DENSE = 4
"""The largest range of keys, per key, that is ranked by a marker array instead of sorting."""


def sorting(keys: Coordinates, groups: Sequence[Coordinates]) -> Coordinates:
    """Return an order in which groups ascend, and the keys within each group."""
    columns = [column.astype(np.int64, copy=False) for column in (*groups, keys)]
    if not len(keys):
        return np.zeros(0, np.int64)
    least = [int(column.min()) for column in columns]
    sizes = [int(column.max()) - low + 1 for column, low in zip(columns, least, strict=True)]
    if prod(sizes) >= 1 << 62:
        return np.lexsort(columns[::-1])
    fused = columns[0] - least[0]
    for column, low, size in zip(columns[1:], least[1:], sizes[1:], strict=True):
        fused = fused * size + (column - low)
    if (fused[1:] >= fused[:-1]).all():
        return np.arange(len(fused))
    return np.argsort(fused)


def numbered(keys: Coordinates, groups: Sequence[Coordinates]) -> Coordinates:
    """Rank the distinct keys of each group, in ascending order from 0.

    >>> numbered(np.array([7, 3, 7, 9]), [np.array([0, 0, 0, 1])])
    array([1, 0, 1, 0])
    """
    low, high = (int(keys.min()), int(keys.max())) if len(keys) else (0, 0)
    if not groups and high - low <= DENSE * len(keys):
        present = np.zeros(high - low + 1, np.bool_)
        present[keys - low] = True
        ranks: Coordinates = (np.cumsum(present) - 1)[keys - low]
        return ranks
    order = sorting(keys, groups)
    first = np.ones(len(order), np.bool_)  # of a group
    first[1:] = False
    for group in groups:
        first[1:] |= group[order][1:] != group[order][:-1]
    new = first.copy()
    new[1:] |= keys[order][1:] != keys[order][:-1]
    ranks = np.cumsum(new) - 1
    begin = np.maximum.accumulate(np.where(first, ranks, 0))
    result = np.empty(len(order), np.int64)
    result[order] = ranks - begin
    return result
