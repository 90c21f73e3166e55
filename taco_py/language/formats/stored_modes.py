"""Stored modes: what a level of a remapped format stores, derived from the modes of the tensor.

    i        the mode itself          Whole(0)
    i/3      which block of three     Quotient(0, 3)
    i%3      where in the block       Remainder(0, 3)
    j-i      which diagonal           Difference(1, 0)
    #j in i  how many columns of row i are stored before    Slot(Whole(1), (Whole(0),))

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
    """A coordinate that a level stores, made of the coordinates of the tensor's modes."""

    __slots__ = ()

    @property
    def is_summed(self) -> bool:
        """Return whether no index of a text is over it: loops over stored modes sum over it."""
        return False

    @property
    @abstractmethod
    def reads(self) -> tuple[int, ...]:
        """Return the modes of the tensor that it is made of."""

    @abstractmethod
    def size(self, shape: Sequence[int]) -> int | None:
        """Return how many coordinates there are, None where only the entries say it."""

    @abstractmethod
    def of(
        self, coordinates: Sequence[Coordinates], shape: Sequence[int], values: Any = None
    ) -> Coordinates:
        """Compute it from coordinates of entries, an array for each mode of the tensor.

        values  of the entries, for what depends on them
        """

    def check(self, coordinates: Sequence[Coordinates], shape: Sequence[int], values: Any) -> None:
        """Raise FormatError where these entries cannot be stored so."""
        return

    def restored(
        self, own: Coordinates, known: Mapping[int, Coordinates], shape: Sequence[int]
    ) -> tuple[int, Coordinates] | None:
        """Compute a mode of the tensor from it and known ones; None where it says none."""
        return None


class OfOneMode(StoredMode):
    """A coordinate made of those of one mode."""

    __slots__ = ()
    mode: int

    @property
    def reads(self) -> tuple[int, ...]:
        """Return the mode."""
        return (self.mode,)


@dataclass(frozen=True, slots=True)
class Whole(OfOneMode):
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
        self, own: Coordinates, known: Mapping[int, Coordinates], shape: Sequence[int]
    ) -> tuple[int, Coordinates] | None:
        """Return the mode and its coordinates."""
        return self.mode, own

    def __str__(self) -> str:
        return letter(self.mode)


@dataclass(frozen=True, slots=True)
class Quotient(OfOneMode):
    """Which block of `block` coordinates a coordinate of the mode is in."""

    mode: int
    block: int

    def size(self, shape: Sequence[int]) -> int | None:
        """Return the number of blocks; the last may not be full."""
        return -(-shape[self.mode] // self.block)

    def of(
        self, coordinates: Sequence[Coordinates], shape: Sequence[int], values: Any = None
    ) -> Coordinates:
        """Divide the mode's coordinates by the block."""
        own = coordinates[self.mode]
        found: Coordinates = own // own.dtype.type(self.block)
        return found

    def __str__(self) -> str:
        return f"{letter(self.mode)}/{self.block}"


@dataclass(frozen=True, slots=True)
class Remainder(OfOneMode):
    """Where in its block of `block` coordinates a coordinate of the mode is."""

    mode: int
    block: int

    def size(self, shape: Sequence[int]) -> int | None:
        """Return the block's size."""
        return self.block

    def of(
        self, coordinates: Sequence[Coordinates], shape: Sequence[int], values: Any = None
    ) -> Coordinates:
        """Take the remainders of the mode's coordinates."""
        own = coordinates[self.mode]
        found: Coordinates = own % own.dtype.type(self.block)
        return found

    def __str__(self) -> str:
        return f"{letter(self.mode)}%{self.block}"


@dataclass(frozen=True, slots=True)
class Difference(StoredMode):
    """How far the mode is beyond another one, counted from the least: j - i + (size of i) - 1."""

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
        self, own: Coordinates, known: Mapping[int, Coordinates], shape: Sequence[int]
    ) -> tuple[int, Coordinates] | None:
        """Return the mode where the other one is known, or the other way round."""
        shift = shape[self.other] - 1
        if self.other in known:
            return self.mode, own + known[self.other] - shift
        if self.mode in known:
            return self.other, known[self.mode] - own + shift
        return None

    def __str__(self) -> str:
        return f"{letter(self.mode)}-{letter(self.other)}"


@dataclass(frozen=True, slots=True)
class Slot(StoredMode):
    """Number what entries have in common: the distinct `of` among entries with the same `within`.

    of      what is numbered, in ascending order
    within  where numbers begin anew
    most    how many there are at most, each of which has a place; 0 for as many as entries ask for

    No loop of a text is over a slot: loops over stored modes sum over it.
    """

    of_mode: StoredMode
    within: tuple[StoredMode, ...] = ()
    most: int = 0

    @property
    def is_summed(self) -> bool:
        """Return that it is."""
        return True

    @property
    def reads(self) -> tuple[int, ...]:
        """Return the modes that it is made of."""
        each = (self.of_mode, *self.within)
        return tuple(dict.fromkeys(mode for one in each for mode in one.reads))

    def size(self, shape: Sequence[int]) -> int | None:
        """Return `most`, None where the entries say it."""
        return self.most or None

    def of(
        self, coordinates: Sequence[Coordinates], shape: Sequence[int], values: Any = None
    ) -> Coordinates:
        """Number the entries. Raises FormatError where there are more than `most`."""
        groups = [each.of(coordinates, shape, values) for each in self.within]
        found = numbered(self.of_mode.of(coordinates, shape, values), groups)
        if self.most and len(found) and found.max() >= self.most:
            raise FormatError(
                f"Expected at most {self.most} entries for each {self._place}, found "
                f"{int(found.max()) + 1}",
                hint="leave entries out first, or choose a format without such a bound",
            )
        return found

    @property
    def _place(self) -> str:
        return ", ".join(map(str, self.within)) or "tensor"

    def __str__(self) -> str:
        within = f" in {self._place}" if self.within else ""
        return f"#{self.of_mode}{within}"


@dataclass(frozen=True, slots=True)
class Run(StoredMode):
    """Number runs of neighbours along a mode with equal values, those of equal `within` apart."""

    mode: int
    within: tuple[int, ...] = ()

    @property
    def is_summed(self) -> bool:
        """Return that it is."""
        return True

    @property
    def reads(self) -> tuple[int, ...]:
        """Return the modes that it is made of."""
        return (*self.within, self.mode)

    def size(self, shape: Sequence[int]) -> int | None:
        """Return None: the entries say it."""
        return None

    def of(
        self, coordinates: Sequence[Coordinates], shape: Sequence[int], values: Any = None
    ) -> Coordinates:
        """Number the runs."""
        own, groups = coordinates[self.mode], [coordinates[mode] for mode in self.within]
        order = np.lexsort((own, *groups[::-1]))
        new = np.ones(len(order), np.bool_)
        same = values[order][1:] == values[order][:-1]
        new[1:] = ~(same & (own[order][1:] == own[order][:-1] + 1))
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
    """The larger of two modes' coordinates, the smaller, or whether the first is the smaller."""

    part: str

    @property
    def is_summed(self) -> bool:
        """Return that it is."""
        return True

    @property
    def reads(self) -> tuple[int, ...]:
        """Return both modes."""
        return (0, 1)

    def size(self, shape: Sequence[int]) -> int | None:
        """Return the size of the modes, or 2 for a turn."""
        return 2 if self.part == "turn" else shape[0]

    def of(
        self, coordinates: Sequence[Coordinates], shape: Sequence[int], values: Any = None
    ) -> Coordinates:
        """Compare the coordinates."""
        one, other = coordinates
        if self.part == "turn":
            return (one < other).astype(np.int64)
        found: Coordinates = (np.maximum if self.part == "larger" else np.minimum)(one, other)
        return found

    def check(self, coordinates: Sequence[Coordinates], shape: Sequence[int], values: Any) -> None:
        """Raise FormatError unless each entry has its mirror image; "larger" looks for all."""
        if self.part != "larger":
            return
        hint = "tp.symmetric(A) takes one triangle of A; (A + A.T) / 2 is symmetric"
        if shape[0] != shape[1]:
            raise FormatError(
                f"Expected a square matrix, found one of shape {tuple(shape)}", hint=hint
            )
        one, other = (each.astype(np.int64, copy=False) for each in coordinates)
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
"""Numbers from the least to the largest key, for each key, up to which they are marked."""


def sorting(keys: Coordinates, groups: Sequence[Coordinates]) -> Coordinates:
    """Find an order in which groups ascend, and the keys in each."""
    columns = [each.astype(np.int64, copy=False) for each in (*groups, keys)]
    if not len(keys):
        return np.zeros(0, np.int64)
    least = [int(each.min()) for each in columns]
    sizes = [int(each.max()) - low + 1 for each, low in zip(columns, least, strict=True)]
    if prod(sizes) >= 1 << 62:
        return np.lexsort(columns[::-1])
    fused = columns[0] - least[0]
    for each, low, size in zip(columns[1:], least[1:], sizes[1:], strict=True):
        fused = fused * size + (each - low)
    if (fused[1:] >= fused[:-1]).all():
        return np.arange(len(fused))
    return np.argsort(fused)


def numbered(keys: Coordinates, groups: Sequence[Coordinates]) -> Coordinates:
    """Number the distinct keys of each group, in ascending order from 0.

    >>> numbered(np.array([7, 3, 7, 9]), [np.array([0, 0, 0, 1])])
    array([1, 0, 1, 0])
    """
    low, high = (int(keys.min()), int(keys.max())) if len(keys) else (0, 0)
    if not groups and high - low <= DENSE * len(keys):
        met = np.zeros(high - low + 1, np.bool_)
        met[keys - low] = True
        ranks: Coordinates = (np.cumsum(met) - 1)[keys - low]
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
    found = np.empty(len(order), np.int64)
    found[order] = ranks - begin
    return found
