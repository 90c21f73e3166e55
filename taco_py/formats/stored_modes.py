"""Stored modes: what a level of a remapped format stores, derived from the modes of the tensor.

    i        the mode itself          Whole(0)
    i/3      which block of three     Quotient(0, 3)
    i%3      where in the block       Remainder(0, 3)
    j-i      which diagonal           Difference(1, 0)
    #i       how many entries of row i came before    Slot(0)

Coordinates are those of Chou, Kjolstad and Amarasinghe 2020 (Automatic Generation of Efficient
Sparse Tensor Format Conversion Routines, section 4).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.records import dataclass

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
    @abstractmethod
    def reads(self) -> tuple[int, ...]:
        """Return the modes of the tensor that it is made of."""

    @abstractmethod
    def size(self, shape: Sequence[int]) -> int | None:
        """Return how many coordinates there are, None where only the entries say it."""

    @abstractmethod
    def of(self, coordinates: Sequence[Coordinates], shape: Sequence[int]) -> Coordinates:
        """Compute it from coordinates of entries, an array for each mode of the tensor."""

    def restored(
        self, own: Coordinates, known: Mapping[int, Coordinates], shape: Sequence[int]
    ) -> tuple[int, Coordinates] | None:
        """Compute a mode of the tensor from it and known ones; None where it says none."""
        return None


@dataclass(frozen=True, slots=True)
class Whole(StoredMode):
    """The mode itself."""

    mode: int

    @property
    def reads(self) -> tuple[int, ...]:
        """Return the mode."""
        return (self.mode,)

    def size(self, shape: Sequence[int]) -> int | None:
        """Return the mode's size."""
        return shape[self.mode]

    def of(self, coordinates: Sequence[Coordinates], shape: Sequence[int]) -> Coordinates:
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
class Quotient(StoredMode):
    """Which block of `block` coordinates a coordinate of the mode is in."""

    mode: int
    block: int

    @property
    def reads(self) -> tuple[int, ...]:
        """Return the mode."""
        return (self.mode,)

    def size(self, shape: Sequence[int]) -> int | None:
        """Return the number of blocks; the last may not be full."""
        return -(-shape[self.mode] // self.block)

    def of(self, coordinates: Sequence[Coordinates], shape: Sequence[int]) -> Coordinates:
        """Divide the mode's coordinates by the block."""
        own = coordinates[self.mode]
        found: Coordinates = own // own.dtype.type(self.block)
        return found

    def __str__(self) -> str:
        return f"{letter(self.mode)}/{self.block}"


@dataclass(frozen=True, slots=True)
class Remainder(StoredMode):
    """Where in its block of `block` coordinates a coordinate of the mode is."""

    mode: int
    block: int

    @property
    def reads(self) -> tuple[int, ...]:
        """Return the mode."""
        return (self.mode,)

    def size(self, shape: Sequence[int]) -> int | None:
        """Return the block's size."""
        return self.block

    def of(self, coordinates: Sequence[Coordinates], shape: Sequence[int]) -> Coordinates:
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

    def of(self, coordinates: Sequence[Coordinates], shape: Sequence[int]) -> Coordinates:
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
    """How many entries with the same coordinate of a mode came before an entry."""

    mode: int

    @property
    def reads(self) -> tuple[int, ...]:
        """Return the mode."""
        return (self.mode,)

    def size(self, shape: Sequence[int]) -> int | None:
        """Return None: the fullest row says it."""
        return None

    def of(self, coordinates: Sequence[Coordinates], shape: Sequence[int]) -> Coordinates:
        """Count the entries before each one."""
        own = coordinates[self.mode]
        order = np.argsort(own, kind="stable")
        sorted_own = own[order]
        starts = np.searchsorted(sorted_own, sorted_own, side="left")
        found = np.empty(len(own), np.int64)
        found[order] = np.arange(len(own)) - starts
        return found

    def __str__(self) -> str:
        return f"#{letter(self.mode)}"
