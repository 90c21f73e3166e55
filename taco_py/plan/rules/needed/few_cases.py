"""Products of sums with too many cases for one kernel: some of the sums are computed first.

    y = (A + B) * (C + D) * (E + F) * (G + H) * x    →    T = A + B;  y = T * (C + D) * …

Where A, B and all others are sparse, each sum has a case for A and B, for A and for B alone, and
the product 3 · 3 · 3 · 3. In loops inside each other each case has those of the loops inside it.
"""

from __future__ import annotations

from taco_py.concrete.cases import CASES, count_cases, sums_in
from taco_py.concrete.terms import reductions
from taco_py.notation.checks import free_indices
from taco_py.notation.nodes import Call, Expr
from taco_py.notation.tree import exchange, map_children
from taco_py.plan.rules.needed.sum_in_chunks import added_in_turn
from taco_py.plan.splitter import Splitter

NESTED = 2 * CASES
"""Cases that the loops of a product have at most together. [Of 81, in one loop, gcc takes 12 s; of
96, in three, a minute]"""


def few_cases(splitter: Splitter, expr: Expr) -> Expr:
    """`expr` with sums among the factors of its products computed first, as long as these have too
    many cases: those with the most, in the order in which they are written."""
    expr = map_children(expr, lambda child: few_cases(splitter, child))
    if not isinstance(expr, Call) or expr.operator.additive:
        return expr
    while (count := _too_many(splitter, expr)) is not None:
        # a sum over an index may wrap in a type of its own (`narrow`)
        sums = [sum_ for sum_ in sums_in(expr) if not any(reductions(sum_))]
        if not sums:
            break
        most = max(sums, key=lambda sum_: count_cases(sum_, splitter.lists))
        why = f"in one kernel with the other sums of its product it has {count} cases"
        made = splitter.temporary(added_in_turn(splitter, most), free_indices(most), why)
        for sum_ in sums:
            expr = exchange(expr, sum_, made) if sum_ == most else expr
    return expr


def _too_many(splitter: Splitter, expr: Expr) -> int | None:
    """The cases of a product where one loop has too many, or all of its loops together have."""
    once, every = (count_cases(expr, each) for each in (splitter.is_sparse, splitter.lists))
    return max(once, every) if once > CASES or every > NESTED else None
