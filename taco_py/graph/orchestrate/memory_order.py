"""The order of kernels in which the least memory is held at a time, and where buffers lie.

What is held after some kernels ran depends on which ran, not on their order: values that were made
and that others read, or that are results. So the best order is a path through execution states of
kernels whose fullest step is the least full (a bottleneck shortest path, Dijkstra's algorithm with
the maximum for the sum). Too many states, and the path is one of the few best of each length.

    0 → 1 → 4, 2 → 3 → 4;  8 bytes for 0 and 2, 1 for 1 and 3   →   0 1 2 3 4: 10, 0 2 1 3 4: 17
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush

from codegen.records import dataclass
from taco_py.graph.orchestrate.candidate_kernels import Kernel
from taco_py.graph.orchestrate.dag import bits
from taco_py.graph.orchestrate.kernel_choice import run_order
from taco_py.language.diagnostics.errors import ScheduleError

MOST_STATES = 20_000
"""Execution states of kernels that are tried for the best order."""
BEAM_STATES = 8
"""States of each number of kernels that are followed where there are more."""

Step = tuple[int, int, tuple[int, ...]]
"""The largest number of bytes so far, those held now, the numbers of the kernels that ran."""


@dataclass(frozen=True, slots=True)
class MemoryOrder:
    """Kernels in order, the most bytes that are held at a time, and whether no order holds less."""

    kernels: tuple[Kernel, ...]
    peak: int
    is_best: bool


@dataclass(frozen=True, slots=True)
class _LiveValues:
    """What a set of kernels holds, and what a step needs."""

    kernels: tuple[Kernel, ...]
    sizes: Mapping[int, int]
    results: int

    def after(self, ran: int) -> int:
        """Return the values that exist once these kernels ran, and are read later or results."""
        outputs, inputs = 0, self.results
        for n, kernel in enumerate(self.kernels):
            if ran >> n & 1:
                outputs |= kernel.outputs
            else:
                inputs |= kernel.inputs
        return outputs & inputs

    def bytes(self, values: int) -> int:
        """Return the bytes of values."""
        return sum(self.sizes[t] for t in bits(values))

    def ready(self, ran: int) -> list[int]:
        """Return the kernels that can run next."""
        outputs = 0
        for n in bits(ran):
            outputs |= self.kernels[n].outputs
        return [
            n
            for n, kernel in enumerate(self.kernels)
            if not ran >> n & 1 and not kernel.inputs & ~outputs
        ]


def order_by_memory(
    kernels: Sequence[Kernel],
    sizes: Mapping[int, int],
    results: int = 0,
    most_states: int = MOST_STATES,
) -> MemoryOrder:
    """Order kernels so that the values that exist at a time take the fewest bytes.

    sizes    the bytes of each value that a kernel makes
    results  values that exist until the end

    Raises ScheduleError where kernels wait for each other, or a value has no size.
    """
    _, stuck = run_order(kernels)
    if stuck:
        raise ScheduleError(
            f"Expected kernels that can run, found {stuck[0]}, whose inputs nobody makes"
        )
    unknown = [t for kernel in kernels for t in bits(kernel.outputs) if sizes.get(t, -1) < 0]
    if unknown:
        raise ScheduleError(f"Expected the bytes of value {unknown[0]}, found none in `sizes`")
    live = _LiveValues(tuple(kernels), sizes, results)
    path = _best_path(live, most_states)
    peak, order = path if path is not None else _beam_path(live)
    return MemoryOrder(tuple(kernels[n] for n in order), peak, path is not None)


def peak_bytes(kernels: Sequence[Kernel], sizes: Mapping[int, int], results: int = 0) -> int:
    """Return the most bytes that are held at a time when kernels run in this order."""
    live, ran, peak = _LiveValues(tuple(kernels), sizes, results), 0, 0
    for n, kernel in enumerate(kernels):
        peak = max(peak, live.bytes(live.after(ran) | kernel.outputs))
        ran |= 1 << n
    return peak


def _best_path(live: _LiveValues, most_states: int) -> tuple[int, tuple[int, ...]] | None:
    """Return the least peak and its order; None where too many states are tried."""
    all_kernels = (1 << len(live.kernels)) - 1
    best = {0: 0}
    heap: list[tuple[int, int, int, tuple[int, ...]]] = [(0, 0, 0, ())]
    while heap and len(best) <= most_states:
        peak, _, ran, order = heappop(heap)
        if ran == all_kernels:
            return peak, order
        if peak > best[ran]:
            continue
        values = live.after(ran)
        for n in live.ready(ran):
            after, step = ran | 1 << n, live.bytes(values | live.kernels[n].outputs)
            if max(peak, step) < best.get(after, max(peak, step) + 1):
                best[after] = max(peak, step)
                heappush(heap, (best[after], -len(order), after, (*order, n)))
    return None


def _beam_path(live: _LiveValues) -> tuple[int, tuple[int, ...]]:
    """Return a small peak and its order, from the few sets of each size that hold the least."""
    wave: dict[int, Step] = {0: (0, 0, ())}
    for _ in live.kernels:
        states: dict[int, Step] = {}
        for ran, (peak, _, order) in wave.items():
            values = live.after(ran)
            for n in live.ready(ran):
                after, step = ran | 1 << n, live.bytes(values | live.kernels[n].outputs)
                state = (max(peak, step), live.bytes(live.after(after)), (*order, n))
                states[after] = min(states.get(after, state), state)
        best = sorted(states.items(), key=lambda item: (item[1], item[0]))[:BEAM_STATES]
        wave = dict(best)
    ((peak, _, order),) = sorted(wave.values())[:1]
    return peak, order
