"""Store a semiring's zero in a dense temporary where no product is, if it annihilates products.

    T[j] = filled(min(k, filled(add(B[j,k], x[k]), inf)), 0.0)
    y[i] = min(j, filled(add(A[i,j], T[j]), inf))
    → T[j] = min(k, filled(add(B[j,k], x[k]), inf))
      y[i] = min(j, filled(add(A[i,j], T[j]), inf))

Absent, and infinite, are then the same to what reads it: inf + x = inf. Nobody has to ask where the
temporary has products, as `keep_absent` would in another one.
"""

from __future__ import annotations

from dataclasses import replace

from taco_py.compiler.concrete.terms import top_reduction
from taco_py.planner.algebra.rings import holds_zero
from taco_py.planner.context import Context
from taco_py.planner.ir.program import Program
from taco_py.planner.rules.base import Numbers, Outcome, Phase, Rewrite, Rule, Site, temporaries

REASON = "the zero of the semiring stands for what is absent"


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Store the zero in a dense temporary of a sum of products."""
    assignment = program.define(site.target).assignment
    inside = top_reduction(assignment.value)
    if inside is None or inside is assignment.value or not program.is_full(site.target):
        return None
    readers = [reader.assignment.value for reader in program.readers(site.target)]
    if not holds_zero(assignment.value, assignment.target, readers, program.dtypes):
        return None
    return Rewrite(program.with_assignment(replace(assignment, value=inside)), REASON)


RULE = Rule("store_zero", Phase.LAYOUT, apply, temporaries, Numbers.SPECIALS)
