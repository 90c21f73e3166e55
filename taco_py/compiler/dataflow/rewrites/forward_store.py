"""Read the value that was stored in place of loading it again, in one iteration of a pass.

store t[j] = v;  w = load t[j]   →   store t[j] = v, and v for w
"""

from __future__ import annotations

from collections.abc import Iterator

from taco_py.compiler.dataflow.nodes import Dataflow, Load, Store
from taco_py.compiler.dataflow.rewrites.rewrite import (
    Rewrite,
    RewrittenGraph,
    exchange_values,
    with_map,
)
from taco_py.language.notation.nodes import Literal


def _sites(graph: Dataflow) -> Iterator[RewrittenGraph]:
    for number, map in enumerate(graph.maps):
        for one in map.passes:
            stored: dict[tuple[str, tuple[str, ...]], str | Literal] = {}
            for step in one.body:
                if isinstance(step, Store):
                    stored = {key: arg for key, arg in stored.items() if key[0] != step.buffer}
                    if step.operator is None:
                        stored[step.buffer, step.indices] = step.arg
                elif isinstance(step, Load):
                    arg = stored.get((step.buffer, step.indices))
                    if isinstance(arg, str) and graph.buffer(step.buffer).dtype == step.dtype:
                        variant = exchange_values(map, {step.value: arg})
                        yield RewrittenGraph(with_map(graph, number, variant), step.buffer)


REWRITE = Rewrite(
    "forward_store", "store t[j] = v; w = load t[j]", "store t[j] = v; w is v", _sites
)
