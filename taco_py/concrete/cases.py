"""How many cases the loops of a kernel have: the sets of sparse operands that may be present."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import prod

from taco_py.concrete.terms import split_terms
from taco_py.notation.checks import accesses
from taco_py.notation.nodes import Access, Call, Expr

MERGED = 4
"""Sparse terms that one loop adds up where they need not all be: n of them have 2^n - 1 cases, so
that a loop of 4 takes a second to compile and one of 6 ten."""
CASES = 1 << (MERGED + 1)
"""Cases that a loop has at most where its terms have several each, as products of sums do."""

IsSparse = Callable[[Access], bool]
"""Whether an operand, as it is accessed, has elements that are not there."""


def count_cases(expr: Expr, is_sparse: IsSparse) -> int:
    """Those of a term, as far as its sums and products tell: n terms of a sum have 2^n - 1, and
    those of factors with other operands are multiplied. A sum that has more than CASES is not
    taken for more: it will be added up in turn."""
    if isinstance(expr, Call) and expr.operator.additive:
        return min(cases_of_sum((term.body for term in split_terms(expr)), is_sparse), CASES)
    found = {_sparse(sum_, is_sparse): count_cases(sum_, is_sparse) for sum_ in sums_in(expr)}
    return prod(found.values())


def cases_of_sum(terms: Iterable[Expr], is_sparse: IsSparse) -> int:
    """Those of terms that are added up."""
    known = {_sparse(term, is_sparse): count_cases(term, is_sparse) for term in terms}
    always = known.pop(frozenset(), 0)
    every: int = prod(count + 1 for count in known.values())
    return every if always else every - 1


def sums_in(expr: Expr) -> Iterator[Call]:
    """The sums among the factors of an expression."""
    if isinstance(expr, Call) and expr.operator.additive:
        yield expr
    elif isinstance(expr, Call):
        for arg in expr.args:
            yield from sums_in(arg)


def _sparse(expr: Expr, is_sparse: IsSparse) -> frozenset[Access]:
    return frozenset(filter(is_sparse, accesses(expr)))
