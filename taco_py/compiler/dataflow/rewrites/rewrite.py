"""The protocol of a rewrite of dataflow graphs, and changes of parts that rewrites share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from codegen.records import dataclass
from taco_py.compiler.dataflow.nodes import (
    Compute,
    Dataflow,
    Instruction,
    Load,
    ParallelMap,
    Pass,
    Pick,
    Reduce,
    Store,
    value_made,
)
from taco_py.language.notation.nodes import Literal


@dataclass(frozen=True, slots=True)
class RewrittenGraph:
    """A graph after a rewrite at one site, and the names of what it is about."""

    graph: Dataflow
    site: str


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A rewrite of dataflow graphs.

    name    verb and object, in explain()
    before, after  a form, and what it becomes, for documentation
    sites   returns the graph after the rewrite at each site where it is legal
    """

    name: str
    before: str
    after: str
    sites: Callable[[Dataflow], Iterator[RewrittenGraph]]


def with_map(graph: Dataflow, number: int, map: ParallelMap) -> Dataflow:
    """Return the graph with another map in a place."""
    maps = (*graph.maps[:number], map, *graph.maps[number + 1 :])
    return replace(graph, maps=maps)


def with_passes(graph: Dataflow, number: int, passes: Sequence[Pass]) -> Dataflow:
    """Return the graph with other passes in one of its maps."""
    remaining = tuple(one for one in passes if one.body)
    return with_map(graph, number, replace(graph.maps[number], passes=remaining))


def with_values(step: Instruction, values: Mapping[str, str | Literal]) -> Instruction:
    """Return an instruction that reads other values."""

    def exchanged(arg: str | Literal) -> str | Literal:
        return values.get(arg, arg) if isinstance(arg, str) else arg

    match step:
        case Compute(args=args):
            return replace(step, args=tuple(map(exchanged, args)))
        case Reduce(arg=arg) | Store(arg=arg):
            return replace(step, arg=exchanged(arg))
        case Pick(place=place):
            new = exchanged(place)
            assert isinstance(new, str)  # no load that is a number says a place
            return replace(step, place=new)
    return step


def exchange_values(map: ParallelMap, values: Mapping[str, str | Literal]) -> ParallelMap:
    """Return a map that reads other values in place of some; these are no longer made."""
    passes = []
    for one in map.passes:
        body = tuple(
            with_values(step, values) for step in one.body if value_made(step) not in values
        )
        passes.append(replace(one, body=body))
    return replace(map, passes=tuple(one for one in passes if one.body))


def loads_of(map: ParallelMap, buffer: str) -> Iterator[tuple[int, Load]]:
    """Yield the loads of a buffer, each with the number of its pass."""
    for number, one in enumerate(map.passes):
        for step in one.body:
            if isinstance(step, Load) and step.buffer == buffer:
                yield number, step


def stores_by_buffer(map: ParallelMap) -> dict[str, list[tuple[int, Store]]]:
    """Return the stores of each buffer that a map writes, each with the number of its pass."""
    stores: dict[str, list[tuple[int, Store]]] = {}
    for number, one in enumerate(map.passes):
        for step in one.body:
            if isinstance(step, Store):
                stores.setdefault(step.buffer, []).append((number, step))
    return stores


def buffers_of(map: ParallelMap) -> set[str]:
    """Return the names of the buffers that a map reads or writes."""
    return read_by(map) | written_by(map)


def written_by(map: ParallelMap) -> set[str]:
    """Return the names of the buffers that a map writes."""
    return {s.buffer for one in map.passes for s in one.body if isinstance(s, Store)}


def read_by(map: ParallelMap) -> set[str]:
    """Return the names of the buffers that a map reads."""
    return {s.buffer for one in map.passes for s in one.body if isinstance(s, Load | Pick)}
