"""Leave out what nothing reads: stores of temporaries, then values.

store t[j] = v, and no load of t   →   nothing
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from taco_py.compiler.dataflow.nodes import (
    Dataflow,
    Instruction,
    Role,
    Store,
    value_made,
    values_read,
)
from taco_py.compiler.dataflow.rewrites.rewrite import Rewrite, RewrittenGraph, read_by


def _sites(graph: Dataflow) -> Iterator[RewrittenGraph]:
    read = {name for map in graph.maps for name in read_by(map)}
    unread = {b.name for b in graph.buffers if b.role is Role.TEMPORARY and b.name not in read}
    maps = []
    count = 0
    for map in graph.maps:
        live: set[str] = set()
        passes = []
        for one in reversed(map.passes):
            body: list[Instruction] = []
            for step in reversed(one.body):
                value = value_made(step)
                stored = isinstance(step, Store) and step.buffer in unread
                if stored or (value is not None and value not in live):
                    count += 1
                else:
                    live |= {*values_read(step)}
                    body.append(step)
            if body:
                passes.append(replace(one, body=tuple(reversed(body))))
        if passes:
            maps.append(replace(map, passes=tuple(reversed(passes))))
    buffers = tuple(buffer for buffer in graph.buffers if buffer.name not in unread)
    if count or unread:
        yield RewrittenGraph(Dataflow(buffers, tuple(maps)), ",".join(sorted(unread)) or "values")


REWRITE = Rewrite("drop_unread", "store t[j] = v, and no load of t", "", _sites)
