"""Flatten nested products: one product under all its sums, with quotients given to its factors.

    sum(j, sum(k, B[j,k] * C[k]) * x[j])    → sum(j, sum(k, B[j,k] * C[k] * x[j]))
    sum(j, sum(k, A[i,j] * B[j,k]) / d[i])  → sum(j, sum(k, A[i,j] / d[i] * B[j,k]))

The order of the sums and of the factors is then free to choose (`algebra.products`).

A sum that is a factor more than once stays, unless one product of all factors is clearly cheaper:

    sum(j, A[i,j] * X[j,k]) * sum(l, A[i,l] * X[l,k])    stays: it is one sum, and its square
"""

from __future__ import annotations

from taco_py.language.notation.nodes import Expr
from taco_py.planner.algebra.products import flatten
from taco_py.planner.context import Context
from taco_py.planner.ir.program import Program
from taco_py.planner.rules.base import (
    Candidate,
    Gain,
    Numbers,
    Phase,
    Rewrite,
    Rule,
    Site,
    Trials,
    terms,
)


def apply(program: Program, site: Site, context: Context) -> Trials:
    """Move the sums inside a product around it, equal ones where that is clearly cheaper."""
    expr = site.term(program)
    opened = flatten(expr, program.dtypes)
    if opened == expr:
        return
    flat_unequal, before = flatten(expr, program.dtypes, open_equal=False), program
    if flat_unequal == opened:
        yield Rewrite(site.put(program, opened))
        return
    shared_cost, flat_cost = (_price(program, context, form) for form in (flat_unequal, opened))
    program = yield Candidate(
        shared_cost, flat_cost, lambda: Rewrite(site.put(before, opened)), Gain.DETOUR
    )
    if program is before and flat_unequal != expr:
        yield Rewrite(site.put(program, flat_unequal))


def _price(program: Program, context: Context, term: Expr) -> float:
    """Return the price of the program of one term, after the rules that split it."""
    draft = Site(program.result).put(program.only_of(program.last), term)
    return context.costs.program(context.following.split_term(draft, context.drafting), context)


RULE = Rule("flatten_product", Phase.FORMS, apply, terms, Numbers.ROUNDS)
