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
    sizes   of these indices; of a sparse array those of its dense levels below its last sparse
            level, which form a block of consecutive entries: none where each block is one entry
    moves   how often a line is moved: twice where it is written
    """

    stored: tuple[int, ...]
    bytes: int
    sizes: tuple[float, ...]
    moves: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Fetch:
    """Lines of one array in runs of neighbours, for many sets of loops.

    runs    the number of runs
    length  the lines of a run
    """

    runs: Numbers
    length: Numbers

    @property
    def lines(self) -> Numbers:
        return self.runs * self.length

    def steps(self, machine: Machine) -> Numbers:
        """Return the steps: the first line of a run is waited for, the others are prefetched."""
        return self.runs * (
            machine.loops.line_steps + machine.loops.next_line_steps * (self.length - 1)
        )

    def far_steps(self, machine: Machine) -> Numbers:
        """Return the additional steps where the lines come from memory."""
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
        """Tell whether all that is touched fits the near caches, so that no loop fetches lines."""
        room = self.machine.loops.near_cache_bytes
        if sum(self._at_most(array) for array in self.arrays) * self.line_bytes <= room:
            return True
        return bool(self._fits([self._touched(array, NO_LOOPS) for array in self.arrays], room)[0])

    def _at_most(self, array: Touched) -> float:
        """Return an upper bound of the lines that all loops touch of an array.

        A run costs `next_line_steps` for each line but the first, and no other way to touch the
        array costs more than one run of all its lines.
        """
        dense = len(array.sizes) == len(array.stored)
        elements = prod(array.sizes) if dense else float(self.counts[-1])
        machine = self.machine
        return (
            elements * array.bytes / self.line_bytes
            + machine.loops.line_steps / machine.loops.next_line_steps
        )

    def fetching(self) -> Numbers:
        """Return the steps of the fetches that belong to each loop, inside loops over each set.

        A row for each index. They are the fetches from beyond the near caches, and the additional
        steps of those from memory.
        """
        every = np.arange(len(self.counts))
        touched = [self._touched(array, every) for array in self.arrays]
        machine, far = self.machine, self.machine.loops.far_cache_bytes
        steps = [fetch.steps(machine) for fetch in touched]
        total = self._from_beyond(touched, machine.loops.near_cache_bytes, steps)
        if not self._fits(touched, far)[0]:
            total += self._from_beyond(touched, far, [e.far_steps(machine) for e in touched], 1)
        return total

    def _from_beyond(
        self, touched: Sequence[Fetch], room: int, costs: Sequence[Numbers], most: int = 2
    ) -> Numbers:
        """Return the steps of the fetches from beyond caches of `room` bytes.

        costs  of the lines that the loops inside each set touch of each array
        most   how often a line counts: once where written lines go back while others come
        """
        inside = self.lattice.inside
        fits = self._fits(touched, room)
        fits[-1] = True  # no loop is inside all
        entered, rounds = self.counts, self.counts[inside]
        round_lines = fold(np.add, (fetch.lines for fetch in touched))[inside]
        total = np.zeros(inside.shape)
        for array, fetch, cost in zip(self.arrays, touched, costs, strict=True):
            lines = fetch.lines
            elsewhere = lines > lines[inside] * ELSEWHERE_RATIO
            between = lines * round_lines / lines[inside]  # what is touched before a line again
            stays = between * self.line_bytes <= room
            steps = np.where(elsewhere & ~stays, rounds, entered) * np.where(
                elsewhere & stays, cost, cost[inside]
            )
            indexed = list(array.stored)
            steps[indexed] = entered * cost
            total += min(array.moves, most) * steps
        return np.where(~fits & fits[inside], total, 0.0)

    def _touched(self, array: Touched, places: Places) -> Fetch:
        """Return the lines of an array that one execution of the loops inside each set touches."""
        has = self.lattice.has[:, places]
        rounds = np.maximum(self.counts[places], 1e-300)
        touched = np.minimum(self._count_joined(array.stored, places), self.counts[-1])
        elements = np.maximum(1.0, touched / rounds)
        if len(array.sizes) < len(array.stored):
            return self._block_lines(array, elements, has[list(array.stored)])
        run, room = np.ones_like(elements), np.ones_like(elements)
        inner = np.ones(has.shape[1], np.bool_)
        for level, size in reversed(tuple(enumerate(array.sizes))):
            inner &= ~has[array.stored[level]]
            room = np.where(inner, room * size, room)
            pending = np.flatnonzero(inner & (run * size == room))
            above, touched = (
                self._count_joined(array.stored[:count], places[pending])
                for count in (level, level + 1)
            )
            longer = pending[touched >= above * size * NEIGHBOUR_SHARE]
            run[longer] = room[longer]
        outer = product(np.array(array.sizes), ~has[list(array.stored)])
        options = (
            Fetch(
                np.maximum(1.0, elements / run),
                np.maximum(1.0, run * array.bytes / self.line_bytes),
            ),
            Fetch(outer / room, np.maximum(1.0, room * array.bytes / self.line_bytes)),
            Fetch(elements, np.ones_like(elements)),
        )
        return self._cheapest(options)

    def _count_joined(self, rows: Sequence[int], places: Places) -> Numbers:
        """Return the iterations over each set joined with the indices of some rows."""
        if self.lattice.full:
            bits = sum(1 << row for row in set(rows))
            counts: Numbers = self.counts[places | bits]
            return counts
        return self.count_of(self.sets.unite(places, rows))

    def _fits(self, touched: Sequence[Fetch], room: int) -> Bits:
        """Tell for which sets of outer loops the inner loops are a nest, for caches of `room`
        bytes."""
        lines = fold(np.add, (fetch.lines for fetch in touched), np.zeros(1))
        fits: Bits = lines * self.line_bytes <= room
        return fits

    def _block_lines(self, array: Touched, elements: Numbers, has: Bits) -> Fetch:
        """Return the lines of the entries of a sparse array, which lie in consecutive blocks.

        Some places of a block are read where outer loops run over other indices of it, else all of
        it.

        has  the indices of each level that outer loops run over, for each set
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
        lines = np.maximum(1.0, elements * skipped * array.bytes / self.line_bytes)
        runs = np.where(skipped > 1.0, np.maximum(1.0, elements / run), 1.0)
        length = np.maximum(1.0, elements / runs * array.bytes / self.line_bytes)
        return self._cheapest((Fetch(np.ones_like(elements), lines), Fetch(runs, length)))

    def _cheapest(self, options: Sequence[Fetch]) -> Fetch:
        """Return the cheapest option for each set; the first of equal ones."""
        best = np.argmin([option.steps(self.machine) for option in options], axis=0)
        return Fetch(
            np.choose(best, [e.runs for e in options]), np.choose(best, [e.length for e in options])
        )


NO_LOOPS = np.array([0])
"""The number of the empty set of loops."""
NEIGHBOUR_SHARE = 0.5
"""The least share of an index's coordinates for which a loop over it visits neighbours."""
ELSEWHERE_RATIO = 1.5
"""The least ratio of lines of all rounds of a loop to one round, where rounds touch other lines."""
