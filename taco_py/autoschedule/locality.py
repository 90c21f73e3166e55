"""How many cache lines loops fetch from beyond the near caches, added up loop by loop.

    Y[i,f] += E[i,j] * X[j,f]
    f,i,j    one execution of i and j touches all of X: each iteration of j fetches its own line
    i,j,f    one execution of j and f touches a few rows of X: eight iterations of f share a line

Loops inside some others are a *nest* where all that one execution of them touches fits. Around the
largest nest in an order stands the loop whose rounds fetch lines:

    all that it touches in the end   of an array that it indexes, for neighbours come in turn
    what its nest touches, each time  of one that it leads to other places of by a sparse operand
    what its nest touches, once       of any other

(The footprints of Wolf and Lam 1991, A data locality optimizing algorithm, with the counts of
sparse loops in place of products of bounds.)

What a set of inner loops touches does not depend on their order, so that the fetches belong to one
loop, the first around the nest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from taco_py.cost.machine import LINE, LINE_BYTES, NEAR


@dataclass(frozen=True, slots=True)
class Touched:
    """An array that innermost iterations read or write.

    stored  the indices of its levels, outermost first, a bit each
    bytes   of an element, with its coordinates where it stores them
    sizes   of these indices; none where it holds entries one after another
    moves   how often a line comes and goes: twice where it is written
    """

    stored: tuple[int, ...]
    bytes: int
    sizes: tuple[float, ...]
    moves: int = 1


class Locality:
    """The lines that the loops over `every` index of a term fetch.

    count  the iterations of loops over a set of indices
    """

    def __init__(
        self, arrays: Sequence[Touched], every: int, count: Callable[[int], float]
    ) -> None:
        self.arrays = tuple(arrays)
        self.every = every
        self.count = count
        self.touched: dict[int, list[float]] = {}

    def fetching(self, outer: int, bit: int) -> float:
        """Steps of the fetches that belong to the loop over `bit` inside loops over `outer`."""
        inner = self.every & ~(outer | bit)
        if self.fits(self.every) or self.fits(inner | bit) or not self.fits(inner):
            return 0.0
        entered, rounds = self.count(outer), self.count(outer | bit)
        fetched = 0.0
        for place, array in enumerate(self.arrays):
            one, all_ = self.lines(inner)[place], self.lines(inner | bit)[place]
            indexed, led = bit in array.stored, all_ > one * LED
            fetched += array.moves * (
                entered * all_ if indexed else (rounds if led else entered) * one
            )
        return LINE * fetched

    def fits(self, inner: int) -> bool:
        """Whether loops over these indices are a nest; those over none are."""
        return not inner or sum(self.lines(inner)) * LINE_BYTES <= NEAR

    def lines(self, inner: int) -> list[float]:
        """The lines of each array that one execution of the loops over `inner` touches."""
        if inner not in self.touched:
            self.touched[inner] = [self._lines(array, inner) for array in self.arrays]
        return self.touched[inner]

    def _lines(self, array: Touched, inner: int) -> float:
        outer = self.every & ~inner
        around = max(self.count(outer), 1e-300)
        own = sum(bit for bit in set(array.stored) if bit & inner)
        met = min(self.count(outer | own), self.count(self.every))
        elements = max(1.0, met / around)
        if not array.sizes:
            return max(1.0, elements * array.bytes / LINE_BYTES)
        run, every = 1.0, 1.0  # neighbouring elements that are all touched, that may be touched
        for bit, size in zip(reversed(array.stored), reversed(array.sizes), strict=True):
            if not own & bit:
                break
            every *= size
            if run * size == every and self.count(outer | bit) >= around * size * DENSE:
                run = every
        runs = max(1.0, elements / run) * max(1.0, run * array.bytes / LINE_BYTES)
        others = prod(n for bit, n in zip(array.stored, array.sizes, strict=True) if bit & own)
        full = others / every * max(1.0, every * array.bytes / LINE_BYTES)
        return min(runs, full, elements)


DENSE = 0.5
"""The share of an index's coordinates from which on a loop over it meets neighbours."""
LED = 1.5
"""How many times more lines all rounds of a loop touch than one, where each leads elsewhere."""
