"""The sizes that the modes of a reshape are products of, before and after.

    (n, c, h, w) → (n, 4, c//4 * h * w)    n | 4, c//4 | h | w    →    n | 4 | c//4, h, w

A factor is a quotient of sizes. Where that is exact only for some sizes, the trace holds for those.
"""

from __future__ import annotations

from typing import Protocol

from taco_py.graph.extents import Extent, const
from taco_py.graph.nodes import Factors, Shape


class Sizes(Protocol):
    """The sizes of the call that is traced."""

    def value(self, extent: Extent) -> int:
        """Return a number in the call that is traced."""

    def guard(self, extent: Extent, value: object) -> None:
        """Note that the trace holds only where a number has this value."""

    def same(self, one: Extent, other: Extent) -> bool:
        """Tell whether two sizes are equal; the trace then holds where they are."""


def factors_of_reshape(sizes: Sizes, before: Shape, after: Shape) -> Factors | None:
    """Return the factors of each mode of two shapes of as many elements; None without common ones.

    Modes of size 1 have none.
    """
    one, other = _Side(before), _Side(after)
    if any(sizes.value(size) == 0 for size in (*before, *after)):
        return None
    while one.left is not None and other.left is not None:
        if one.is_last or other.is_last:  # the elements are as many: the rest is one product
            last, rest = (one, other) if one.is_last else (other, one)
            while rest.left is not None:
                alike = last.is_empty and rest.is_last
                factor = _simpler(rest.left, last.left) if alike else rest.left
                last.take(factor)
                rest.finish(factor)
            last.close()
            break
        small, large = sorted((one, other), key=lambda side: sizes.value(side.left or const(1)))
        assert small.left is not None and large.left is not None
        factor, product = small.left, large.left
        if sizes.same(factor, product):
            factor = _simpler(factor, product)
            small.finish(factor)
            large.finish(factor)
            continue
        quotient = _quotient(sizes, product, factor)
        if quotient is None:
            return None
        small.finish(factor)
        large.take(factor)
        large.left = quotient
    return one.factors, other.factors


class _Side:
    """The modes of one shape, whose factors are found from the first to the last.

    left  the size of the mode at hand without the factors found, None after the last one
    """

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.groups: list[list[Extent]] = [[] for _ in shape]
        self.modes = [mode for mode, size in enumerate(shape) if size.constant != 1]
        self.place = 0
        self.left: Extent | None = None
        self._begin()

    @property
    def is_last(self) -> bool:
        """Tell whether the mode at hand is the last one."""
        return self.place == len(self.modes) - 1

    @property
    def is_empty(self) -> bool:
        """Tell whether the mode at hand has no factor yet."""
        return not self.groups[self.modes[self.place]]

    @property
    def factors(self) -> tuple[tuple[Extent, ...], ...]:
        """Return the factors of each mode."""
        return tuple(map(tuple, self.groups))

    def take(self, factor: Extent) -> None:
        """Note a factor of the mode at hand."""
        self.groups[self.modes[self.place]].append(factor)

    def finish(self, factor: Extent) -> None:
        """Note the last factor of the mode at hand, and go to the next one."""
        self.take(factor)
        self.close()

    def close(self) -> None:
        """Go to the next mode."""
        self.place += 1
        self._begin()

    def _begin(self) -> None:
        has_more = self.place < len(self.modes)
        self.left = self.shape[self.modes[self.place]] if has_more else None


def _simpler(one: Extent, other: Extent | None) -> Extent:
    """Return the one of two equal sizes that is written in fewer operations."""
    return one if other is None or len(str(one)) <= len(str(other)) else other


def _quotient(sizes: Sizes, product: Extent, factor: Extent) -> Extent | None:
    """Divide a size by another one; None where that is not exact."""
    if sizes.value(product) % sizes.value(factor):
        return None
    if product.constant is not None and factor.constant is not None:
        return const(int(product.constant) // int(factor.constant))
    rest = _without(product, factor)
    if rest is not None:
        return rest
    sizes.guard(Extent("==", (Extent("%", (product, factor)), const(0))), True)
    return Extent("//", (product, factor))


def _without(product: Extent, factor: Extent) -> Extent | None:
    """Leave a factor out of a product; None where it is none."""
    if product.operator != "*":
        return None
    one, other = product.args
    if one == factor:
        return _extent(other)
    if other == factor:
        return _extent(one)
    for other_part, searched in ((one, other), (other, one)):
        rest = _without(searched, factor)
        if rest is not None:
            return Extent("*", (other_part, rest) if other_part is one else (rest, other_part))
    return None


def _extent(value: object) -> Extent:
    assert isinstance(value, Extent)
    return value
