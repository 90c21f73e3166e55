"""Give each sum an index of its own name, and sums that wrap a term of their own.

    y = x * (sum(i, A[i]) + sum(i, B[i]))  →  y = x * (sum(i, A[i]) + sum(i_1, B[i_1]))

Loop orders, temporaries and prices name loops by their indices (`algebra.normal_form`).
"""

from __future__ import annotations

from taco_py.planner.algebra.normalize import normal_form
from taco_py.planner.context import Context
from taco_py.planner.ir.program import Program
from taco_py.planner.rules.base import Outcome, Phase, Rewrite, Rule, Site, result


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Rename indices of sums, and mark sums that wrap in their own type."""
    new = normal_form(program.last, program.facts)
    return None if new is program.last else Rewrite(program.with_assignment(new))


RULE = Rule("normal_form", Phase.NECESSARY, apply, result)
