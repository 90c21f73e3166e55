"""Run two passes over the same loops as one, so that what both load is loaded once.

over j: A;  over j: B   →   over j: A; B
"""

from __future__ import annotations

from collections.abc import Iterator

from taco_py.compiler.dataflow.nodes import (
    Dataflow,
    Load,
    Pass,
    Store,
    value_made,
    values_read,
)
from taco_py.compiler.dataflow.rewrites.rewrite import Rewrite, RewrittenGraph, with_passes


def _sites(graph: Dataflow) -> Iterator[RewrittenGraph]:
    for number, map in enumerate(graph.maps):
        passes = map.passes
        for place, first in enumerate(passes):
            for later in range(place + 1, len(passes)):
                second, between = passes[later], passes[place + 1 : later]
                if first.over != second.over or not _joins(first, second):
                    continue
                merged = Pass(first.over, (*first.body, *second.body))
                if not any(_needs(second, one) for one in between):
                    rest = (*passes[:place], merged, *between, *passes[later + 1 :])
                elif not any(_needs(one, first) for one in between):
                    rest = (*passes[:place], *between, merged, *passes[later + 1 :])
                else:
                    continue
                yield RewrittenGraph(
                    with_passes(graph, number, rest), ",".join(first.over) or "once"
                )


def _values_of(one: Pass) -> set[str]:
    return {name for step in one.body if (name := value_made(step)) is not None}


def _read(one: Pass) -> set[str]:
    return {name for step in one.body for name in values_read(step)}


def _stored(one: Pass) -> set[str]:
    return {step.buffer for step in one.body if isinstance(step, Store)}


def _loaded(one: Pass) -> set[str]:
    return {step.buffer for step in one.body if isinstance(step, Load)}


def _needs(later: Pass, earlier: Pass) -> bool:
    """Tell whether a pass has to run after an earlier one."""
    values = _values_of(earlier) & _read(later)
    return bool(values or _stored(earlier) & (_loaded(later) | _stored(later)))


def _joins(first: Pass, second: Pass) -> bool:
    """Tell whether each iteration of the second pass needs that of the first alone."""
    if not first.over:
        return True
    if _values_of(first) & _read(second) or _stored(first) & _stored(second):
        return False
    for name in _stored(first) & _loaded(second):
        stores = [s for s in first.body if isinstance(s, Store) and s.buffer == name]
        loads = [s for s in second.body if isinstance(s, Load) and s.buffer == name]
        (store, *more) = stores
        if more or store.operator is not None or {*store.indices} & {*first.over} != {*first.over}:
            return False
        if any(load.indices != store.indices for load in loads):
            return False
    return True


REWRITE = Rewrite("share_pass", "over j: A;  over j: B", "over j: A; B", _sites)
