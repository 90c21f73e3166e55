"""The footprint of a tile in each array, as a polynomial of the tile's sizes.

A tile of sizes T touches a box of an array: along a subscript `sum(c_d * d) + offset`, accesses
that differ in their offsets only taken together,

    extent = 1 + sum(abs(c_d) * (T_d - 1)) + spread of the offsets

elements, but no more than there are combinations of the loops. Boxes are exact where each loop has
a separate subscript, and upper bounds elsewhere. The last subscript is contiguous: e elements in a
row are, on the average over all alignments, in 1 + (e - 1) / n cache lines of n elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

from codegen.records import dataclass
from polyhedral.affine import Affine
from polyhedral.model import Access

Sizes = Mapping[str, float]
"""Iterations of each loop in a tile; loops that it does not name have 1."""


@dataclass(frozen=True, slots=True)
class Extent:
    """The extent of one subscript: `factors` are the absolute coefficients of the loops."""

    factors: tuple[tuple[str, int], ...]
    spread: int = 0

    @property
    def loops(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.factors)

    def span(self, sizes: Sizes) -> float:
        """Return the distance from the first element to the last one, both included."""
        return self.reach(sizes)[0]

    def count(self, sizes: Sizes) -> float:
        """Return an upper bound of the number of different values."""
        return min(self.reach(sizes))

    def reach(self, sizes: Sizes) -> tuple[float, float]:
        """Return the span, and the number of combinations of the loops. Searches call this ten
        thousands of times."""
        span = combinations = float(1 + self.spread)
        for name, factor in self.factors:
            size = sizes.get(name, 1)
            span += factor * (size - 1)
            combinations *= size
        return span, combinations

    def __str__(self) -> str:
        parts = [f"T_{name}" if c == 1 else f"{c}*T_{name}" for name, c in self.factors]
        rest = 1 + self.spread - sum(c for _, c in self.factors)
        if rest or not parts:
            parts.append(str(rest))
        text = " + ".join(parts).replace("+ -", "- ")
        return f"({text})" if len(parts) > 1 else text


@dataclass(frozen=True, slots=True)
class Footprint:
    """The footprint of a tile in `array` through accesses that differ in constants only."""

    array: str
    extents: tuple[Extent, ...]
    element_bytes: int = 8

    @property
    def loops(self) -> frozenset[str]:
        """Return the loops along which it changes; along the others its elements are reused."""
        return frozenset(name for extent in self.extents for name in extent.loops)

    def elements(self, sizes: Sizes) -> float:
        """Return an upper bound of the number of different elements."""
        return min(prod(extent.count(sizes) for extent in self.extents), self._combinations(sizes))

    def lines(self, sizes: Sizes, line_bytes: int) -> float:
        """Return the number of cache lines of `line_bytes`, on the average over alignments."""
        reached = [extent.reach(sizes) for extent in self.extents]
        if not reached:
            return 1
        span, combinations = reached.pop()
        per_line = max(1.0, line_bytes / self.element_bytes)
        touched = min(span, combinations, 1 + (span - 1) / per_line)
        for span, combinations in reached:
            touched *= span if span < combinations else combinations
        return min(touched, self._combinations(sizes))

    def _combinations(self, sizes: Sizes) -> float:
        """Return a bound of different elements, as loops that subscripts share count once."""
        constants, loop_sizes = 1.0, dict[str, float]()
        for extent in self.extents:
            constants *= 1 + extent.spread
            for name, _ in extent.factors:
                loop_sizes[name] = sizes.get(name, 1)
        return constants * prod(loop_sizes.values())

    def __str__(self) -> str:
        factors = [str(extent) for extent in self.extents if str(extent) != "1"]
        return f"{self.array}: {' * '.join(factors) or '1'}"


def footprints(
    accesses: Iterable[Access], loops: Iterable[str], element_bytes: Mapping[str, int] | None = None
) -> tuple[Footprint, ...]:
    """Return the footprints of a tile of `loops`, one for each array and linear part of its
    subscripts.

    Other loops and parameters count as constants. `element_bytes` of an array is 8 by default.
    """
    inside, groups = frozenset(loops), dict[tuple[str, tuple[Affine, ...]], list[Access]]()
    for access in accesses:
        linear = tuple(subscript - subscript.constant for subscript in access.subscripts)
        groups.setdefault((access.array, linear), []).append(access)
    sizes = element_bytes or {}
    return tuple(
        Footprint(array, _extents(linear, group, inside), sizes.get(array, 8))
        for (array, linear), group in groups.items()
    )


def _extents(
    linear: tuple[Affine, ...], group: list[Access], inside: frozenset[str]
) -> tuple[Extent, ...]:
    offsets = [[access.subscripts[at].constant for access in group] for at in range(len(linear))]
    return tuple(
        Extent(
            tuple((name, abs(c)) for name, c in row.terms if name in inside),
            max(constants) - min(constants),
        )
        for row, constants in zip(linear, offsets, strict=True)
    )


def total_bytes(parts: Iterable[Footprint], sizes: Sizes, line_bytes: int) -> float:
    """Return the bytes of cache that a tile occupies."""
    return sum(
        part.lines(sizes, line_bytes) * max(line_bytes, part.element_bytes) for part in parts
    )
