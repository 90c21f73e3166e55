"""Products of sums with too many cases for one kernel: some of the sums are computed first.

    y = (A + B) * (C + D) * (E + F) * (G + H) * x    →    T = A + B;  y = T * (C + D) * …

Where A, B and all others are sparse, each sum has a case for A and B, for A and for B alone, and
the product 3 · 3 · 3 · 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from taco_py.concrete.concretize import MERGED
from taco_py.concrete.terms import split_terms
from taco_py.notation.checks import accesses, free_indices
from taco_py.notation.nodes import Access, Call, Expr
from taco_py.notation.tree import exchange, map_children
from taco_py.plan.nodes import Operand
from taco_py.plan.splitter import Splitter

CASES = 1 << (MERGED + 1)
"""Cases of a product that one kernel has at most: gcc takes seconds for them."""


def few_cases(splitter: Splitter, expr: Expr) -> Expr:
    """`expr` with sums among the factors of its products computed first, as long as these have too
    many cases: those with the most, in the order in which they are written."""
    expr = map_children(expr, lambda child: few_cases(splitter, child))
    if not isinstance(expr, Call) or expr.operator.additive:
        return expr
    while (count := count_cases(expr, splitter.operands)) > CASES:
        sums = {sum_: _of_sum(sum_, splitter.operands) for sum_ in _sums(expr)}
        most = max(sums, key=sums.__getitem__)
        why = f"in one kernel with the other sums of its product it has {count} cases"
        made = splitter.temporary(most, free_indices(most), why)
        for sum_ in tuple(_sums(expr)):
            expr = exchange(expr, sum_, made) if sum_ == most else expr
    return expr


def count_cases(expr: Expr, operands: Mapping[str, Operand]) -> int:
    """The sets of sparse operands that may be present in a term, as far as its sums and products
    tell: n terms of a sum have 2^n - 1, and those of factors with other operands are multiplied."""
    if isinstance(expr, Call) and expr.operator.additive:
        return _of_sum(expr, operands)
    return prod({_sparse(sum_, operands): _of_sum(sum_, operands) for sum_ in _sums(expr)}.values())


def _of_sum(expr: Expr, operands: Mapping[str, Operand]) -> int:
    """Those of a sum; of more than MERGED terms these are added up first (`in_turn`)."""
    terms = [term.body for term in split_terms(expr)]
    known = {_sparse(term, operands): count_cases(term, operands) for term in terms}
    always = known.pop(frozenset(), 0)
    every: int = prod(count + 1 for count in known.values())
    return min(every if always else every - 1, 1 << MERGED)


def _sparse(expr: Expr, operands: Mapping[str, Operand]) -> frozenset[Access]:
    """The accesses that do not store everything."""
    found = (a for a in accesses(expr) if not operands[a.tensor].type.format.is_dense)
    return frozenset(found)


def _sums(expr: Expr) -> Iterator[Call]:
    """The sums among the factors of an expression."""
    if isinstance(expr, Call) and expr.operator.additive:
        yield expr
    elif isinstance(expr, Call):
        for arg in expr.args:
            yield from _sums(arg)
