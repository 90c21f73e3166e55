"""Commands that change what a statement is made of, not the loops that it is made from."""

from __future__ import annotations

from taco_py.concrete.nodes import Statement
from taco_py.problem import Problem
from taco_py.provenance.provenance import Provenance
from taco_py.schedule.commands import Structural
from taco_py.schedule.precompute import Part, precompute


def restructure(
    problem: Problem, provenance: Provenance, statement: Statement, command: Structural
) -> Statement:
    """`statement` after `command`. Raises ScheduleError, with the precondition that fails."""
    variables = tuple(leaf for v in command.indices for leaf in provenance.leaves(v))
    part = Part(command.expression, variables, command.workspace)
    return precompute(problem, provenance, statement, part)
