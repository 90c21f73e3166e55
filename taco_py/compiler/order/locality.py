"""How many cache lines loops fetch from beyond the near caches, added up loop by loop.

    Y[i,f] += E[i,j] * X[j,f]
    f,i,j    one execution of i and j touches all of X: each iteration of j fetches its own line
    i,j,f    one execution of j and f touches a few rows of X: eight iterations of f share a line

Loops inside some others are a *nest* where all that one execution of them touches fits. Around the
largest nest in an order stands the loop whose rounds fetch lines:

    all that it touches in the end   of an array that it indexes, for neighbours come in turn
    what its nest touches, each time  of one that it leads to other places of by a sparse operand
    what its nest touches, once       of any other

One that it leads to is also fetched just once, all that is touched in the end, where a line is met
again before so many others that it is gone: a vector or a few columns that the rows of a matrix
read, which is itself read through once.

What does not fit the far caches either comes from memory: the same is counted again for these, of
lines that cost `Machine.far_line_steps` more.

(The footprints of Wolf and Lam 1991, A data locality optimizing algorithm, with the counts of
sparse loops in place of products of bounds.)

What a set of inner loops touches does not depend on their order, so that the fetches belong to one
loop, the first around the nest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce as fold
from math import prod

import numpy as np

from codegen.records import dataclass
from taco_py.compiler.cost.machine import Machine
from taco_py.compiler.cost.sets import Bits, Lattice, Numbers, Places, Sets, product


@dataclass(frozen=True, slots=True)
class Touched:
    """An array that innermost iterations read or write.

    stored  the rows of the indices of its levels, outermost first
    bytes   of an element, with its coordinates where it stores them
    sizes   of these indices; of a sparse array those of the levels below its last list, which a
            block of entries one after another has: none where each entry is one
    moves   how often a line comes and goes: twice where it is written
    """

    stored: tuple[int, ...]
    bytes: int
    sizes: tuple[float, ...]
    moves: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Fetch:
    """Lines of one array in runs of neighbours, for each of many sets of loops."""

    runs: Numbers
    each: Numbers

    @property
    def lines(self) -> Numbers:
        return self.runs * self.each

    def steps(self, machine: Machine) -> Numbers:
        """Return the steps: of each run the first line is waited for, others are fetched ahead."""
        return self.runs * (
            machine.loops.line_steps + machine.loops.next_line_steps * (self.each - 1)
        )

    def far_steps(self, machine: Machine) -> Numbers:
        """Return the steps that it takes more where the lines come from memory."""
        return machine.loops.far_line_steps * self.lines


class Locality:
    """The lines that the loops of a term fetch.

    lattice   the sets of loops, `sets` with the names of their indices
    counts    the iterations of each
    count_of  the iterations of other sets
    """

    def __init__(
        self,
        machine: Machine,
        lattice: Lattice,
        sets: Sets,
        arrays: Sequence[Touched],
        counts: Numbers,
        count_of: Callable[[Sets], Numbers],
    ) -> None:
        self.machine = machine
        self.line_bytes = machine.loops.line_bytes
        self.lattice = lattice
        self.arrays = tuple(arrays)
        self.counts = counts
        self.count_of = count_of
        self.sets = sets

    @property
    def near(self) -> bool:
        """Tell whether all that is touched fits, so that no loop fetches any."""
        room = self.machine.loops.near_cache_bytes
        if sum(self._at_most(array) for array in self.arrays) * self.line_bytes <= room:
            return True
        return bool(self._fits([self._touched(array, NO_LOOPS) for array in self.arrays], room)[0])

    def _at_most(self, array: Touched) -> float:
        """Return no fewer lines than all loops touch of an array: a run costs `next_line_steps` for
        each line but the first, and no other way to touch it costs more than one run of all."""
        dense = len(array.sizes) == len(array.stored)
        elements = prod(array.sizes) if dense else float(self.counts[-1])
        machine = self.machine
        return (
            elements * array.bytes / self.line_bytes
            + machine.loops.line_steps / machine.loops.next_line_steps
        )

    def fetching(self) -> Numbers:
        """Return steps of the fetches that belong to the loop over an index, a row each, inside
        loops over each set: those from beyond the near caches, and what those from memory cost
        more."""
        every = np.arange(len(self.counts))
        touched = [self._touched(array, every) for array in self.arrays]
        machine, far = self.machine, self.machine.loops.far_cache_bytes
        steps = [each.steps(machine) for each in touched]
        found = self._from_beyond(touched, machine.loops.near_cache_bytes, steps)
        if not self._fits(touched, far)[0]:
            found += self._from_beyond(touched, far, [e.far_steps(machine) for e in touched], 1)
        return found

    def _from_beyond(
        self, touched: Sequence[Fetch], room: int, costs: Sequence[Numbers], most: int = 2
    ) -> Numbers:
        """What fetches cost from beyond caches of some bytes.

        costs  of what is touched of each array by the loops inside each set
        most   how often a line counts: once where what is written goes back while others come
        """
        inside = self.lattice.inside
        fits = self._fits(touched, room)
        fits[-1] = True  # no loop is inside all
        entered, rounds = self.counts, self.counts[inside]
        round_lines = fold(np.add, (each.lines for each in touched))[inside]
        found = np.zeros(inside.shape)
        for array, each, cost in zip(self.arrays, touched, costs, strict=True):
            lines = each.lines
            led = lines > lines[inside] * ELSEWHERE_RATIO
            between = lines * round_lines / lines[inside]  # what is touched before a line again
            kept = between * self.line_bytes <= room
            steps = np.where(led & ~kept, rounds, entered) * np.where(
                led & kept, cost, cost[inside]
            )
            own = list(array.stored)
            steps[own] = entered * cost
            found += min(array.moves, most) * steps
        return np.where(~fits & fits[inside], found, 0.0)

    def _touched(self, array: Touched, places: Places) -> Fetch:
        """What one execution of the loops inside each of some sets touches of an array."""
        has = self.lattice.has[:, places]
        around = np.maximum(self.counts[places], 1e-300)
        met = np.minimum(self._joined(array.stored, places), self.counts[-1])
        elements = np.maximum(1.0, met / around)
        if len(array.sizes) < len(array.stored):
            return self._blocks_met(array, elements, has[list(array.stored)])
        run, room = np.ones_like(elements), np.ones_like(elements)
        inner = np.ones(has.shape[1], np.bool_)
        for level, size in reversed(tuple(enumerate(array.sizes))):
            inner &= ~has[array.stored[level]]
            room = np.where(inner, room * size, room)
            asked = np.flatnonzero(inner & (run * size == room))
            above, met = (
                self._joined(array.stored[:count], places[asked]) for count in (level, level + 1)
            )
            longer = asked[met >= above * size * NEIGHBOUR_SHARE]
            run[longer] = room[longer]
        others = product(np.array(array.sizes), ~has[list(array.stored)])
        options = (
            Fetch(
                np.maximum(1.0, elements / run),
                np.maximum(1.0, run * array.bytes / self.line_bytes),
            ),
            Fetch(others / room, np.maximum(1.0, room * array.bytes / self.line_bytes)),
            Fetch(elements, np.ones_like(elements)),
        )
        return self._cheapest(options)

    def _joined(self, rows: Sequence[int], places: Places) -> Numbers:
        """Return the iterations over each of some sets with the indices of some rows too."""
        if self.lattice.whole:
            bits = sum(1 << row for row in set(rows))
            found: Numbers = self.counts[places | bits]
            return found
        return self.count_of(self.sets.joined(places, rows))

    def _fits(self, touched: Sequence[Fetch], room: int) -> Bits:
        """Inside which sets of loops the others are a nest, for caches of some bytes."""
        lines = fold(np.add, (each.lines for each in touched), np.zeros(1))
        found: Bits = lines * self.line_bytes <= room
        return found

    def _blocks_met(self, array: Touched, elements: Numbers, has: Bits) -> Fetch:
        """Return lines of the entries of a sparse array, which lie in blocks one after another: of
        each block some places where loops around have others of its indices, or all of them.

        has  the indices of each level that are around, for each set
        """
        count = len(array.sizes)
        if not count:
            return Fetch(
                np.ones_like(elements), np.maximum(1.0, elements * array.bytes / self.line_bytes)
            )
        free = ~has[len(has) - count :]
        run, inner = np.ones_like(elements), np.ones(has.shape[1], np.bool_)
        for row in reversed(range(count)):
            inner = inner & free[row]
            run = np.where(inner, run * array.sizes[row], run)
        sizes = np.array(array.sizes)
        skipped = product(sizes, ~free)
        whole = np.maximum(1.0, elements * skipped * array.bytes / self.line_bytes)
        runs = np.where(skipped > 1.0, np.maximum(1.0, elements / run), 1.0)
        each = np.maximum(1.0, elements / runs * array.bytes / self.line_bytes)
        return self._cheapest((Fetch(np.ones_like(elements), whole), Fetch(runs, each)))

    def _cheapest(self, options: Sequence[Fetch]) -> Fetch:
        """For each set the one that costs least, of equal ones the first."""
        best = np.argmin([each.steps(self.machine) for each in options], axis=0)
        return Fetch(
            np.choose(best, [e.runs for e in options]), np.choose(best, [e.each for e in options])
        )


NO_LOOPS = np.array([0])
"""The place of the set of no loops."""
NEIGHBOUR_SHARE = 0.5
"""The share of an index's coordinates from which on a loop over it meets neighbours."""
ELSEWHERE_RATIO = 1.5
"""How many times more lines all rounds of a loop touch than one, where each leads elsewhere."""
