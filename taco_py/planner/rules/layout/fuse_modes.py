"""Fuse neighbouring indices that all arrays store one behind the other: one index, one loop.

    s = sum(a, b, c, A[c,a,b] * v[c])   →   s = sum(ab, c, A_fused[c,ab] * v[c])

Loops are then longer, which matters most for the innermost one, and fewer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from codegen.names import Names
from codegen.records import dataclass
from taco_py.language.formats import dense
from taco_py.language.legal.stored import is_sparse
from taco_py.language.notation.checks import accesses, all_indices
from taco_py.language.notation.nodes import Access, Assignment
from taco_py.planner.algebra.fused_modes import FusedModes, Stored, chains_of, runs_of
from taco_py.planner.context import Context
from taco_py.planner.ir.goal import Request
from taco_py.planner.ir.nodes import Operand, Step
from taco_py.planner.ir.program import Program
from taco_py.planner.rules.base import Outcome, Phase, Rewrite, Rule, Site, Trait, result


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Fuse all indices of a dense assignment that can be fused, the result's included."""
    facts = dict(program.facts)
    request = context.request(program, program.result)
    fused = fuse(program.last, facts, request, Names(facts))
    if fused.assignment is program.last:
        return None
    facts[program.result] = replace(facts[program.result], type=fused.request.type)
    extended = program.before(program.result, fused.steps, facts)
    return Rewrite(extended.with_assignment(fused.assignment))


@dataclass(frozen=True, slots=True)
class Fused:
    """The assignment over fewer indices, what its result is then, and the steps before."""

    assignment: Assignment
    request: Request
    steps: tuple[Step, ...]


def fuse(
    assignment: Assignment, operands: dict[str, Operand], request: Request, names: Names
) -> Fused:
    """Return the assignment with its fusible indices fused; add the new operands to `operands`.

    Only where all of it is dense, and the result stored in the order of its modes.
    """
    stored = _stored(assignment, operands, request)
    runs = tuple(runs_of(assignment.value))
    chains = chains_of(stored, runs, {index for index, _ in request.static})
    if not chains:
        return Fused(assignment, request, ())
    modes = FusedModes(stored, chains, Names(all_indices(assignment)))
    value = modes.value(assignment.value, operands, names)
    target = modes.access(assignment.target, assignment.target.tensor)
    type = replace(request.type, format=dense(len(target.indices)))
    return Fused(
        replace(assignment, target=target, value=value),
        replace(request, type=type),
        tuple(modes.steps.values()),
    )


def _stored(
    assignment: Assignment, operands: Mapping[str, Operand], request: Request
) -> dict[Access, Stored]:
    """Return the arrays of a dense assignment; none where a part is not dense."""
    target, form = assignment.target, request.type.format
    arrays = {target: Stored(target.indices, (True,) * max(0, form.order - 1))}
    if is_sparse(form) or form.mode_order != tuple(range(form.order)):
        return {}
    for access in accesses(assignment.value):
        operand = operands[access.tensor]
        form = operand.type.format
        if is_sparse(form):
            return {}
        arrays[access] = Stored(form.stored(access.indices), operand.contiguous)
    return arrays


RULE = Rule("fuse_modes", Phase.LAYOUT, apply, result, traits=Trait.INDICES | Trait.RESULT)
