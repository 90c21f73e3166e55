"""Make a divisor a factor of its own where it has a summed index that its dividend lacks.

    sum(i, m[a] / d[i])  →  sum(i, m[a] * (1 / d[i]))

The sum over i is then one of 1 / d[i] alone (`algebra.divisors`).
"""

from __future__ import annotations

from taco_py.planner.algebra.divisors import as_factors
from taco_py.planner.rules.base import Numbers, Phase, Rule, Trait, on_terms, terms

RULE = Rule(
    "divisor_as_factor",
    Phase.FORMS,
    on_terms(lambda program, term: as_factors(term, program.dtypes, program.is_full)),
    terms,
    Numbers.ROUNDS,
    traits=Trait.FACTORS,
)
