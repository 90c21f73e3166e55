"""Keep in near memory what one map alone reads and writes: the part of one slab.

t[i,j] in main memory, of a map over i   →   t[j] in near memory
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from taco_py.compiler.dataflow.nodes import (
    Dataflow,
    Instruction,
    Load,
    Memory,
    ParallelMap,
    Role,
    Store,
)
from taco_py.compiler.dataflow.rewrites.rewrite import Rewrite, RewrittenGraph, buffers_of


def _sites(graph: Dataflow) -> Iterator[RewrittenGraph]:
    for buffer in graph.buffers:
        if buffer.role is not Role.TEMPORARY or buffer.memory is Memory.NEAR:
            continue
        users = [map for map in graph.maps if buffer.name in buffers_of(map)]
        if len(users) != 1 or not {i.name for i in users[0].slab} <= {*buffer.indices}:
            continue
        (map,) = users
        single = {*map.names}
        remaining = tuple(index for index in buffer.indices if index not in single)
        near = replace(buffer, indices=remaining, memory=Memory.NEAR)
        buffers = tuple(near if b is buffer else b for b in graph.buffers)
        narrowed = _narrowed(map, buffer.name, single)
        maps = tuple(narrowed if one is map else one for one in graph.maps)
        yield RewrittenGraph(Dataflow(buffers, maps), buffer.name)


def _narrowed(map: ParallelMap, name: str, single: set[str]) -> ParallelMap:
    """Return a map that reads and writes a buffer without the indices of slabs."""

    def step_of(step: Instruction) -> Instruction:
        if isinstance(step, Load | Store) and step.buffer == name:
            return replace(step, indices=tuple(i for i in step.indices if i not in single))
        return step

    passes = tuple(replace(one, body=tuple(map_step)) for one in map.passes
                   for map_step in [[step_of(step) for step in one.body]])  # fmt: skip
    return replace(map, passes=passes)


REWRITE = Rewrite("narrow_buffer", "t[i,j] dram, in parallel i", "t[j] near, in parallel i", _sites)
