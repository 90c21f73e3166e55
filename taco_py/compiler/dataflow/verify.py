"""The rules that every dataflow graph keeps, before and after each rewrite."""

from __future__ import annotations

from taco_py.compiler.dataflow.nodes import (
    Dataflow,
    Load,
    Memory,
    ParallelMap,
    Pass,
    Pick,
    Reduce,
    Role,
    Store,
    value_made,
    values_read,
)
from taco_py.language.diagnostics.errors import InternalError


def verify(graph: Dataflow) -> None:
    """Check a graph. Raises InternalError with the first rule that it breaks."""
    names = [buffer.name for buffer in graph.buffers]
    _need(len({*names}) == len(names), "buffers have names of their own")
    filled = {buffer.name for buffer in graph.buffers if buffer.role is Role.OPERAND}
    for number, map in enumerate(graph.maps):
        _verify_map(graph, map, filled)
        near = {b.name for b in graph.buffers if b.memory is Memory.NEAR}
        elsewhere = {
            a.buffer
            for other in (*graph.maps[:number], *graph.maps[number + 1 :])
            for one in other.passes
            for a in one.body
            if isinstance(a, Load | Store)
        }
        users = {a.buffer for one in map.passes for a in one.body if isinstance(a, Load | Store)}
        _need(not near & users & elsewhere, "a near buffer is of one map")
    results = {buffer.name for buffer in graph.buffers if buffer.role is Role.RESULT}
    _need(results <= filled, "each result is stored")


def _verify_map(graph: Dataflow, map: ParallelMap, filled: set[str]) -> None:
    single = {*map.names}
    available: set[str] = set()
    for one in map.passes:
        _need(not single & {*one.over}, "no pass has a loop over what a slab has one value of")
        picks = {step.index for step in one.body if isinstance(step, Pick)}
        _need(not picks & {index.name for index in map.slab}, "slabs have all of what they pick of")
        _verify_pass(graph, one, single, available, filled)


def _verify_pass(
    graph: Dataflow, one: Pass, single: set[str], available: set[str], filled: set[str]
) -> None:
    local: set[str] = set()
    later: set[str] = set()
    for step in one.body:
        for name in values_read(step):
            _need(name in available | local, f"{name} is read after it is made")
        if isinstance(step, Load | Store):
            buffer = graph.buffer(step.buffer)
            at = single | {*one.over} | available | local
            _need({*step.indices} <= at, f"{step.buffer} has indices of loops around, or values")
            _need(len(step.indices) == len(buffer.indices), f"{buffer.name} has its indices")
            if buffer.memory is Memory.NEAR:
                _need(not single & {*step.indices}, f"{buffer.name} has no index of slabs")
        if isinstance(step, Pick):
            buffer = graph.buffer(step.buffer)
            at = {step.index} | single | {*one.over}
            _need(step.index in step.indices, f"{buffer.name} has the index that is picked along")
            _need({*step.indices} <= at, f"the loops around {step.buffer} have its indices")
            _need(len(step.indices) == len(buffer.indices), f"{buffer.name} has its indices")
            _need(buffer.role is Role.OPERAND, "elements are picked of operands")
        if isinstance(step, Load):
            _need(step.buffer in filled, f"{step.buffer} is read after it is stored")
        if isinstance(step, Store):
            _need(graph.buffer(step.buffer).role is not Role.OPERAND, "operands stay as they are")
            filled.add(step.buffer)
        value = value_made(step)
        if value is not None:
            _need(value not in available | local | later, f"{value} is made once")
            (later if isinstance(step, Reduce) or not one.over else local).add(value)
            if not one.over:
                local.add(value)
    available |= later


def _need(holds: bool, rule: str) -> None:
    if not holds:
        raise InternalError(f"Expected a dataflow graph where {rule}")
