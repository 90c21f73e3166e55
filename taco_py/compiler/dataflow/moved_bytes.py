"""The traffic of a dataflow graph: bytes that move between registers, near caches and main memory.

    Traffic(dram=3 · n · m, near=5 · n · m, register=6 · n · m)

dram      bytes of each array that a map reads or writes, once where what it reads again is still in
          a cache; a line that is written in a cache is read before
near      bytes of the different elements that each pass reads and writes
register  bytes of all loads and stores that are executed
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from codegen.records import dataclass
from taco_py.compiler.dataflow.nodes import (
    Dataflow,
    Load,
    Memory,
    ParallelMap,
    Pick,
    Role,
    SlabIndex,
    Store,
)

LINE_BYTES = 64
"""Bytes that a cache reads for an element by itself."""

Sizes = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes that move at each memory."""

    dram: float
    near: float
    register: float

    @property
    def amounts(self) -> tuple[float, float, float]:
        """Return the bytes at each memory, the farthest first."""
        return self.dram, self.near, self.register

    def rises_from(self, before: Traffic) -> bool:
        """Tell whether a component is larger than before."""
        return any(a > b for a, b in zip(self.amounts, before.amounts, strict=True))

    def __add__(self, other: Traffic) -> Traffic:
        pairs = zip(self.amounts, other.amounts, strict=True)
        return Traffic(*(one + another for one, another in pairs))


@dataclass(frozen=True, slots=True)
class Caches:
    """How much a core keeps near, and how much stays in the last cache.

    near  bytes of a slab that its passes may read again
    last  bytes of an array that stay where its reader is; larger ones are written past the caches
    """

    near: float
    last: float


def traffic(graph: Dataflow, sizes: Sizes, caches: Caches) -> Traffic:
    """Return the bytes that a graph moves, for sizes of its indices."""
    item_bytes = {b.name: np.dtype(b.dtype).itemsize for b in graph.buffers}
    array_bytes = {
        b.name: item_bytes[b.name] * prod(sizes[index] for index in b.indices)
        if b.memory is Memory.DRAM
        else 0.0
        for b in graph.buffers
    }
    dram = near = register = 0.0
    for map in graph.maps:
        bytes_of_map = _MapBytes(map, sizes, item_bytes)
        dram += bytes_of_map.dram(array_bytes, caches)
        near += bytes_of_map.near
        register += bytes_of_map.register
    return Traffic(dram, near, register)


def compulsory(graph: Dataflow, sizes: Sizes) -> float:
    """Return the bytes that any kernel moves: operands read once, results written once."""
    steps = [step for map in graph.maps for one in map.passes for step in one.body]
    loads = {step.buffer for step in steps if isinstance(step, Load | Store)}
    picks = {step.buffer for step in steps if isinstance(step, Pick)}
    total = 0.0
    for buffer in graph.buffers:
        if buffer.role is not Role.TEMPORARY and buffer.name in loads | picks:
            size = np.dtype(buffer.dtype).itemsize * prod(sizes[i] for i in buffer.indices)
            slabs = max((count_slabs(map, sizes) for map in graph.maps), default=1.0)
            total += size if buffer.name in loads else min(size, LINE_BYTES * slabs)
    return total


def sizes_in_slab(map: ParallelMap, sizes: Sizes) -> dict[str, float]:
    """Return the iterations of each loop inside of a slab."""
    blocks = {index.name: index.block for index in map.slab}
    return {
        name: size if name not in blocks else min(size, blocks[name])
        for name, size in sizes.items()
    }


def count_slabs(map: ParallelMap, sizes: Sizes) -> float:
    """Return the number of slabs."""
    return prod(_steps(index, sizes) for index in map.slab)


def _steps(index: SlabIndex, sizes: Sizes) -> float:
    return -(-sizes[index.name] // index.block)


def _distinct(
    indices: tuple[str, ...], slab: tuple[str, ...], over: tuple[str, ...], inner: Sizes
) -> float:
    """Return the elements that a pass touches; one an iteration where a value is an index."""
    if {*indices} <= {*slab, *over}:
        return prod(inner[index] for index in indices if index in over)
    return prod(inner[index] for index in over)


def slab_bytes(graph: Dataflow, map: ParallelMap, sizes: Sizes) -> float:
    """Return the bytes of all elements that the passes of one slab read and write."""
    item_bytes = {b.name: np.dtype(b.dtype).itemsize for b in graph.buffers}
    return _MapBytes(map, sizes, item_bytes).slab


class _MapBytes:
    """The bytes that a map moves, counted in one walk over its instructions.

    slab   of all elements that the passes of one slab read and write
    picks  elements of each buffer that are read by themselves
    """

    def __init__(self, map: ParallelMap, sizes: Sizes, item_bytes: Mapping[str, int]) -> None:
        inner, slabs = sizes_in_slab(map, sizes), count_slabs(map, sizes)
        self.near = self.register = 0.0
        self.picks: dict[str, float] = {}
        self._reads: list[tuple[set[str], dict[str, bool]]] = []
        largest: dict[tuple[str, tuple[str, ...]], float] = {}
        for one in map.passes:
            rounds = slabs * prod(inner[index] for index in one.over)
            loaded: set[str] = set()
            stored: dict[str, bool] = {}
            counted: set[tuple[str, tuple[str, ...]]] = set()
            for step in one.body:
                if isinstance(step, Load):
                    loaded.add(step.buffer)
                elif isinstance(step, Pick):
                    self.picks[step.buffer] = self.picks.get(step.buffer, 0.0) + rounds
                elif isinstance(step, Store):
                    stored[step.buffer] = stored.get(step.buffer, True) and step.streaming
                else:
                    continue
                self.register += rounds * item_bytes[step.buffer]
                place = step.buffer, step.indices
                if place not in counted:
                    counted.add(place)
                    distinct = _distinct(step.indices, map.names, one.over, inner)
                    size = item_bytes[step.buffer] * distinct
                    self.near += slabs * size
                    largest[place] = max(size, largest.get(place, 0.0))
            self._reads.append((loaded, stored))
        self.slab = sum(largest.values())

    def dram(self, array_bytes: Mapping[str, float], caches: Caches) -> float:
        """Return the bytes of main memory that the map reads and writes.

        array_bytes  of each buffer in main memory; 0 of one in near memory
        """
        fits = self.slab <= caches.near
        times: dict[str, int] = {}
        streams: dict[str, bool] = {}
        for loaded, stored in self._reads:
            for name in loaded:
                if name not in streams or not fits:
                    times[name] = times.get(name, 0) + 1
            for name, streaming in stored.items():
                streams[name] = streams.get(name, True) and streaming
        total = sum(array_bytes[name] * (1 if fits else count) for name, count in times.items())
        for name, picks in self.picks.items():
            if name not in times:
                total += min(array_bytes[name], LINE_BYTES * picks)
        for name, streaming in streams.items():
            size = array_bytes[name]
            total += size * (1 if streaming or size <= caches.last or name in times else 2)
        return total
