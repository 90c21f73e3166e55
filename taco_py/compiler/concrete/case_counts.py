"""The number of cases of a kernel's loops: the sets of sparse operands that may be present."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import prod

from taco_py.compiler.concrete.terms import split_terms
from taco_py.language.legal.cases import LOOP_CASES
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access, Call, Expr

Levels = Callable[[Access], int]
"""The number of loops in which an access may be absent: of all loops, or 0 or 1 for one loop."""


def count_cases(expr: Expr, is_sparse: Levels) -> int:
    """Count the cases of a term, as far as its sums and products determine them.

    n terms of a sum have 2^n - 1 cases in one loop, (d + 1)^n - 1 in d nested loops; those of
    arguments of other functions are counted as terms are, and those of factors with other operands
    are multiplied. A sum of more than LOOP_CASES counts as LOOP_CASES: it will be added up term by
    term.
    """
    if isinstance(expr, Call) and merges(expr, is_sparse):
        terms = [t.body for t in split_terms(expr)] if expr.operator.additive else expr.args
        return min(cases_of_sum(terms, is_sparse), LOOP_CASES.most)
    counts = {
        _sparse(sum_, is_sparse): count_cases(sum_, is_sparse) for sum_ in sums_in(expr, is_sparse)
    }
    return prod(counts.values())


def cases_of_sum(terms: Iterable[Expr], is_sparse: Levels) -> int:
    """Count the cases of terms that are added up."""
    counts = {
        _sparse(term, is_sparse): count_cases(term, is_sparse) * _depth(term, is_sparse)
        for term in terms
    }
    always = counts.pop(frozenset(), 0)
    every: int = prod(count + 1 for count in counts.values())
    return every if always else every - 1


def merges(expr: Call, is_sparse: Levels) -> bool:
    """Tell whether a function has a value where one of its sparse arguments is absent.

    A[i] + b, max(A[i], B[i]), where(A[i], B[i], D[i]); but A[i] * b is absent where A[i] is
    """
    if expr.operator.additive:
        return True
    kinds = zip(expr.args, expr.operator.annihilators, strict=False)
    sparse = [zero for arg, zero in kinds if any(map(is_sparse, accesses(arg)))]
    return len(sparse) > 1 and all(zero is None or zero != 0 for zero in sparse)


def sums_in(expr: Expr, is_sparse: Levels) -> Iterator[Call]:
    """Yield the sums among the factors of an expression, and other calls that merge their
    arguments."""
    if isinstance(expr, Call) and merges(expr, is_sparse):
        yield expr
    elif isinstance(expr, Call):
        for arg in expr.args:
            yield from sums_in(arg, is_sparse)


def _depth(expr: Expr, is_sparse: Levels) -> int:
    """Return the number of loops, at least 1, in which a product may be absent without its sums."""
    if not isinstance(expr, Call):
        return max((is_sparse(access) for access in accesses(expr)), default=1) or 1
    return 1 if expr.operator.additive else max(_depth(arg, is_sparse) for arg in expr.args)


def _sparse(expr: Expr, is_sparse: Levels) -> frozenset[Access]:
    return frozenset(filter(is_sparse, accesses(expr)))
