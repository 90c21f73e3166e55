"""Push a condition into the sum that it keeps, where less is computed then.

    y[j] = kept(sum(i, f[i] * A[i,j]), m[j] != 0)
    → y[j] = sum(i, kept(f[i] * A[i,j], m[j] != 0))

Loops that meet a result element again and again look at the condition first, and append and add
nothing where it is false. Where many terms meet in an element the condition stays outside, and is
looked at once.
"""

from __future__ import annotations

from taco_py.compiler.concrete.terms import split_terms
from taco_py.language.notation.checks import free_indices
from taco_py.language.notation.nodes import Call, Expr, Reduce
from taco_py.language.notation.operators import KEEP
from taco_py.planner.context import Context
from taco_py.planner.ir.program import Program
from taco_py.planner.rules.base import Candidate, Gain, Outcome, Phase, Rewrite, Rule, Site, terms
from taco_py.planner.rules.term_price import term_price


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Move the condition around a sum to the terms of the sum."""
    expr = site.term(program)
    inside = _inside(expr)
    if inside is None:
        return None
    stays, goes = (term_price(program, context, form) for form in (expr, inside))
    goes += _looks(program, context, inside)
    reason = "the sum is computed where the mask keeps it and nowhere else"
    return Candidate(stays, goes, lambda: Rewrite(site.put(program, inside), reason), Gain.SIMPLER)


def _looks(program: Program, context: Context, inside: Expr) -> float:
    """Return the number of times that the condition is tested, one step each."""
    stats = context.statistics(program, inside)
    (term,) = split_terms(inside)
    return stats.iterations(term.body, frozenset(free_indices(term.body)))


def _inside(expr: Expr) -> Expr | None:
    """Return an expression with its condition inside its sums; None for other expressions."""
    match expr:
        case Call(operator, (Reduce() as kept, condition)) if operator == KEEP:
            return _pushed(kept, condition)
    return None


def _pushed(value: Expr, condition: Expr) -> Expr | None:
    if not isinstance(value, Reduce):
        return Call(KEEP, (value, condition))
    if not value.operator.additive or value.index in free_indices(condition):
        return None
    body = _pushed(value.body, condition)
    return None if body is None else Reduce(value.operator, value.index, body, value.span)


RULE = Rule("push_mask_in", Phase.FORMS, apply, terms)
