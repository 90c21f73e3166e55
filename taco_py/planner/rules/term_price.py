"""The price of a term as it would be split: by it, forms of one term are compared."""

from __future__ import annotations

from taco_py.language.notation.nodes import Expr
from taco_py.planner.context import Context
from taco_py.planner.ir.program import Program
from taco_py.planner.rules.base import Site


def term_price(program: Program, context: Context, term: Expr) -> float:
    """Price the program of one term, after the rules that split it."""
    alone = program.only_of(program.last)
    draft = Site(program.result).put(alone, term)
    split = context.following.split_term(draft, context.drafting)
    return context.costs.program(split, context)
