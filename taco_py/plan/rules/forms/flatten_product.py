"""Flatten nested products: one product under all its sums, with quotients given to its factors.

    sum(j, sum(k, B[j,k] * C[k]) * x[j])    → sum(j, sum(k, B[j,k] * C[k] * x[j]))
    sum(j, sum(k, A[i,j] * B[j,k]) / d[i])  → sum(j, sum(k, A[i,j] / d[i] * B[j,k]))

The order of the sums and of the factors is then free to choose (`algebra.products`).
"""

from __future__ import annotations

from taco_py.plan.algebra.products import flatten
from taco_py.plan.rules.base import Numbers, Phase, Rule, on_terms, terms

RULE = Rule(
    "flatten_product",
    Phase.FORMS,
    on_terms(lambda program, term: flatten(term, program.dtypes)),
    terms,
    Numbers.ROUNDS,
)
