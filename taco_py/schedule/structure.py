"""Commands that change what a statement is made of, not the loops that it is made from."""

from __future__ import annotations

from typing import assert_never

from taco_py.concrete.nodes import Statement, Workspace, WorkspaceKind
from taco_py.concrete.tree import workspaces_of
from taco_py.diagnostics.errors import ScheduleError
from taco_py.problem import Problem
from taco_py.provenance.provenance import Provenance
from taco_py.schedule.commands import Fission, LoopFuse, Precompute, Structural
from taco_py.schedule.fission import fission, loop_fuse
from taco_py.schedule.part_workspace import Part
from taco_py.schedule.precompute import precompute


def restructure(
    problem: Problem, provenance: Provenance, statement: Statement, command: Structural
) -> Statement:
    """`statement` after `command`. Raises ScheduleError, with the precondition that fails."""
    changed = _changed(problem, provenance, statement, command)
    for workspace in workspaces_of(changed):
        _check_table(problem, workspace, command)
    return changed


def _check_table(problem: Problem, workspace: Workspace, command: Structural) -> None:
    """Raise ScheduleError where a table's entries would be appended row by row.

    The loop over its first index comes to each entry, and so to a coordinate more than once.
    """
    if workspace.kind is not WorkspaceKind.HASH:
        return
    target, form = problem.assignment.target, problem.result.format
    for level, mode in zip(form.levels, form.mode_order, strict=True):
        index = target.indices[mode]
        if index in workspace.indices[:-1] and not level.full and level.unique:
            raise ScheduleError(
                f"{command} cannot be applied: {target.tensor} stores each {index} once, and the "
                f"workspace {workspace.name} over {', '.join(workspace.indices)} meets it once an "
                "entry",
                hint="ask for a result in CSR or COO, or for a dense one",
            )


def _changed(
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
