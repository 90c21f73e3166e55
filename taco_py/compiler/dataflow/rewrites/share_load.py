"""Load an element once that a pass loads twice, or that is loaded once for the slab already.

v = load X[i,j];  w = load X[i,j]   →   v = load X[i,j], and v for w
"""

from __future__ import annotations

from collections.abc import Iterator

from taco_py.compiler.dataflow.nodes import Compute, Dataflow, Load, Pick, Prefetch, Reduce, Store
from taco_py.compiler.dataflow.rewrites.rewrite import (
    Rewrite,
    RewrittenGraph,
    exchange_values,
    with_map,
)

Key = tuple[object, ...]


def _sites(graph: Dataflow) -> Iterator[RewrittenGraph]:
    for number, map in enumerate(graph.maps):
        of_slab: dict[Key, str] = {}
        for one in map.passes:
            available = dict(of_slab)
            for step in one.body:
                if isinstance(step, Store):
                    available = {
                        key: name for key, name in available.items() if key[0] != step.buffer
                    }
                    of_slab = {key: name for key, name in of_slab.items() if key[0] != step.buffer}
                    continue
                if isinstance(step, Prefetch):
                    continue
                key = key_of(step)
                if key in available:
                    variant = exchange_values(map, {step.value: available[key]})
                    yield RewrittenGraph(with_map(graph, number, variant), str(key[0]))
                    continue
                if not isinstance(step, Reduce):
                    available[key] = step.value
                if not one.over:
                    of_slab[key] = step.value


def key_of(step: Load | Pick | Compute | Reduce) -> Key:
    """Return a key that equal values have, whatever their names."""
    match step:
        case Load(_, _, buffer, indices):
            return buffer, indices
        case Pick(_, _, buffer, indices, index, place, otherwise):
            return buffer, indices, index, place, otherwise
        case Compute(_, dtype, operator, args):
            return operator.name, dtype, args
        case Reduce(_, dtype, operator, arg):
            return "reduce", operator.name, dtype, arg


REWRITE = Rewrite(
    "share_load", "v = load X[i,j]; w = load X[i,j]", "v = load X[i,j]; w is v", _sites
)
