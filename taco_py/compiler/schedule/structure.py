"""Commands that restructure a statement, rather than its loops."""

from __future__ import annotations

from typing import assert_never

from taco_py.compiler.concrete.nodes import (
    Assign,
    Forall,
    Sequence,
    Statement,
    Where,
    Workspace,
)
from taco_py.compiler.concrete.tree import read_in, walk
from taco_py.compiler.iteration.graph import build_graph
from taco_py.compiler.schedule.commands import Fission, LoopFuse, Precompute, Structural
from taco_py.compiler.schedule.fission import fission, loop_fuse
from taco_py.compiler.schedule.part_workspace import Part
from taco_py.compiler.schedule.precompute import precompute
from taco_py.compiler.schedule.refused import refused
from taco_py.language.problem import Problem
from taco_py.language.provenance.provenance import Provenance


def restructure(
    problem: Problem, provenance: Provenance, statement: Statement, command: Structural
) -> Statement:
    """Return `statement` after `command`. Raises ScheduleError, with the precondition that
    fails."""
    result = _apply(problem, provenance, statement, command)
    _check_stored(problem, provenance, statement, result, command)
    for part in walk(result):
        if isinstance(part, Where) and part.workspace.is_table:
            _check_appending(problem, part.workspace, command)
            _check_sums(part, command)
    return result


def _check_stored(
    problem: Problem,
    provenance: Provenance,
    before: Statement,
    after: Statement,
    command: Structural,
) -> None:
    """Raise ScheduleError where a sparse result would store additional elements."""
    if problem.result.format.is_dense:
        return
    before_indices = build_graph(problem, before, provenance).stored_wholly
    for index in build_graph(problem, after, provenance).stored_wholly:
        if index not in before_indices:
            raise refused(
                command,
                f"{problem.assignment.target.tensor} would store every {index}, for the loop over "
                "it would walk nothing that leaves coordinates out",
                "ask for a dense result, or leave the loop whole",
            )


def _check_sums(where: Where, command: Structural) -> None:
    """Raise ScheduleError where entries of a table are summed up between its loops.

    The loop over its first index visits each entry, and so a sum would have one entry alone.
    """
    *above, last = where.workspace.indices
    sum_ = _summed(where.consumer, where.workspace, frozenset(above), last)
    if sum_ is not None:
        names = ", ".join(where.workspace.indices)
        raise refused(
            command,
            f"the workspace {where.workspace.name} over {names} is a table, which is met entry by "
            f"entry, and {sum_.name} would sum one entry of it",
            f"leave the loop over {names.rpartition(', ')[0]} around both whole",
        )


def _summed(
    part: Statement, table: Workspace, above: frozenset[str], last: str, below: bool = False
) -> Workspace | None:
    """Return a workspace into which a table is read inside a loop over an index `above` its
    `last`."""
    match part:
        case Assign():
            return None
        case Forall(index, body):
            if index == last:
                return None
            return _summed(body, table, above, last, below or index in above)
        case Where(workspace, consumer, producer):
            if below and any(access.tensor == table.name for access in read_in(part)):
                return workspace
            parts: tuple[Statement, ...] = (producer, consumer)
        case Sequence(statements):
            parts = statements
        case _:
            assert_never(part)
    workspaces = (_summed(child, table, above, last, below) for child in parts)
    return next((inner for inner in workspaces if inner is not None), None)


def _check_appending(problem: Problem, workspace: Workspace, command: Structural) -> None:
    """Raise ScheduleError where a table's entries would be appended row by row.

    The loop over its first index visits each entry, and so a coordinate more than once.
    """
    target, form = problem.assignment.target, problem.result.format
    for level, mode in zip(form.levels, form.mode_order, strict=True):
        index = target.indices[mode]
        if index in workspace.indices[:-1] and not level.full and level.unique:
            raise refused(
                command,
                f"{target.tensor} stores each {index} once, and the workspace {workspace.name} "
                f"over {', '.join(workspace.indices)} meets it once an entry",
                "ask for a result in CSR or COO, or for a dense one",
            )


def _apply(
    problem: Problem, provenance: Provenance, statement: Statement, command: Structural
) -> Statement:
    match command:
        case Precompute(expression, indices, _, workspace):
            variables = tuple(leaf for v in indices for leaf in provenance.leaves(v))
            part = Part(expression, variables, workspace)
            return precompute(problem, provenance, statement, part)
        case Fission(index):
            return fission(problem, provenance, statement, index)
        case LoopFuse(index):
            return loop_fuse(problem, provenance, statement, index)
        case _:
            assert_never(command)
