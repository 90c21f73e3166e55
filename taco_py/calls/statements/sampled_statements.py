"""Compute dense temporaries of statements where some sparse tensor stores something, if nothing
else reads them.

    S[i,j] = Q[i,k] * K[j,k]; y[i,j] = M[i,j] * exp(S[i,j]); z = A[i,j] * S[i,j]     M, A sparse
    →   S[i,j] = kept(sum(k, Q[i,k] * K[j,k]), stored(A[i,j]) | stored(M[i,j])); …

What they are outside of these places nobody sees.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from taco_py.calls.statements.sequence import Statement, Statements
from taco_py.language.legal.needed_places import NeededPlaces, depends, in_order, kept_where
from taco_py.language.legal.stored import is_sparse
from taco_py.language.legal.stored_places import Places, StoredPlaces
from taco_py.language.notation.checks import accesses, operand_names
from taco_py.language.notation.nodes import Access
from taco_py.language.notation.operators import Number
from taco_py.planner.ir.nodes import Operand

FEWEST_MODES = 2
"""Modes of a temporary of which leaving elements out saves memory."""


def sampled_statements(
    statements: Statements, operands: Mapping[str, Operand], requested: frozenset[str]
) -> Statements:
    """Return statements whose dense temporaries are computed where sparse tensors ask for them.

    operands  facts of operands and of all that statements make
    requested  temporaries whose formats the call says
    """
    if not any(is_sparse(facts.type.format) for facts in operands.values()):
        return statements
    stored = StoredPlaces({name: (False,) * len(facts.shape) for name, facts in operands.items()})
    targets = {step.target for step in statements.steps}
    for name in operands.keys() - targets:
        stored.note(name, _fill(operands[name]))
    for step in statements.steps:
        inside = stored.inside(step.assignment.value)
        modes = step.assignment.target.indices
        stored.note(step.target, _fill(operands[step.target]), stored.said_of(inside, modes))
    needs = NeededPlaces(stored)
    needs.everywhere(statements.outputs.values())
    for step in reversed(statements.steps):
        if any(access.subscripts for access in accesses(step.assignment)):
            needs.everywhere(operand_names(step.assignment))
        needs.read(step.target, step.assignment.value, step.assignment.target.indices)
    return _rewritten(statements, stored, needs, requested)


def _rewritten(
    statements: Statements, stored: StoredPlaces, needs: NeededPlaces, requested: frozenset[str]
) -> Statements:
    inputs = {step.target: operand_names(step.assignment) for step in statements.steps}
    before: set[str] = set()
    steps = []
    for step in statements.steps:
        places = needs.places.get(step.target)
        fits = len(step.assignment.target.indices) >= FEWEST_MODES and not (
            step.assignment.target.subscripts or step.target in requested or step.accumulator
        )
        if fits and places and not stored.is_sparse(step.target):
            available = all(atom.name not in inputs or atom.name in before for atom in places)
            if available and not any(depends(inputs, atom.name, step.target) for atom in places):
                step = _sampled(step, places)
        steps.append(step)
        before.add(step.target)
    return replace(statements, steps=tuple(steps))


def _sampled(step: Statement, places: Places) -> Statement:
    """Return a statement at places."""
    indices = step.assignment.target.indices
    where = [
        Access(atom.name, tuple(indices[mode] for mode in atom.modes if mode is not None))
        for atom in in_order(places)
    ]
    value = kept_where(step.assignment.value, where)
    return replace(step, assignment=replace(step.assignment, value=value))


def _fill(facts: Operand) -> Number | None:
    type = facts.type
    if not is_sparse(type.format):
        return None
    return type.fill_value.item() if type.fill else 0
