"""Which loop may run in parallel, or why none may."""

from __future__ import annotations

from dataclasses import dataclass, replace

from taco_py.concrete.nodes import Forall, Statement, Where, WorkspaceKind
from taco_py.concrete.tree import assignments, workspaces_of
from taco_py.diagnostics.errors import ScheduleError
from taco_py.iteration.graph import IterationGraph
from taco_py.schedule.commands import Schedule


@dataclass(frozen=True, slots=True)
class Parallelism:
    """The statement with its outermost loop marked, or unchanged with the reason why not."""

    statement: Statement
    index: str | None
    reason: str


def choose_parallel(graph: IterationGraph, schedule: Schedule) -> Parallelism:
    """Mark the outermost loop parallel if no two of its iterations write the same element.

    `serial()` never shares it, `parallelize(i)` insists that it is i; without either it is shared
    wherever that is legal. Raises ScheduleError when the loop insisted on cannot be parallel.
    """
    statement = graph.statement
    wanted = schedule.parallel
    if schedule.serial:
        return Parallelism(statement, None, "one thread was asked for")
    refusal = refusal_reason(graph)
    if wanted is not None:
        outermost = statement.index if isinstance(statement, Forall) else None
        if outermost != wanted:
            refusal = f"{wanted} is not the outermost loop" + (
                f", {outermost} is" if outermost else ""
            )
        if refusal is not None:
            raise ScheduleError(
                f"The loop {wanted} cannot be parallel: {refusal}",
                hint="reorder the loops so that an index of a dense result is outermost",
            )
    if refusal is None and isinstance(statement, Forall):
        marked = replace(statement, parallel=True)
        reason = f"loop {statement.index}: each iteration writes its own part of the result"
        return Parallelism(marked, statement.index, reason)
    return Parallelism(statement, None, f"no loop, for {refusal or 'there is none'}")


def refusal_reason(graph: IterationGraph) -> str | None:
    """The first precondition that fails, None if the outermost loop can be shared among threads."""
    statement = graph.statement
    problem = graph.problem
    target = problem.assignment.target
    if not isinstance(statement, Forall):
        if not graph.loops:
            return "there is no loop to share among threads"
        if isinstance(statement, Where):
            return "all loops add to one workspace"
        return "the terms are computed one after another"
    index = statement.index
    if not problem.result.format.is_dense:
        return "the sparse result is assembled in order, one coordinate after another"
    if index not in target.indices:
        return f"the outermost loop {index} is summed over: its iterations add to the same elements"
    outermost = graph.loops[0]
    if outermost.merges:
        names = ", ".join(map(str, outermost.lattice.iterators))
        return f"the outermost loop {index} walks {names} along with others, in order"
    for iterator in outermost.lattice.iterators:
        form = problem.type_of(iterator.access.tensor).format
        if not form.levels[iterator.level].unique:
            return f"the outermost loop {index} may meet a coordinate of {iterator} more than once"
    if any(a.target.tensor not in _private(graph) for a in assignments(statement)):
        return f"a workspace is shared by the iterations of {index}"
    return None


def _private(graph: IterationGraph) -> set[str]:
    """The result and scalar workspaces, which every iteration has for itself."""
    scalars = {w.name for w in workspaces_of(graph.statement) if w.kind is WorkspaceKind.SCALAR}
    return scalars | {graph.problem.assignment.target.tensor}
