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

from taco_py.cost.machine import LINE, LINE_BYTES, NEAR, NEXT_LINE


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


@dataclass(frozen=True, slots=True)
class Fetch:
    """Lines of one array in runs of neighbours."""

    runs: float
    each: float

    @property
    def lines(self) -> float:
        return self.runs * self.each

    @property
    def cost(self) -> float:
        """Steps: of each run the first line is waited for, others are fetched ahead of use."""
        return self.runs * (LINE + NEXT_LINE * (self.each - 1))


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
        self.found: dict[int, tuple[Fetch, ...]] = {}
        self.fitting: dict[int, bool] = {0: True}

    @property
    def near(self) -> bool:
        """Whether all fits, so that no loop fetches any."""
        return self.fits(self.every)

    def fetching(self, outer: int, bit: int) -> float:
        """Steps of the fetches that belong to the loop over `bit` inside loops over `outer`."""
        inner = self.every & ~(outer | bit)
        if self.near or self.fits(inner | bit) or not self.fits(inner):
            return 0.0
        entered, rounds = self.count(outer), self.count(outer | bit)
        nest, whole = self.touched(inner), self.touched(inner | bit)
        cost = 0.0
        for array, one, all_ in zip(self.arrays, nest, whole, strict=True):
            if bit in array.stored:
                cost += array.moves * entered * all_.cost
            else:
                led = all_.lines > one.lines * LED
                cost += array.moves * (rounds if led else entered) * one.cost
        return cost

    def fits(self, inner: int) -> bool:
        """Whether loops over these indices are a nest; those over none are."""
        if inner not in self.fitting:
            lines = sum(fetch.lines for fetch in self.touched(inner))
            self.fitting[inner] = lines * LINE_BYTES <= NEAR
        return self.fitting[inner]

    def touched(self, inner: int) -> tuple[Fetch, ...]:
        """What one execution of the loops over `inner` touches of each array."""
        if inner not in self.found:
            self.found[inner] = tuple(self._touched(array, inner) for array in self.arrays)
        return self.found[inner]

    def _touched(self, array: Touched, inner: int) -> Fetch:
        outer = self.every & ~inner
        around = max(self.count(outer), 1e-300)
        own = sum(bit for bit in set(array.stored) if bit & inner)
        met = min(self.count(outer | own), self.count(self.every))
        elements = max(1.0, met / around)
        if not array.sizes:
            return Fetch(1.0, max(1.0, elements * array.bytes / LINE_BYTES))
        run, room = 1.0, 1.0  # neighbouring elements that are all touched, that may be touched
        for bit, size in zip(reversed(array.stored), reversed(array.sizes), strict=True):
            if not own & bit:
                break
            room *= size
            if run * size == room and self.count(outer | bit) >= around * size * DENSE:
                run = room
        others = prod(n for bit, n in zip(array.stored, array.sizes, strict=True) if bit & own)
        some = Fetch(max(1.0, elements / run), max(1.0, run * array.bytes / LINE_BYTES))
        full = Fetch(others / room, max(1.0, room * array.bytes / LINE_BYTES))
        return min(some, full, Fetch(elements, 1.0), key=lambda fetch: fetch.cost)


DENSE = 0.5
"""The share of an index's coordinates from which on a loop over it meets neighbours."""
LED = 1.5
"""How many times more lines all rounds of a loop touch than one, where each leads elsewhere."""
