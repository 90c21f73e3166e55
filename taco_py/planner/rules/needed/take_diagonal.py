"""Take the diagonal of an operand that has an index twice.

    s = sum(i, A[i,i])  →  A_diagonal is the diagonal of A;  s = sum(i, A_diagonal[i])

A kernel walks each mode of an operand by an index of its own.
"""

from __future__ import annotations

from dataclasses import replace

from taco_py.data.convert.diagonal import diagonal_format
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access
from taco_py.language.notation.tree import map_accesses
from taco_py.planner.context import Context
from taco_py.planner.ir.nodes import Operand, TakeDiagonal
from taco_py.planner.ir.program import Program
from taco_py.planner.rules.base import Outcome, Phase, Rewrite, Rule, Site, result


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Read a diagonal in place of each access that has an index twice."""
    value = program.last.value
    twice = dict.fromkeys(a for a in accesses(value) if len({*a.indices}) < len(a.indices))
    if not twice:
        return None
    diagonals: dict[Access, Access] = {}
    for access in twice:
        program, diagonals[access] = _diagonal(program, access)
    value = map_accesses(value, lambda access: diagonals.get(access, access))
    return Rewrite(program.with_assignment(replace(program.last, value=value)))


def _diagonal(program: Program, access: Access) -> tuple[Program, Access]:
    """Return the program with the diagonal of one access, and its access."""
    indices = tuple(dict.fromkeys(access.indices))
    source = program.facts[access.tensor]
    target = program.fresh(f"{access.tensor}_diagonal")
    form = diagonal_format(source.type.format, access.indices)
    shape = tuple(source.shape[access.indices.index(i)] for i in indices)
    type = replace(source.type, format=form, unit_stride=False)
    facts = {target: Operand(type, shape, source.nnz / max(1, source.shape[0]))}
    step = TakeDiagonal(target, access.tensor, access.indices)
    program = program.before(program.result, (step,), facts)
    return program, replace(access, tensor=target, indices=indices)


RULE = Rule("take_diagonal", Phase.NECESSARY, apply, result)
