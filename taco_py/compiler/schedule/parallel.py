"""The loop that threads share, or the reason why they cannot."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from typing import assert_never

from codegen.records import dataclass
from taco_py.compiler.concrete.concretize import result_order
from taco_py.compiler.concrete.nodes import (
    Assembly,
    Assign,
    Forall,
    Race,
    Sequence,
    Statement,
    Unit,
    Where,
)
from taco_py.compiler.iteration.graph import (
    IterationGraph,
    Loop,
    Range,
    build_graph,
    shared_in_pieces,
)
from taco_py.compiler.schedule.gpu.unit_nests import check_units, nest_refusal, unit_refusal
from taco_py.compiler.schedule.races import (
    STRATEGIES,
    Refusal,
    atomic_refusal,
    common_refusal,
    disorder_refusal,
    outward,
    private_copies_refusal,
    race_refusal,
    ranges_refusal,
    workspaces_around,
)
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.language.diagnostics.errors import ScheduleError


@dataclass(frozen=True, slots=True)
class Parallelism:
    """The statement with the shared loop marked, or without one, and the reason."""

    statement: Statement
    index: str | None
    reason: str


def choose_parallel(graph: IterationGraph, schedule: Schedule) -> Parallelism:
    """Share the loop that the schedule marks, else the outermost one if that is legal.

    `serial()` shares none. A loop whose iterations write different elements is shared without a
    strategy, even if the schedule names one. Raises ScheduleError when the marked loop cannot be
    shared so.
    """
    check_units(graph, False)
    if schedule.serial:
        return Parallelism(graph.statement, None, "one thread was asked for")
    check_shared(graph)
    graph = _without_needless(graph)
    statement = graph.statement
    marked = [loop for loop in graph.loops if loop.mode.parallel is not None]
    if marked:
        names = ", ".join(graph.called(loop) for loop in marked)
        return Parallelism(
            statement, names, f"loop {names}: {common_reason(marked[0])}{_anew(marked)}"
        )
    refusal = refusal_reason(graph)
    if refusal is None and isinstance(statement, Forall):
        shared = replace(statement, mode=replace(statement.mode, parallel=Race.NONE))
        return Parallelism(shared, statement.index, f"loop {statement.index}: {_DISJOINT}")
    terms_shared = _each_shared(graph, statement)
    if terms_shared is not None:
        return terms_shared
    summed = _summing_apart(graph, statement)
    sums_loops = [loop for loop in graph.loops if not loop.outer and _sums_apart(graph, loop)]
    names = ", ".join(graph.called(loop) for loop in sums_loops)
    if summed != statement:
        return Parallelism(summed, names, f"loop {names}: {_SUMS}")
    if refusal is None or not graph.loops:
        return Parallelism(statement, None, f"no loop, for {refusal or 'there is none'}")
    sums = (loop for loop in graph.loops if not loop.outer and _adds_numbers(graph, loop))
    refusal = next(filter(None, (_listed_refusal(graph, loop) for loop in sums)), refusal)
    return Parallelism(statement, None, f"no loop, for {refusal}; to share one: {refusal.remedy}")


def check_shared(graph: IterationGraph) -> None:
    """Raise ScheduleError unless threads can share the marked loops by their strategies."""
    for loop in graph.loops:
        refusal = None if loop.mode.parallel is None else _marked_refusal(graph, loop)
        if refusal is not None:
            name = graph.called(loop)
            raise ScheduleError(
                f"The loop {name} cannot be parallel: {refusal}", hint=refusal.remedy
            )


_DISJOINT = "each iteration writes its own part of the result"
_SUMS = "sums of ranges are kept apart, and added up in order"


def _summing_apart(graph: IterationGraph, statement: Statement) -> Statement:
    """Return `statement` with the outermost loops of scalar sums shared, where that is legal."""
    match statement:
        case Where(workspace, consumer, Forall() as producer):
            (loop,) = (loop for loop in graph.loops if loop.body is producer.body)
            if _sums_apart(graph, loop):
                producer = replace(producer, mode=replace(producer.mode, parallel=Race.ORDERED))
            return Where(workspace, _summing_apart(graph, consumer), producer)
    return statement


def _each_shared(graph: IterationGraph, statement: Statement) -> Parallelism | None:
    """Return the statement with the outermost loop of each term shared.

    These loops must run over one index, and none may need a strategy; else None.
    """
    if not isinstance(statement, Sequence) or not graph.problem.result.format.is_dense:
        return None
    loops = [loop for loop in graph.loops if not loop.outer]
    indices = {loop.index for loop in loops}
    parts = [part for part in statement.statements if isinstance(part, Forall)]
    if len(indices) > 1 or len(parts) < len(statement.statements):
        return None
    if any(graph.in_team(_shared(loop)) or plain_refusal(graph, loop) for loop in loops):
        return None
    shared = tuple(replace(part, mode=replace(part.mode, parallel=Race.NONE)) for part in parts)
    (index,) = indices
    return Parallelism(Sequence(shared), index, f"loop {index} of each term: {_DISJOINT}")


def _shared(loop: Loop) -> Loop:
    return replace(loop, mode=replace(loop.mode, parallel=Race.NONE))


def plain_refusal(graph: IterationGraph, loop: Loop) -> Refusal | None:
    """Say why threads cannot share a loop without a strategy for common elements."""
    return _mode_refusal(graph, loop) or _structure(graph, loop) or race_refusal(graph, loop)


def _sums_apart(graph: IterationGraph, loop: Loop) -> bool:
    """Tell whether threads share a loop of scalar sums without a command to do so."""
    refusal = (
        _mode_refusal(graph, loop)
        or private_copies_refusal(graph, loop)
        or _listed_refusal(graph, loop)
    )
    return refusal is None and _adds_numbers(graph, loop)


def _adds_numbers(graph: IterationGraph, loop: Loop) -> bool:
    """Tell whether all results of a loop are scalars that it adds up."""
    outer = workspaces_around(graph, loop)
    numbers = {name for name, w in outer.items() if w.is_number}
    return all(assign.target.tensor in numbers for assign in outward(loop))


def _listed_refusal(graph: IterationGraph, loop: Loop) -> Refusal | None:
    """Say why ranges of coordinates cannot be found in an unsorted list."""
    operands = dict(graph.problem.operands)
    for iterator in loop.lattice.iterators:
        tensor = iterator.access.tensor
        if loop.range is Range.POSITIONS or tensor not in operands:
            continue
        if not operands[tensor].format.levels[iterator.level].unique:
            name = graph.called(loop)
            return Refusal(
                f"the coordinates of {iterator} may come in any order, and sorting them takes "
                "longer than the loop",
                f"pos({name},p,{tensor}), parallelize(p,CPUThread,Ordered)",
            )
    return None


def common_reason(loop: Loop) -> str:
    match loop.mode.parallel:
        case Race.ATOMICS:
            return "iterations add to common elements by atomic operations"
        case Race.TEMPORARY:
            return "each thread adds to a copy of its own, and the copies are added up"
        case Race.ORDERED:
            return _SUMS
        case Race.IGNORE:
            return "the schedule says that no two iterations write the same element"
    return _DISJOINT


def _anew(marked: list[Loop]) -> str:
    """Return the note that threads are woken often, which takes some microseconds each time."""
    outer = dict.fromkeys(index for loop in marked for index in loop.outer)
    return f"; threads begin anew for each {', '.join(outer)}" if outer else ""


def _without_needless(graph: IterationGraph) -> IterationGraph:
    """Return `graph` without strategies for common elements where there are none."""
    needless = {
        id(loop.body)
        for loop in graph.loops
        if loop.mode.parallel in STRATEGIES
        and (_structure(graph, loop) or race_refusal(graph, loop)) is None
    }
    if not needless:
        return graph
    statement = _eased(graph.statement, needless)
    return build_graph(graph.problem, statement, graph.provenance, graph.assembly)


def _eased(statement: Statement, needless: Set[int]) -> Statement:
    match statement:
        case Assign():
            return statement
        case Forall(index, body, mode):
            eased = replace(mode, parallel=Race.NONE) if id(body) in needless else mode
            return Forall(index, _eased(body, needless), eased)
        case Where(workspace, consumer, producer):
            return Where(workspace, _eased(consumer, needless), _eased(producer, needless))
        case Sequence(statements):
            return Sequence(tuple(_eased(part, needless) for part in statements))
        case _:
            assert_never(statement)


def refusal_reason(graph: IterationGraph) -> Refusal | None:
    """Return the first precondition that fails; None if threads can share the outermost loop."""
    statement = graph.statement
    if isinstance(statement, Forall):
        return plain_refusal(graph, graph.loops[0])
    if not graph.loops:
        return Refusal("there is no loop to share among threads", "one thread is all it takes")
    remedy = "reorder so that an index of the result is outermost in every term"
    if isinstance(statement, Where):
        return Refusal("all loops add to one workspace", remedy)
    return Refusal("the terms are computed one after another", remedy)


def _mode_refusal(graph: IterationGraph, loop: Loop) -> Refusal | None:
    """Say why the schedule's mode of the loop excludes threads."""
    if not loop.mode.vector and not loop.mode.unroll:
        return None
    word = "vectorized" if loop.mode.vector else "unrolled"
    return Refusal(
        f"the loop {graph.called(loop)} is {word}", f"split {graph.called(loop)}: share its tiles"
    )


def _marked_refusal(graph: IterationGraph, loop: Loop) -> Refusal | None:
    nested = nest_refusal(graph, loop)
    if nested is not None or loop.mode.unit is not Unit.CORE:
        return nested or unit_refusal(graph, loop)
    race = loop.mode.parallel
    conflict = _structure(graph, loop) or race_refusal(graph, loop)
    if race in STRATEGIES and conflict is None:
        return None
    match race:
        case Race.ATOMICS:
            return _structure(graph, loop) or atomic_refusal(graph, loop)
        case Race.TEMPORARY | Race.ORDERED:
            return private_copies_refusal(graph, loop)
        case Race.IGNORE:
            return _structure(graph, loop) or common_refusal(graph, loop)
    return conflict


def _structure(graph: IterationGraph, loop: Loop) -> Refusal | None:
    """Say why the structure of the loop excludes threads, whatever they write."""
    outermost = not loop.outer and isinstance(graph.statement, Forall)
    if loop.writes_result and not graph.has_places:
        refusal = _assembly(graph, loop, outermost)
        if refusal is not None:
            return refusal
    if loop.merges and outermost and loop.range is not Range.FULL:
        names = ", ".join(map(str, loop.lattice.iterators))
        return Refusal(
            f"the loop {graph.called(loop)} walks {names} along with others, in order",
            f"split {graph.called(loop)}: its tiles can be shared",
        )
    sparse = not graph.has_places
    ranges = sparse or (loop.range is Range.FULL or graph.provenance.counts_ranges(loop.index))
    if outermost and not ranges and shared_in_pieces(graph):
        return Refusal(
            f"the loop {graph.called(loop)} does not run over ranges of one index, which threads "
            "with workspaces and parts of a result of their own share",
            "share the loop over an index, or over tiles of it",
        )
    if outermost and shared_in_pieces(graph):
        return disorder_refusal(graph, loop)
    return ranges_refusal(graph, loop) if graph.in_team(loop) else None


def _assembly(graph: IterationGraph, loop: Loop, outermost: bool) -> Refusal | None:
    """Say why parts of a sparse result for ranges of the loop cannot be joined."""
    first = result_order(graph.problem)[0]
    if outermost and graph.provenance.counts_ranges(loop.index):
        if graph.provenance.roots(loop.index) == (first,):
            return None
    elif outermost and _in_storage_order(graph, loop):
        if graph.assembly is not Assembly.APPEND:
            return None
        target = graph.problem.assignment.target.tensor
        return Refusal(
            f"ranges of {graph.called(loop)} may begin within a row of {target}, which parts that "
            "are appended do not",
            f"assemble({target},Insert)",
        )
    return Refusal(
        f"the sparse result is assembled in the order of {first}, its outermost level",
        f"share the loop over {first}, outermost, or its tiles, or ask for a dense result",
    )


def _in_storage_order(graph: IterationGraph, loop: Loop) -> bool:
    """Tell whether tiles of several indices have the result's entries in storage order.

    They may have coordinates of dense levels alone in common.
    """
    roots = graph.provenance.roots(loop.index)
    levels = graph.problem.result.format.levels
    first = next(k for k, level in enumerate(levels) if not level.full)
    chained = next((k for k in range(first + 1, len(levels)) if not levels[k].branchless), None)
    last = len(levels) if chained is None else chained
    return roots == result_order(graph.problem)[: len(roots)] and len(roots) <= last


def assembly_of(graph: IterationGraph) -> Assembly | None:
    """Return the strategy of assembly of a sparse result: the schedule's, if it has one.

    Else it is insertion where threads share tiles that begin within a row, or are too many for
    parts of the result.
    """
    statement = graph.statement
    if not graph.teams and graph.assembly is None:
        return None if graph.problem.result.format.is_dense else Assembly.INSERT
    if graph.assembly is not None or not isinstance(statement, Forall) or not statement.parallel:
        return graph.assembly
    cut = not graph.provenance.counts_ranges(statement.index)
    return Assembly.INSERT if cut and not graph.problem.result.format.is_dense else None
