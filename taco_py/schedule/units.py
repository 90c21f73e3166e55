"""Which loop the threads of a GPU share, each an iteration.

    forall i: y[i] = t where forall j: t += A[i,j] * x[j]  →  a row each
    forall j: forall i: y[i] += A[i,j] * x[j]              →  a column each, atomic additions

Threads of a GPU have no memory of their own beyond registers, and there are too many of them for a
copy of a result each: what they have in common they add to by atomic operations.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from taco_py.concrete.nodes import (
    Assign,
    Forall,
    Race,
    Sequence,
    Statement,
    Where,
    WorkspaceKind,
)
from taco_py.concrete.tree import workspaces_of
from taco_py.iteration.graph import IterationGraph, Loop
from taco_py.schedule.parallel import Parallelism, check_shared, common_reason, own_refusal
from taco_py.schedule.races import atomic_refusal
from taco_py.schedule.schedule import Schedule


def choose_units(graph: IterationGraph, schedule: Schedule) -> Parallelism:
    """Share the loops that the schedule marks, else the outermost ones that can be.

    Raises ScheduleError where a marked loop cannot be shared as asked.
    """
    if schedule.serial:
        return Parallelism(graph.statement, None, "one thread was asked for")
    check_shared(graph)
    marked = [loop for loop in graph.loops if loop.mode.parallel is not None]
    if marked:
        names = ", ".join(graph.called(loop) for loop in marked)
        return Parallelism(graph.statement, names, f"loop {names}: {common_reason(marked[0])}")
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
    return Parallelism(statement, names, f"loop {names}: each thread of the grid an iteration")


def _race(graph: IterationGraph, loop: Loop) -> Race | None:
    """How threads can share a loop; None where they cannot."""
    private = any(w.kind is not WorkspaceKind.SCALAR for w in workspaces_of(loop.body))
    if loop.merges or private:
        return None
    own = replace(loop, mode=replace(loop.mode, parallel=Race.NONE))
    if not graph.in_team(own) and own_refusal(graph, loop) is None:
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
