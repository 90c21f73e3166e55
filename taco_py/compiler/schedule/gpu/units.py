"""The loop whose iterations the threads of a GPU share.

    forall i: y[i] = t where forall j: t += A[i,j] * x[j]  →  a row each
    forall j: forall i: y[i] += A[i,j] * x[j]              →  a column each, atomic additions

Threads of a GPU have no private memory beyond registers, and are too many for a copy of a result
each: they add to common elements by atomic operations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import assert_never

from codegen.machine.gpu import NOMINAL_GPU
from taco_py.compiler.concrete.nodes import (
    Assign,
    Forall,
    Race,
    Sequence,
    Statement,
    Unit,
    Where,
)
from taco_py.compiler.concrete.tree import foralls, workspaces_of
from taco_py.compiler.iteration.graph import IterationGraph, Loop
from taco_py.compiler.iteration.units_share import takes_entries
from taco_py.compiler.schedule.gpu.unit_nests import (
    block_numbers,
    iterations,
    memory_refusal,
    merge_refusal,
    shared_loops_around,
    strategy,
)
from taco_py.compiler.schedule.parallel import (
    Parallelism,
    check_shared,
    common_reason,
    plain_refusal,
)
from taco_py.compiler.schedule.races import atomic_refusal, outward, race_refusal
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.language.diagnostics.errors import ScheduleError


def choose_units(graph: IterationGraph, schedule: Schedule) -> Parallelism:
    """Share the loops that the schedule marks, else the outermost loops that can be shared.

    Raises ScheduleError where a marked loop cannot be shared as asked.
    """
    if schedule.serial:
        return Parallelism(graph.statement, None, "one thread was asked for")
    check_shared(graph)
    _check_modes(graph)
    marked = [loop for loop in graph.loops if loop.mode.parallel is not None]
    if marked:
        names = ", ".join(graph.called(loop) for loop in marked)
        strategies = {id(loop.body): strategy(graph, loop) for loop in marked}
        statement = _resolved(graph.statement, strategies)
        lines = "; ".join((*(_describe(graph, loop) for loop in marked), *_merged(graph)))
        return Parallelism(statement, names, lines)
    races: dict[int, Race] = {}
    for loop in graph.loops:
        race = None if loop.outer else _race(graph, loop)
        if race is not None:
            races[id(loop.body)] = race
    shared = [loop for loop in graph.loops if id(loop.body) in races]
    if not shared:
        return Parallelism(graph.statement, None, "no loop: one thread does all")
    names = ", ".join(dict.fromkeys(graph.called(loop) for loop in shared))
    statement = _shared(graph.statement, races)
    lines = f"loop {names}: each thread of the grid an iteration"
    return Parallelism(statement, names, "; ".join((lines, *_merged(graph))))


_TAKERS = {
    Unit.CORE: "threads of the grid",
    Unit.BLOCK: "blocks",
    Unit.WARP: "warps of a block",
    Unit.THREAD: "threads of a block",
}


def _describe(graph: IterationGraph, loop: Loop) -> str:
    """Return a sentence on how a loop is shared.

    `loop i is shared by blocks: iterations add to common elements by atomic operations`
    """
    outside = shared_loops_around(graph, loop)
    in_warp = bool(outside) and outside[-1].mode.unit is Unit.WARP
    taker = "lanes of a warp" if in_warp else _TAKERS[loop.mode.unit]
    if bool(outside) and outside[-1].mode.unit is Unit.THREAD:
        taker = f"{NOMINAL_GPU.warp_threads // iterations(graph, outside[-1])} lanes of a warp"
    elif any(inner.mode.unit is Unit.THREAD and inner.parallel for inner in foralls(loop.body)):
        taker = "groups of lanes of a warp" if in_warp else taker
    if takes_entries(graph, loop):
        taker += ", each an entry"
    strategy_text = common_reason(
        replace(loop, mode=replace(loop.mode, parallel=strategy(graph, loop)))
    )
    if takes_entries(graph, loop) and strategy(graph, loop) is Race.ATOMICS:
        strategy_text += ", one for neighbours that meet"
    numbers = block_numbers(graph, loop).intersection(a.target.tensor for a in outward(loop))
    if numbers:
        strategy_text = f"{', '.join(sorted(numbers))} is reduced in registers"
    return f"loop {graph.called(loop)} is shared by {taker}: {strategy_text}"


def _merged(graph: IterationGraph) -> Iterator[str]:
    """Yield `one thread walks A2, B2 along j, in order` for inner loops that cannot be shared."""
    for loop in graph.loops:
        if loop.outer and loop.merges and loop.mode.parallel is None:
            names = ", ".join(map(str, loop.lattice.iterators))
            yield f"one thread walks {names} along {graph.called(loop)}, in order"


def _check_modes(graph: IterationGraph) -> None:
    """Raise ScheduleError for modes of loops that threads of a GPU cannot execute."""
    for loop in graph.loops:
        name, race = graph.called(loop), loop.mode.parallel
        if loop.mode.vector:
            raise ScheduleError(
                f"Expected units of a GPU for the loop {name}, found CPUVector, which it has not",
                hint=f"parallelize({name},GPUThread): its threads are lanes of warps",
            )
        if race is None:
            continue
        common = loop.mode.unit is Unit.CORE and race_refusal(graph, loop) is not None
        if race is Race.ORDERED and common:
            raise ScheduleError(
                f"The loop {name} cannot be parallel: threads of the grid add in any order",
                hint=f"parallelize({name},CPUThread,Atomics) leaves the order open",
            )
        refusal = None
        if loop.outer or not graph.in_pieces:
            refusal = memory_refusal(graph, loop) or merge_refusal(graph, loop)
        if refusal is None and common and race is not Race.IGNORE:
            refusal = atomic_refusal(graph, loop)
        if refusal is not None:
            raise ScheduleError(
                f"The loop {name} cannot be parallel: {refusal}", hint=refusal.remedy
            )


def _resolved(statement: Statement, races: Mapping[int, Race | None]) -> Statement:
    """Return the statement with the strategy of each shared loop."""
    match statement:
        case Assign():
            return statement
        case Forall(index, body, mode):
            mode = replace(mode, parallel=races.get(id(body), mode.parallel))
            return Forall(index, _resolved(body, races), mode)
        case Where(workspace, consumer, producer):
            return Where(workspace, _resolved(consumer, races), _resolved(producer, races))
        case Sequence(statements):
            return Sequence(tuple(_resolved(part, races) for part in statements))
        case _:
            assert_never(statement)


def _race(graph: IterationGraph, loop: Loop) -> Race | None:
    """Return the strategy by which threads can share a loop; None where they cannot."""
    is_independent = plain_refusal(graph, loop) is None
    private = any(not w.is_number for w in workspaces_of(loop.body))
    if loop.merges or private or not graph.has_places:
        is_outermost = isinstance(graph.statement, Forall)
        return Race.NONE if is_independent and is_outermost else None
    if is_independent:
        return Race.NONE
    return Race.ATOMICS if atomic_refusal(graph, loop) is None else None


def _shared(statement: Statement, races: dict[int, Race]) -> Statement:
    match statement:
        case Assign():
            return statement
        case Forall(index, body, mode):
            race = races.get(id(body))
            if race is None:
                return Forall(index, _shared(body, races), mode)
            return Forall(index, body, replace(mode, parallel=race))
        case Where(workspace, consumer, producer):
            return Where(workspace, _shared(consumer, races), _shared(producer, races))
        case Sequence(statements):
            return Sequence(tuple(_shared(part, races) for part in statements))
        case _:
            assert_never(statement)
