"""A dense result that terms are added to, assigned by the first of them where that meets all of it.

    forall i (forall j C[i,j] += A[i,j];  forall j C[i,j] += d[j])
    → forall i (forall j C[i,j] = d[j];  forall j C[i,j] += A[i,j])

It then need not be zeroed before, and one pass over it is saved. The same holds of other operators
that terms are put together by: min(d[j], min(i, b)).
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
    """Return `statement`, where its loops around a sequence allow it with one part first that
    assigns.

    That part is the first, or the second if each element is rounded alike: 0 + a + d = d + a.
    Integers are added in any order.
    """
    if not problem.result.format.is_dense or provenance.relations:
        return statement
    around, body = _nest(statement)
    if not isinstance(body, Sequence) or not all(map(_is_own, around)):
        return statement
    outer = {loop.index for loop in around}
    if not outer <= set(problem.assignment.target.indices):
        return statement
    parts = body.statements
    for place in range(_movable(problem, parts, outer)):
        assigned = _assigning(problem, statement, parts[place], outer)
        if assigned is not None:
            others = (*parts[:place], *parts[place + 1 :])
            return _within(around, Sequence((assigned, *others)))
    return statement


def _movable(problem: Problem, parts: tuple[Statement, ...], outer: set[str]) -> int:
    """Count how many parts may come first."""
    if computes_exactly(problem.result.dtype):
        return len(parts)
    loops, body = _nest(parts[0])
    own = {*outer, *(loop.index for loop in loops)}
    once = isinstance(body, Assign) and own == set(problem.assignment.target.indices)
    return min(2 if once else 1, len(parts))


def _assigning(
    problem: Problem, whole: Statement, part: Statement, outer: set[str]
) -> Statement | None:
    """Return a part that adds once to each element of the result → one that assigns it."""
    target = problem.assignment.target
    loops, body = _nest(part)
    own = {*outer, *(loop.index for loop in loops)}
    adds = isinstance(body, Assign) and body.target == target and body.operator is not None
    if not adds or own != set(target.indices) or not all(map(_is_own, loops)):
        return None
    regions = regions_of(problem, whole)
    for index in target.indices:
        if not isinstance(regions.statement(part, index), Everything):
            return None
    assert isinstance(body, Assign)
    return _within(loops, replace(body, operator=None))


def _is_own(loop: Forall) -> bool:
    """Tell whether the iterations of a loop have nothing in common that is added up elsewhere."""
    return loop.mode.parallel in (None, Race.NONE)


def _nest(statement: Statement) -> tuple[tuple[Forall, ...], Statement]:
    """Return the loops right inside each other, and what is in them."""
    loops = tuple(_loops(statement))
    return loops, loops[-1].body if loops else statement


def _loops(statement: Statement) -> Iterator[Forall]:
    while isinstance(statement, Forall):
        yield statement
        statement = statement.body


def _within(loops: tuple[Forall, ...], body: Statement) -> Statement:
    for loop in reversed(loops):
        body = replace(loop, body=body)
    return body
