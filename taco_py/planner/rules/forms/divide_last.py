"""Divide after a sum by what does not depend on its index.

    sum(j, x[j] * x[j] / d[i])  →  sum(j, x[j] * x[j]) / d[i]

Only where the summand has a value at every coordinate (`algebra.divisors`).
"""

from __future__ import annotations

from taco_py.planner.algebra.divisors import divide_last
from taco_py.planner.rules.base import Numbers, Phase, Rule, on_terms, terms

RULE = Rule(
    "divide_last",
    Phase.FORMS,
    on_terms(lambda program, term: divide_last(term, program.dtypes, program.is_full)),
    terms,
    Numbers.ROUNDS | Numbers.SPECIALS,
)
