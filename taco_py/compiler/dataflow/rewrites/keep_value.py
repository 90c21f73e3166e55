"""Keep in a register what a slab stores once in near memory.

once: store t[] = v;  over j: w = load t[]   →   over j: v for w
"""

from __future__ import annotations

from collections.abc import Iterator

from taco_py.compiler.dataflow.nodes import Dataflow
from taco_py.compiler.dataflow.rewrites.rewrite import (
    Rewrite,
    RewrittenGraph,
    exchange_values,
    loads_of,
    stores_by_buffer,
    with_map,
)


def _sites(graph: Dataflow) -> Iterator[RewrittenGraph]:
    for number, map in enumerate(graph.maps):
        slab, all_stores = {*map.names}, stores_by_buffer(map)
        for buffer in graph.buffers:
            stores = all_stores.get(buffer.name, [])
            if len(stores) != 1 or not {*stores[0][1].indices} <= slab:
                continue
            ((place, store),) = stores
            if store.operator is not None or map.passes[place].over:
                continue
            arg = store.arg
            values = {
                load.value: arg
                for n, load in loads_of(map, buffer.name)
                if n >= place and load.indices == store.indices and load.dtype == buffer.dtype
            }
            if values:
                yield RewrittenGraph(
                    with_map(graph, number, exchange_values(map, values)), buffer.name
                )


REWRITE = Rewrite(
    "keep_value", "once: store t[] = v; over j: w = load t[]", "over j: w is v", _sites
)
