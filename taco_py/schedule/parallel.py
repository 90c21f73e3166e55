"""Which loop threads share, or why none may."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from taco_py.concrete.concretize import result_order
from taco_py.concrete.nodes import (
    Assembly,
    Forall,
    Race,
    Statement,
    Where,
    Workspace,
    WorkspaceKind,
)
from taco_py.concrete.tree import assignments, workspaces_of
from taco_py.diagnostics.errors import ScheduleError
from taco_py.iteration.graph import IterationGraph, Loop, Range, shared_in_pieces
from taco_py.schedule.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Parallelism:
    """The statement with the loop marked that threads share, or without one and the reason why."""

    statement: Statement
    index: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why threads cannot share a loop, and what would help."""

    reason: str
    remedy: str

    def __str__(self) -> str:
        return self.reason


def choose_parallel(graph: IterationGraph, schedule: Schedule) -> Parallelism:
    """Share the loop that the schedule marks, else the outermost one if that is legal.

    `serial()` shares none. Raises ScheduleError when the marked loop cannot be shared as asked.
    """
    statement = graph.statement
    if schedule.serial:
        return Parallelism(_unmarked(statement), None, "one thread was asked for")
    check_shared(graph)
    marked = [loop for loop in graph.loops if loop.mode.parallel is not None]
    if marked:
        names = ", ".join(loop.index for loop in marked)
        return Parallelism(statement, names, f"loop {names}: {_reason(marked[0])}")
    refusal = refusal_reason(graph)
    if refusal is None and isinstance(statement, Forall):
        shared = replace(statement, mode=replace(statement.mode, parallel=Race.NONE))
        reason = f"loop {statement.index}: each iteration writes its own part of the result"
        return Parallelism(shared, statement.index, reason)
    summed = _summing_apart(graph, statement)
    names = ", ".join(loop.index for loop in graph.loops if _sums_apart(graph, loop))
    if summed != statement:
        return Parallelism(summed, names, f"loop {names}: {_SUMS}")
    return Parallelism(statement, None, f"no loop, for {refusal or 'there is none'}")


def check_shared(graph: IterationGraph) -> None:
    """Raise ScheduleError unless threads can share the marked loops as is asked for."""
    for loop in graph.loops:
        refusal = None if loop.mode.parallel is None else _marked_refusal(graph, loop)
        if refusal is not None:
            name = graph.called(loop)
            raise ScheduleError(
                f"The loop {name} cannot be parallel: {refusal}", hint=refusal.remedy
            )


_SUMS = "sums of ranges are kept apart, and added up in order"


def _summing_apart(graph: IterationGraph, statement: Statement) -> Statement:
    """`statement` with the outermost loops of sums to one number shared, where that is legal."""
    match statement:
        case Where(workspace, consumer, Forall() as producer):
            (loop,) = (loop for loop in graph.loops if loop.body is producer.body)
            if _sums_apart(graph, loop):
                producer = replace(producer, mode=replace(producer.mode, parallel=Race.ORDERED))
            return Where(workspace, _summing_apart(graph, consumer), producer)
    return statement


def _sums_apart(graph: IterationGraph, loop: Loop) -> bool:
    target = graph.problem.assignment.target.tensor
    adds = all(a.target.tensor != target for a in assignments(loop.body))
    refusal = _taken(loop) or apart_refusal(graph, loop) or _disorder(graph, loop)
    return adds and refusal is None


def _reason(loop: Loop) -> str:
    match loop.mode.parallel:
        case Race.ATOMICS:
            return "iterations add to common elements by atomic operations"
        case Race.TEMPORARY:
            return "each thread adds to a copy of its own, and the copies are added up"
        case Race.ORDERED:
            return _SUMS
        case Race.IGNORE:
            return "the schedule says that no two iterations write the same element"
    return "each iteration writes its own part of the result"


def _unmarked(statement: Statement) -> Statement:
    if isinstance(statement, Forall):
        serial = replace(statement.mode, parallel=None)
        return Forall(statement.index, _unmarked(statement.body), serial)
    return statement


def refusal_reason(graph: IterationGraph) -> Refusal | None:
    """The first precondition that fails, None if the outermost loop can be shared among threads."""
    statement = graph.statement
    if isinstance(statement, Forall):
        outermost = graph.loops[0]
        return _taken(outermost) or _structure(graph, outermost) or _race(graph, outermost)
    if not graph.loops:
        return Refusal("there is no loop to share among threads", "one thread is all it takes")
    remedy = "reorder so that an index of the result is outermost in every term"
    if isinstance(statement, Where):
        return Refusal("all loops add to one workspace", remedy)
    return Refusal("the terms are computed one after another", remedy)


def _taken(loop: Loop) -> Refusal | None:
    """Where the schedule wants the iterations carried out otherwise."""
    if not loop.mode.vector and not loop.mode.unroll:
        return None
    done = "vectorized" if loop.mode.vector else "unrolled"
    return Refusal(f"the loop {loop.index} is {done}", f"split {loop.index}: share its tiles")


def _marked_refusal(graph: IterationGraph, loop: Loop) -> Refusal | None:
    around = [other for other in graph.loops if other.index in loop.outer and other.mode.parallel]
    if around:
        return Refusal(f"the loop {around[0].index} around it is parallel", "share one of them")
    match loop.mode.parallel:
        case Race.ATOMICS:
            return _structure(graph, loop) or _atomic(graph, loop)
        case Race.TEMPORARY | Race.ORDERED:
            return apart_refusal(graph, loop)
        case Race.IGNORE:
            return _structure(graph, loop)
    return _structure(graph, loop) or _race(graph, loop)


def apart_refusal(graph: IterationGraph, loop: Loop) -> Refusal | None:
    """Where threads cannot add to copies of their own."""
    if loop.outer:
        return Refusal(
            f"it is inside the loop over {loop.outer[0]}", "keep sums of an outermost loop apart"
        )
    target = graph.problem.assignment.target.tensor
    inside = {w.name for w in workspaces_of(loop.body)}
    scalars = {
        w.name for w in workspaces_of(graph.statement) if w.kind is WorkspaceKind.SCALAR
    } - inside
    for assign in assignments(loop.body):
        tensor = assign.target.tensor
        whole = tensor == target and graph.problem.result.format.is_dense
        if tensor in inside:
            continue
        if not whole and tensor not in scalars:
            return Refusal(f"copies of {tensor} are not added up", "use NoRaces")
        if assign.operator is None or assign.operator.c_operator != "+":
            return Refusal(f"{tensor} is assigned and not added to", "use NoRaces")
    if loop.range is Range.POSITIONS:
        return Refusal("its ranges cannot be found", f"split {loop.index} and share its tiles")
    return None


def _race(graph: IterationGraph, loop: Loop) -> Refusal | None:
    """Where two iterations may write the same element."""
    problem = graph.problem
    roots = graph.provenance.roots(loop.index)
    summed = [root for root in roots if root not in problem.assignment.target.indices]
    if summed:
        tiles = "" if roots == (loop.index,) else f", tiles of {', '.join(roots)},"
        return Refusal(
            f"the loop {loop.index}{tiles} is summed over: its iterations add to the same elements",
            "put an index of the result outside, or let them add by atomic operations: "
            f"parallelize({loop.index},CPUThread,Atomics)",
        )
    operands = dict(problem.operands)
    for iterator in loop.lattice.iterators:
        if iterator.access.tensor not in operands:
            return Refusal(
                f"the loop {loop.index} walks the workspace {iterator.access.tensor}",
                "leave the loop serial",
            )
        form = operands[iterator.access.tensor].format
        if not form.levels[iterator.level].unique:
            return Refusal(
                f"the loop {loop.index} may meet a coordinate of {iterator} more than once",
                "convert the operand to a format without duplicates",
            )
    return None


def _structure(graph: IterationGraph, loop: Loop) -> Refusal | None:
    """What threads cannot share, whatever they write."""
    outermost = not loop.outer and isinstance(graph.statement, Forall)
    if not graph.problem.result.format.is_dense:
        refusal = _assembly(graph, loop, outermost)
        if refusal is not None:
            return refusal
    if loop.merges and not (outermost and loop.range is Range.WHOLE):
        names = ", ".join(map(str, loop.lattice.iterators))
        return Refusal(
            f"the loop {loop.index} walks {names} along with others, in order",
            f"split {loop.index}: its tiles can be shared",
        )
    sparse = not graph.problem.result.format.is_dense
    ranges = sparse or (loop.range is Range.WHOLE or graph.provenance.counts_ranges(loop.index))
    if outermost and not ranges and shared_in_pieces(graph):
        return Refusal(
            f"the loop {loop.index} does not run over ranges of one index, which threads with "
            "workspaces and parts of a result of their own share",
            "share the loop over an index, or over tiles of it",
        )
    if outermost and shared_in_pieces(graph):
        refusal = _disorder(graph, loop)
        if refusal is not None:
            return refusal
    for workspace in _shared(graph, loop, outermost):
        if workspace.kind is WorkspaceKind.SCALAR:
            return Refusal(
                "its iterations add to one number",
                "share a loop around it, or leave the loop serial",
            )
        return Refusal(
            f"its iterations share one place for values over {', '.join(workspace.indices)}, the "
            f"workspace {workspace.name}",
            "share the outermost loop, or leave the loop serial",
        )
    return None


def _disorder(graph: IterationGraph, loop: Loop) -> Refusal | None:
    """Where a range of coordinates cannot be found, for they come in any order."""
    sorted_ = {r.tensor for r in graph.requirements if r.ordered}
    operands = dict(graph.problem.operands)
    for iterator in loop.lattice.iterators:
        tensor = iterator.access.tensor
        if tensor not in operands:
            return Refusal(
                f"the coordinates of the workspace {tensor} may come in any order",
                "share a loop that fills it, or leave the loop serial",
            )
        form = operands[tensor].format
        if tensor not in sorted_ and not form.levels[iterator.level].ordered:
            return Refusal(
                f"the coordinates of {iterator} may come in any order",
                f"store {tensor} in an ordered format",
            )
    return None


def _assembly(graph: IterationGraph, loop: Loop, outermost: bool) -> Refusal | None:
    """Where parts of a sparse result for ranges of the loop are not the whole in pieces."""
    first = result_order(graph.problem)[0]
    if outermost and graph.provenance.counts_ranges(loop.index):
        if graph.provenance.roots(loop.index) == (first,):
            return None
    elif outermost and _in_storage_order(graph, loop):
        if graph.assembly is not Assembly.APPEND:
            return None
        target = graph.problem.assignment.target.tensor
        return Refusal(
            f"ranges of {loop.index} may begin within a row of {target}, which parts that are "
            "appended do not",
            f"assemble({target},Insert)",
        )
    return Refusal(
        f"the sparse result is assembled in the order of {first}, its outermost level",
        f"share the loop over {first}, outermost, or its tiles, or ask for a dense result",
    )


def _in_storage_order(graph: IterationGraph, loop: Loop) -> bool:
    """Whether tiles of several indices hold the result's entries one tile after another, under
    common coordinates of dense levels alone."""
    roots = graph.provenance.roots(loop.index)
    levels = graph.problem.result.format.levels
    first = next(k for k, level in enumerate(levels) if not level.full)
    chained = next((k for k in range(first + 1, len(levels)) if not levels[k].branchless), None)
    last = len(levels) if chained is None else chained
    return roots == result_order(graph.problem)[: len(roots)] and len(roots) <= last


def assembly_of(graph: IterationGraph) -> Assembly | None:
    """How a sparse result is assembled: as was said, else by insertion where threads share tiles
    that begin within a row."""
    statement = graph.statement
    if graph.assembly is not None or not isinstance(statement, Forall) or not statement.parallel:
        return graph.assembly
    cut = not graph.provenance.counts_ranges(statement.index)
    return Assembly.INSERT if cut and not graph.problem.result.format.is_dense else None


def _shared(graph: IterationGraph, loop: Loop, outermost: bool) -> Iterator[Workspace]:
    """The workspaces written in the loop that its iterations, or pieces, do not have for
    themselves."""
    inside = {
        w.name for w in workspaces_of(loop.body) if outermost or w.kind is WorkspaceKind.SCALAR
    }
    written = {a.target.tensor for a in assignments(loop.body)} - inside
    around = set(workspaces_of(graph.statement)) - set(workspaces_of(loop.body))
    roots = set(graph.provenance.roots(loop.index))
    for workspace in workspaces_of(graph.statement):
        apart = workspace.kind is WorkspaceKind.DENSE and roots <= set(workspace.indices)
        if workspace.name in written and not (apart and workspace in around):
            yield workspace


def _atomic(graph: IterationGraph, loop: Loop) -> Refusal | None:
    """Where an update of the result is no atomic operation."""
    target = graph.problem.assignment.target.tensor
    writes = [a for a in assignments(loop.body) if a.target.tensor == target]
    if any(assign.operator is None for assign in writes):
        return Refusal("it assigns elements and does not add to them", "use NoRaces")
    if graph.problem.result.dtype.startswith("complex"):
        return Refusal("complex numbers have no atomic addition", "use NoRaces")
    return None
