"""Modes of values as terms: a mode is one variable, or the product of several.

    x: (n, c)   →   y = reshape(x): (n, 4, c//4)       c of x = 4 × c//4

Modes that run over the same positions are one term (unification, Robinson 1965). Modes of what
kernels do not read by parts are one variable in any case.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from taco_py.graph.extents import Extent, product


class DisagreementError(Exception):
    """Two modes that cannot be the same: one is not split, or into other sizes."""


class ModeTerms:
    """Variables, what each of them is, and the sizes of those that are left.

    equal   a variable that another one is the same as
    parts   the variables that one is the product of
    sizes   each size that a variable is written as
    firm    variables that are not split
    """

    def __init__(self) -> None:
        self.equal: list[int] = []
        self.parts: dict[int, tuple[int, ...]] = {}
        self.sizes: dict[int, frozenset[Extent]] = {}
        self.firm: set[int] = set()

    def fresh(self, size: Extent, firm: bool = False) -> int:
        """Return a new variable."""
        name = len(self.equal)
        self.equal.append(name)
        self.sizes[name] = frozenset((size,))
        if firm:
            self.firm.add(name)
        return name

    def root(self, name: int) -> int:
        """Return the variable that stands for all that are the same as one."""
        while self.equal[name] != name:
            name = self.equal[name]
        return name

    def leaves(self, name: int) -> Iterator[int]:
        """Yield the variables that a mode is the product of, none of which is a product."""
        name = self.root(name)
        if name not in self.parts:
            yield name
            return
        for part in self.parts[name]:
            yield from self.leaves(part)

    def unify(self, one: int, other: int) -> None:
        """Make two modes the same. Raises DisagreementError, and leaves the terms half done."""
        one, other = self.root(one), self.root(other)
        if one == other:
            return
        first, second = self.parts.get(one), self.parts.get(other)
        if first is not None and second is not None:
            self._unify_products(first, second)
            one, other = self.root(one), self.root(other)
            if one == other:
                return
        elif second is not None:
            one, other = other, one
        if one in self.parts and (other in self.firm or other in self.leaves(one)):
            raise DisagreementError
        self.equal[other] = one
        self.sizes[one] |= self.sizes[other]
        if other in self.firm:
            self.firm.add(one)
        self.parts.pop(other, None)

    def split(self, name: int, factors: Sequence[int]) -> None:
        """Make a mode the product of others. Raises DisagreementError."""
        if len(factors) == 1:
            self.unify(name, factors[0])
            return
        name = self.root(name)
        if name in self.firm or any(name in self.leaves(factor) for factor in factors):
            raise DisagreementError
        if name in self.parts:
            self._unify_products(self.parts[name], tuple(factors))
        else:
            self.parts[name] = tuple(factors)

    def _unify_products(self, first: Sequence[int], second: Sequence[int]) -> None:
        """Make the factors of two products the same, where one may be the product of several."""
        lists = [[leaf for name in side for leaf in self.leaves(name)] for side in (first, second)]
        while lists[0] and lists[1]:
            one, other = lists[0][0], lists[1][0]
            if self.sizes[one] & self.sizes[other]:
                self.unify(one, other)
                lists = [side[1:] for side in lists]
                continue
            for side, product_name in ((1, one), (0, other)):
                count = self._count_of_factors(product_name, lists[side])
                if count:
                    self.split(product_name, lists[side][:count])
                    lists[side], lists[1 - side] = lists[side][count:], lists[1 - side][1:]
                    break
            else:
                raise DisagreementError
        if lists[0] or lists[1]:
            raise DisagreementError

    def _count_of_factors(self, product_name: int, factors: Sequence[int]) -> int:
        """Return how many factors from the first on a size is written as the product of, or 0."""
        for count in range(2, len(factors) + 1):
            if product([self.size(name) for name in factors[:count]]) in self.sizes[product_name]:
                return count
        return 0

    def size(self, name: int) -> Extent:
        """Return the size of a variable: the simplest that it is written as."""
        return min(self.sizes[self.root(name)], key=lambda size: (len(str(size)), str(size)))

    def copy(self) -> ModeTerms:
        """Return terms that change apart from these."""
        other = ModeTerms()
        other.equal, other.parts = [*self.equal], {**self.parts}
        other.sizes, other.firm = {**self.sizes}, {*self.firm}
        return other
