"""A dense result to which terms are added, assigned by the first one where that covers all of it.

    forall i (forall j C[i,j] += A[i,j];  forall j C[i,j] += d[j])
    → forall i (forall j C[i,j] = d[j];  forall j C[i,j] += A[i,j])

It then need not be zeroed first, which saves one pass over it. The same holds for other operators
that combine terms: min(d[j], min(i, b)).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from taco_py.compiler.concrete.nodes import Assign, Forall, Race, Sequence, Statement
from taco_py.compiler.iteration.graph import regions_of
from taco_py.compiler.iteration.region import Everything
from taco_py.language.legal.types import computes_exactly
from taco_py.language.problem import Problem
from taco_py.language.provenance.provenance import Provenance


def assign_first(problem: Problem, statement: Statement, provenance: Provenance) -> Statement:
    """Return `statement` with one part of its sequence first that assigns, where its loops allow
    that.

    That part is the first, or the second if each element is rounded alike: 0 + a + d = d + a.
    Integers are added in any order.
    """
    if not problem.result.format.is_dense or provenance.relations:
        return statement
    outer_loops, body = _nest(statement)
    if not isinstance(body, Sequence) or not all(map(_is_independent, outer_loops)):
        return statement
    outer = {loop.index for loop in outer_loops}
    if not outer <= set(problem.assignment.target.indices):
        return statement
    parts = body.statements
    for place in range(_movable(problem, parts, outer)):
        assigned = _assigning(problem, statement, parts[place], outer)
        if assigned is not None:
            rest = (*parts[:place], *parts[place + 1 :])
            return _enclose(outer_loops, Sequence((assigned, *rest)))
    return statement


def _movable(problem: Problem, parts: tuple[Statement, ...], outer: set[str]) -> int:
    """Count the parts that may come first."""
    if computes_exactly(problem.result.dtype):
        return len(parts)
    loops, body = _nest(parts[0])
    indices = {*outer, *(loop.index for loop in loops)}
    covers = isinstance(body, Assign) and indices == set(problem.assignment.target.indices)
    return min(2 if covers else 1, len(parts))


def _assigning(
    problem: Problem, full: Statement, part: Statement, outer: set[str]
) -> Statement | None:
    """Return a part that adds once to each element of the result → one that assigns it."""
    target = problem.assignment.target
    loops, body = _nest(part)
    indices = {*outer, *(loop.index for loop in loops)}
    adds = isinstance(body, Assign) and body.target == target and body.operator is not None
    if not adds or indices != set(target.indices) or not all(map(_is_independent, loops)):
        return None
    regions = regions_of(problem, full)
    for index in target.indices:
        if not isinstance(regions.statement(part, index), Everything):
            return None
    assert isinstance(body, Assign)
    return _enclose(loops, replace(body, operator=None))


def _is_independent(loop: Forall) -> bool:
    """Tell whether the iterations of a loop have no common elements that are added up elsewhere."""
    return loop.mode.parallel in (None, Race.NONE)


def _nest(statement: Statement) -> tuple[tuple[Forall, ...], Statement]:
    """Return the perfectly nested loops, and the statement inside them."""
    loops = tuple(_loops(statement))
    return loops, loops[-1].body if loops else statement


def _loops(statement: Statement) -> Iterator[Forall]:
    while isinstance(statement, Forall):
        yield statement
        statement = statement.body


def _enclose(loops: tuple[Forall, ...], body: Statement) -> Statement:
    for loop in reversed(loops):
        body = replace(loop, body=body)
    return body
