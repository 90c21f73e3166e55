"""Compute a value again where it is read, in place of a row of it in near memory.

over j: v = load X[i,j]; d = - v m; store t[j] = d
over j: w = load t[j]
→  over j: v = load X[i,j]; w = - v m

Only by operators that take no longer than to load the value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from codegen.names import Names
from taco_py.compiler.dataflow.build_dataflow import is_quick
from taco_py.compiler.dataflow.nodes import (
    Compute,
    Dataflow,
    Instruction,
    Load,
    Memory,
    ParallelMap,
    Pass,
    Pick,
    Reduce,
    Store,
    value_made,
    values_read,
)
from taco_py.compiler.dataflow.rewrites.rewrite import (
    Rewrite,
    RewrittenGraph,
    loads_of,
    stores_by_buffer,
    with_map,
    with_values,
)
from taco_py.compiler.dataflow.rewrites.share_load import Key, key_of
from taco_py.language.notation.nodes import Literal


def _sites(graph: Dataflow) -> Iterator[RewrittenGraph]:
    for number, map in enumerate(graph.maps):
        all_stores = stores_by_buffer(map)
        for buffer in graph.buffers:
            if buffer.memory is not Memory.NEAR:
                continue
            stores = all_stores.get(buffer.name, [])
            if len(stores) != 1 or stores[0][1].operator is not None:
                continue
            ((place, store),) = stores
            code = _code_of(map.passes[place], store)
            loads = [*loads_of(map, buffer.name)]
            if code is None or not loads or not _reaches(graph, map, place, store, code, loads):
                continue
            names = Names(
                value
                for one in map.passes
                for step in one.body
                if (value := value_made(step)) is not None
            )
            passes = tuple(
                _recomputed(one, buffer.name, code, store.arg, names) for one in map.passes
            )
            buffers = tuple(b for b in graph.buffers if b is not buffer)
            variant = replace(map, passes=tuple(one for one in passes if one.body))
            yield RewrittenGraph(
                replace(with_map(graph, number, variant), buffers=buffers), buffer.name
            )


def _code_of(one: Pass, store: Store) -> tuple[Instruction, ...] | None:
    """Return the instructions that make the value of a store; None where they take long."""
    live = {*values_read(store)}
    code: list[Instruction] = []
    for step in reversed(one.body):
        if value_made(step) in live:
            if isinstance(step, Reduce) or (
                isinstance(step, Compute) and not is_quick(step.operator)
            ):
                return None
            code.append(step)
            live |= {*values_read(step)}
    return tuple(reversed(code))


def _reaches(
    graph: Dataflow,
    map: ParallelMap,
    place: int,
    store: Store,
    code: tuple[Instruction, ...],
    loads: list[tuple[int, Load]],
) -> bool:
    """Tell whether each reader of a buffer can run the code that makes its element."""
    over = map.passes[place].over  # what a slab makes once is for `keep_value`
    if not over or {*over} != {*store.indices} - {*map.names}:
        return False
    read = {step.buffer for step in code if isinstance(step, Load)}
    for n, load in loads:
        if n < place or map.passes[n].over != over or load.indices != store.indices:
            return False
        later = map.passes[place + 1 : n + 1]
        if any(isinstance(s, Store) and s.buffer in read for one in later for s in one.body):
            return False
    return True


def _recomputed(
    one: Pass, buffer: str, code: tuple[Instruction, ...], arg: str | Literal, names: Names
) -> Pass:
    """Return a pass that computes the elements of a buffer in place of loading them."""
    body: list[Instruction] = []
    available: dict[Key, str] = {}
    exchanged: dict[str, str | Literal] = {}
    for step in one.body:
        if isinstance(step, Store) and step.buffer == buffer:
            continue
        if isinstance(step, Load) and step.buffer == buffer:
            values: dict[str, str | Literal] = {}
            for original in code:
                assert isinstance(original, Load | Pick | Compute)
                copy = with_values(original, {**exchanged, **values})
                assert isinstance(copy, Load | Pick | Compute)
                key = key_of(copy)
                if key not in available:
                    available[key] = names.fresh(original.value)
                    body.append(replace(copy, value=available[key]))
                values[original.value] = available[key]
            every = {**exchanged, **values}
            exchanged[step.value] = every.get(arg, arg) if isinstance(arg, str) else arg
            continue
        step = with_values(step, exchanged)
        if isinstance(step, Load | Pick | Compute):
            key = key_of(step)
            if key in available:
                exchanged[step.value] = available[key]
                continue
            available[key] = step.value
        body.append(step)
    return replace(one, body=tuple(body))


REWRITE = Rewrite(
    "recompute", "over j: store t[j] = v - m; over j: load t[j]", "over j: v - m", _sites
)
