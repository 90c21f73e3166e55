"""Work that units of a GPU share: rows of a sparse result, and entries of an operand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codegen.machine.gpu import NOMINAL_GPU
from codegen.types import scalar
from taco_py.compiler.concrete.nodes import Forall, Race, Unit, WorkspaceKind
from taco_py.compiler.concrete.tree import assignments, workspaces_of

if TYPE_CHECKING:
    from taco_py.compiler.iteration.graph import IterationGraph, Loop


def updates_words(graph: IterationGraph) -> bool:
    """Tell whether atomic operations on the result also write neighbouring elements.

    Units of a GPU that take other iterations may write these at the same time.
    """
    if graph.teams or scalar(graph.problem.result.dtype).itemsize >= NOMINAL_GPU.atomic_bytes:
        return False
    return any(loop.mode.parallel is Race.ATOMICS for loop in graph.loops)


def rows_in_blocks(graph: IterationGraph) -> bool:
    """Tell whether blocks of a GPU share the outermost loop, over rows of a sparse result.

    The threads of a block fill a row together.
    """
    statement = graph.statement
    if not isinstance(statement, Forall) or statement.mode.unit is not Unit.BLOCK:
        return False
    kinds = {workspace.kind for workspace in workspaces_of(statement)}
    rows = WorkspaceKind.ROW in kinds and kinds <= {WorkspaceKind.ROW, WorkspaceKind.SCALAR}
    return rows and not graph.has_places


def fills_row(graph: IterationGraph, loop: Loop) -> bool:
    """Tell whether threads of a block share a loop that inserts coordinates into a row."""
    if loop.mode.parallel is None or loop.mode.unit is not Unit.THREAD:
        return False
    rows = {w.name for w in workspaces_of(graph.statement) if w.indices == (loop.index,)}
    targets = {assign.target.tensor for assign in assignments(loop.body)}
    return rows_in_blocks(graph) and bool(rows & targets)


def takes_entries(graph: IterationGraph, loop: Loop) -> bool:
    """Tell whether threads of a block take one entry each, of several fused levels.

    The loop over the outermost of these indices then stands for all of them.
    """
    pos = graph.provenance.position_of(loop.index)
    if pos is None or loop.mode.parallel is None or loop.mode.unit is not Unit.THREAD:
        return False
    roots = graph.provenance.roots(pos.parent)
    return len(roots) > 1 and roots[0] == loop.index


def iteration_indices(graph: IterationGraph, loop: Loop) -> tuple[str, ...]:
    """Return the indices whose coordinates distinguish the iterations of a loop."""
    pos = graph.provenance.position_of(loop.index) if takes_entries(graph, loop) else None
    return graph.provenance.roots(loop.index if pos is None else pos.parent)
