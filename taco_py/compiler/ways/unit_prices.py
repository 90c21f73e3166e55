"""The expected seconds of a kernel on a GPU, for one way to share its loops among units.

    seconds = launch + max(bytes / bandwidth, instructions / schedulers, longest thread · latency,
                           atomic additions)

Warps wait for their slowest lane, and the kernel for its slowest thread: the longest rows of a
sparse operand determine the cost. A load of a warp moves the sectors of 32 bytes that its lanes
touch: as few as the bytes fill where lanes access adjacent elements, one where all access the same
element, one for each lane where elements are scattered. All numbers are expectations, from the same
statistics as loop orders.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from math import ceil

import numpy as np

from codegen.records import dataclass
from taco_py.compiler.concrete.terms import Term
from taco_py.compiler.cost.estimate import Statistics
from taco_py.compiler.cost.machine import Machine
from taco_py.compiler.schedule.commands import Command
from taco_py.language.legal.stored import is_sparse
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access
from taco_py.language.problem import Problem


@dataclass(frozen=True, slots=True)
class Sharing:
    """A way to share the loops of a term among the units of a GPU.

    order     the loops, outermost first
    commands  the commands that share them
    groups    the number of outer loops that groups of threads share; for 0 each thread is a group
    lane      the loop that adjacent threads share
    width     the threads of a group
    chunk     the iterations of each thread, or of each group where its threads have another loop;
              0 where loops are not split
    over      the kind of these iterations: a "range" of an operand's entries, "entries" that lanes
              process one by one, or an "index" that is summed over
    words     the description for users
    threads   the number of all threads, which share the first loop; 0 where it follows from loops
    """

    order: tuple[str, ...]
    commands: tuple[Command, ...]
    words: str
    groups: int = 0
    lane: int = 0
    width: int = 1
    chunk: int = 0
    over: str = "range"
    threads: int = 0


@dataclass(frozen=True, slots=True)
class Price:
    """Seconds, and the figures that they follow from."""

    seconds: float
    bytes: float
    instructions: float
    longest: float

    @property
    def bound(self) -> str:
        """Return the seconds in words."""
        return f"{self.seconds * 1e6:.1f} µs"


def total(prices: Sequence[Price]) -> Price:
    """Return the price of several terms in turn."""
    return Price(
        sum(price.seconds for price in prices),
        sum(price.bytes for price in prices),
        sum(price.instructions for price in prices),
        sum(price.longest for price in prices),
    )


@dataclass(frozen=True, slots=True)
class Nest:
    """The loops of one term in one order, shared in one way."""

    problem: Problem
    term: Term
    stats: Statistics
    sharing: Sharing
    visits_at: dict[int, float] = field(default_factory=dict, compare=False, repr=False)

    @property
    def machine(self) -> Machine:
        return self.stats.machine

    def visits(self, depth: int) -> float:
        """Return the number of executions of the loop body at a depth, 1 outside of all loops."""
        if depth < 0:
            return 1.0
        if depth not in self.visits_at:
            bound = frozenset(self.sharing.order[: depth + 1])
            value = self.term.as_sum(self.problem.result.dtype)
            self.visits_at[depth] = max(self.stats.iterations(value, bound), 1e-9)
        return self.visits_at[depth]

    def mean(self, depth: int) -> float:
        """Return the mean number of iterations of a loop each time it is entered."""
        return self.visits(depth) / self.visits(depth - 1)

    def most(self, depth: int) -> float:
        """Return the most iterations of a loop."""
        order = self.sharing.order
        size = self.stats.sizes[order[depth]]
        for access in self.walked(depth):
            above = [i for i in access.indices if i in order[:depth]]
            if not above:
                continue
            entries = self.stats.patterns[access.tensor].entries
            mode = access.indices.index(above[0])
            if entries is None or not entries.has_counts(mode):
                size = min(size, self.machine.units.unknown_rows_ratio * self.mean(depth))
            elif len(above) == 1:
                size = min(size, entries.spread(mode).most)
        return max(size, 1.0)

    def walked(self, depth: int) -> list[Access]:
        """Return the sparse operands whose entries a loop runs over."""
        index = self.sharing.order[depth]
        return [
            access
            for access in dict.fromkeys(accesses(self.term.body))
            if index in access.indices and is_sparse(self.problem.type_of(access.tensor).format)
        ]

    def slowest(self, depth: int, lanes: int) -> float:
        """Return the iterations of a loop by the slowest of `lanes` adjacent threads."""
        mean = self.mean(depth)
        for access in self.walked(depth):
            above = [i for i in access.indices if i in self.sharing.order[:depth]]
            entries = self.stats.patterns[access.tensor].entries
            if not above:
                continue
            mode = access.indices.index(above[0])
            if len(above) > 1 or entries is None or not entries.has_counts(mode):
                return 1.5 * mean
            return max(mean, _expected_most(entries.spread(mode).groups, lanes))
        return mean

    # ------------------------------------------------------------ the price

    def price(self) -> Price:
        """Return the price of the loops."""
        machine, gpu = self.machine, self.machine.target.gpu
        iterations, longest, warps = self.work()
        bytes = sum(map(self.bytes_of, self.touched()))
        instructions = iterations * machine.units.iteration_instructions
        in_flight = max(warps, 1.0) * gpu.warp_threads * 8 / gpu.latency_seconds
        parts = (
            bytes / min(gpu.memory_bytes_per_second, in_flight),
            instructions / gpu.instructions_per_second,
            longest * machine.units.iteration_latency_seconds,
            self.atomics() * machine.units.atomic_seconds,
        )
        rest = gpu.unhidden_share * (sum(parts) - max(parts))
        seconds = gpu.launch_seconds + max(parts) + rest
        return Price(seconds, bytes, instructions, longest)

    def work(self) -> tuple[float, float, float]:
        """Return the iterations of all warps and of the slowest thread, and the number of warps."""
        sharing, warp = self.sharing, self.machine.target.gpu.warp_threads
        last = len(sharing.order) - 1
        inner = self.visits(last) / self.visits(sharing.lane)
        if sharing.threads:
            share = ceil(self.visits(0) / sharing.threads) * self.visits(last) / self.visits(0)
            count = ceil(sharing.threads / warp)
            return share * count, share, count
        if sharing.chunk:
            return self.chunked(inner)
        if sharing.groups == 0:
            slow = longest = 1.0
            for depth in range(1, last + 1):
                slow *= self.slowest(depth, warp)
                longest *= self.most(depth)
            warps = ceil(self.visits(0) / warp)
            return warps * slow, longest, warps
        groups = self.visits(sharing.groups - 1)
        before = self.visits(sharing.lane - 1)
        rounds = max(1.0, ceil(self.mean(sharing.lane) / sharing.width))
        share = sharing.width / warp
        iterations = before * rounds * share * inner
        longest = float(ceil(self.most(sharing.lane) / sharing.width))
        for depth in range(sharing.lane + 1, last + 1):
            longest *= self.most(depth)
        if sharing.order[sharing.lane] not in self.target_indices:
            steps = np.log2(min(sharing.width, warp)) / np.log2(warp)
            combining = float(
                self.machine.units.combine_iterations * (steps if sharing.width <= warp else 4)
            )
            iterations += before * share * combining
            longest += combining
        for depth in range(sharing.groups, sharing.lane):
            longest *= self.most(depth)
        return iterations + groups * share, longest, groups * share

    def atomics(self) -> float:
        """Return the number of atomic additions.

        They are at both ends of each range of entries, or all additions to elements that several
        threads add to.
        """
        sharing, last = self.sharing, len(self.sharing.order) - 1
        warp = self.machine.target.gpu.warp_threads
        if sharing.threads:
            return 0.0
        if sharing.chunk and set(sharing.order[: sharing.groups]) != set(self.target_indices):
            lanes = self.mean(sharing.lane) if sharing.width > 1 else 1.0
            if sharing.over == "entries":
                return self.visits(last) * (1.0 / self.run + self.moves / warp)
            if sharing.over == "range":
                return 2.0 * lanes * self.visits(sharing.groups - 1) / sharing.chunk
            return self.visits(last) / sharing.chunk
        shared_depths = (*range(sharing.groups), sharing.lane)
        summed = [k for k in shared_depths if sharing.order[k] not in self.target_indices]
        inside = any(i in self.target_indices for k in summed for i in sharing.order[k + 1 :])
        return self.visits(last) if inside else 0.0

    def chunked(self, inner: float) -> tuple[float, float, float]:
        """Return `work` where entries are split evenly.

        Each thread or warp then searches its first row.
        """
        sharing, machine = self.sharing, self.machine
        warp = machine.target.gpu.warp_threads
        in_lanes = sharing.width > 1
        entries = self.visits(sharing.groups - 1)
        parts = ceil(entries / sharing.chunk)
        warps = parts * ceil(sharing.width / warp) if in_lanes else ceil(parts / warp)
        rounds = ceil(self.mean(sharing.lane) / sharing.width) if in_lanes else 1.0
        iterations = sharing.chunk * rounds * (inner if in_lanes else 1.0)
        if sharing.over == "index":
            return warps * iterations, iterations, warps
        if sharing.over == "entries":
            warps, iterations = parts, sharing.chunk / warp * self.round
        search = machine.units.search_iterations * np.log2(max(self.visits(0), 2.0)) / 16.0
        return warps * (iterations + search), iterations + search, warps

    @property
    def run(self) -> float:
        """Return the number of consecutive entries that are added to one element of the result."""
        order = self.sharing.order
        inner = next(
            (k for k, index in enumerate(order) if index not in self.target_indices), len(order)
        )
        return max(1.0, self.visits(len(order) - 1) / self.visits(inner - 1))

    @property
    def moves(self) -> float:
        """Return the share of the iterations of a warp in which a lane proceeds to another
        element."""
        return min(1.0, self.machine.target.gpu.warp_threads / self.run)

    @property
    def round(self) -> float:
        """Return the iterations of a warp whose lanes process an entry each.

        They search its row among the rows of the warp, and combine their terms of a row.
        """
        machine, runs = self.machine, self.sharing.chunk / self.run
        steps = np.log2(1.0 + runs) * machine.units.search_iterations / 16.0 / 4.0
        return float(1.0 + steps + machine.units.combine_iterations * self.moves)

    @property
    def target_indices(self) -> tuple[str, ...]:
        return self.problem.assignment.target.indices

    def touched(self) -> Sequence[Access]:
        """Return the accesses that are read and written."""
        return (*dict.fromkeys(accesses(self.term.body)), self.problem.assignment.target)

    def differs(self, access: Access, lane: str) -> bool:
        """Tell whether adjacent threads access different elements of an operand at a time."""
        order = self.sharing.order
        return lane in access.indices or any(
            lane in walked.indices
            for index in access.indices
            if index in order
            for walked in self.walked(order.index(index))
        )

    def bytes_of(self, access: Access) -> float:
        """Return the bytes of an operand or of the result that move to the threads and back."""
        order, sharing, machine = self.sharing.order, self.sharing, self.machine
        type = self.problem.type_of(access.tensor)
        size = np.dtype(type.dtype).itemsize
        size += 4 if is_sparse(type.format) else 0
        sector, warp = machine.target.gpu.sector_bytes, machine.target.gpu.warp_threads
        depths = [order.index(i) for i in access.indices if i in order]
        if not depths:
            return 0.0
        visits = self.visits(max(depths))
        stored = type.format.stored(access.indices)
        lane = order[sharing.lane]
        innermost = self.walked(len(order) - 1) or [access]
        walked = stored[-1] == order[-1] and order[-1] != lane and access in innermost
        near = min(float(sector), size * machine.units.strided_ratio) if walked else float(sector)
        if sharing.over == "entries":
            return visits * (size if is_sparse(type.format) or depths == [0] else float(sector))
        if not self.differs(access, lane):
            return visits * near / warp
        lane_operands = self.walked(sharing.lane)
        return visits * (
            size if stored[-1] == lane and access in (lane_operands or [access]) else near
        )


def _expected_most(groups: Sequence[tuple[float, float]], lanes: int) -> float:
    """Return the expected maximum of entries of `lanes` rows, drawn from groups of equal rows."""
    total = sum(count for count, _ in groups)
    if total <= 0:
        return 0.0
    expected, below, before = 0.0, 0.0, 0.0
    for count, entries in sorted(groups, key=lambda group: group[1]):
        below = min(1.0, below + count / total)
        chance = below**lanes
        expected += (chance - before) * entries
        before = chance
    return expected
