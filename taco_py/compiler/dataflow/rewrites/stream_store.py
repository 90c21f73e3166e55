"""Write results past the caches that nothing reads in the kernel, where they are large.

store P[i,j] = v   →   store P[i,j] = v past the caches
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from taco_py.compiler.dataflow.nodes import Dataflow, Memory, Store
from taco_py.compiler.dataflow.rewrites.rewrite import Rewrite, RewrittenGraph, read_by, with_passes


def _sites(graph: Dataflow) -> Iterator[RewrittenGraph]:
    read = {name for map in graph.maps for name in read_by(map)}
    for number, map in enumerate(graph.maps):
        for place, one in enumerate(map.passes):
            for at, step in enumerate(one.body):
                if not isinstance(step, Store) or step.streaming or step.operator is not None:
                    continue
                far = graph.buffer(step.buffer).memory is Memory.DRAM
                if not far or step.buffer in read or not one.over:
                    continue
                if not step.indices or step.indices[-1] != one.over[-1]:
                    continue
                store = replace(step, streaming=True)
                body = (*one.body[:at], store, *one.body[at + 1 :])
                passes = (*map.passes[:place], replace(one, body=body), *map.passes[place + 1 :])
                yield RewrittenGraph(with_passes(graph, number, passes), step.buffer)


REWRITE = Rewrite("stream_store", "store P[i,j] = v", "store P[i,j] = v past the caches", _sites)
