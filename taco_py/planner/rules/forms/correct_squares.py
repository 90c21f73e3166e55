"""Multiply squares of differences and sums out, and compute again what cancels.

    D[i,j] = sum(k, (X[i,k] - Y[j,k]) * (X[i,k] - Y[j,k]))
    → T[i] = sum(k, X[i,k] * X[i,k]);  T_1[j] = sum(k, Y[j,k] * Y[j,k])
      D_0[i,j] = T[i] + T_1[j] - 2 * sum(k, X[i,k] * Y[j,k])

and last of all D[i,j] = corrected(D_0[i,j], 0.25 * (T[i] + T_1[j]), sum(k, (X[i,k] - Y[j,k]) * …)).

Rows of sparse matrices have few entries in common, and a product of matrices meets these alone.
Where an element is less than a quarter of the squares that it is made of, digits are lost: it is
computed as it is written. By Cauchy and Schwarz the products are no larger than the squares, so
that the others are as exact as three sums of squares are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from math import prod

from codegen.names import Names
from codegen.records import dataclass
from taco_py.compiler.concrete.terms import reductions, split_terms, summed
from taco_py.language.formats import dense
from taco_py.language.legal.stored import is_full, is_sparse
from taco_py.language.legal.types import is_real
from taco_py.language.notation.checks import accesses, free_indices
from taco_py.language.notation.dtypes import expression_dtype
from taco_py.language.notation.nodes import Access, Call, Expr, Literal
from taco_py.language.notation.operators import ADD, CORRECTED, MUL, SUB
from taco_py.language.notation.tree import is_additive
from taco_py.planner.algebra.products import as_product
from taco_py.planner.context import Context
from taco_py.planner.ir.index_sizes import Sizes
from taco_py.planner.ir.program import Program
from taco_py.planner.rules.base import (
    Candidate,
    Gain,
    Numbers,
    Outcome,
    Phase,
    Rewrite,
    Rule,
    Site,
    Trait,
    result,
)
from taco_py.planner.temporaries import with_temporary

MOST_TERMS = 3
"""Terms of a sum whose square is multiplied out."""
SHARE = 0.25
"""The share of its squares below which an element is computed again."""
STEPS = 3.0
"""What it costs to look at an element again, in steps."""
REASON = (
    "squares of differences are multiplied out; what cancels is computed again as it is written"
)


@dataclass(frozen=True, slots=True)
class _Square:
    """The square of a sum: its terms with their signs, and the indices it is added over."""

    terms: tuple[tuple[bool, Expr], ...]
    over: tuple[str, ...]


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Multiply the square of a difference out where that is clearly cheaper, and correct it."""
    square = _square(program)
    if square is None or not is_full(program.result_type.format):
        return None
    following, drafting = context.following, context.drafting
    direct = following.forms(program.only(site.target), drafting)
    before = drafting.costs.program(direct, drafting)
    corrected, reason = _corrected(program, site, context, square), REASON
    split = following.split(corrected.only(corrected.result), drafting)
    alone = (
        context.costs.kernel(corrected, temporary.assignment, context)
        for temporary in corrected.temporaries
    )
    elements = prod(program.facts[site.target].shape)
    after = drafting.costs.program(split, drafting) + sum(alone) + STEPS * elements
    return Candidate(before, after, lambda: Rewrite(corrected, reason))


def _square(program: Program) -> _Square | None:
    """Return the square that the result's assignment sums; None unless it is one of real
    numbers.
    """
    (term, *more) = split_terms(program.last.value)
    dtypes = program.dtypes
    product = as_product(term.body, dtypes)
    if more or term.negative or not term.reduced or product is None or len(product.factors) != 2:
        return None
    left, right = product.factors
    dtype = expression_dtype(term.body, dtypes)
    terms = tuple(_terms(left))
    plain = not any(True for _ in reductions(left)) and any(
        is_sparse(program.facts[access.tensor].type.format) for access in accesses(left)
    )
    same = all(expression_dtype(value, dtypes) == dtype for _, value in terms)
    few = 1 < len(terms) <= MOST_TERMS
    if left != right or not plain or not few or not same or not is_real(dtype):
        return None
    return _Square(terms, term.reduced)


def _terms(expr: Expr, negative: bool = False) -> Iterator[tuple[bool, Expr]]:
    """Yield the terms of a sum, and for each whether it is subtracted."""
    if is_additive(expr):
        for arg, sign in zip(expr.args, expr.operator.signs, strict=True):
            yield from _terms(arg, negative != (sign < 0))
    else:
        yield negative, expr


def _corrected(program: Program, site: Site, context: Context, square: _Square) -> Program:
    """Return the program of the sums of products, whose result is corrected after it is split."""
    original = program.last.value
    sizes = Sizes.of(program.last, program.facts, Names(program.facts), context.goal.sized)
    program = program.before(site.target, (), sizes.operands)
    sums = _Sums(square.over, sizes)
    squares_ = [sums.of(term, term) for _, term in square.terms]
    pairs = tuple(combinations(square.terms, 2))
    products = [(minus != less, sums.of(one, other)) for (minus, one), (less, other) in pairs]
    program = program.before(site.target, tuple(sizes.steps.values()), sizes.operands)
    squares: list[Expr] = []
    for sum_ in squares_:
        program, access = _in_dense_temporary(program, context, sum_)
        squares.append(access)
    largest = _sum_of(squares)
    value = largest
    for minus, product in products:
        value = Call(SUB if minus else ADD, (value, Call(MUL, (Literal(2), product))))
    least = Call(MUL, (Literal(SHARE), largest))
    return program.corrected(
        value, lambda uncorrected: Call(CORRECTED, (uncorrected, least, original)), REASON
    )


def _in_dense_temporary(program: Program, context: Context, sum_: Expr) -> tuple[Program, Access]:
    """Return the program with a sum of squares in a temporary that stores every element."""
    keep = free_indices(sum_)
    program, access = with_temporary(program, context, sum_, keep, "squares of one term")
    facts = program.facts[access.tensor]
    facts = replace(facts, type=replace(facts.type, format=dense(len(keep))))
    return program.with_facts({access.tensor: facts}), access


@dataclass(frozen=True, slots=True)
class _Sums:
    """Sums of products over given indices; one that no factor has counts as often as its size."""

    over: Sequence[str]
    sizes: Sizes

    def of(self, one: Expr, other: Expr) -> Expr:
        """Return the sum of the product of two terms."""
        product: Expr = Call(MUL, (one, other))
        indices = [index for index in self.over if index in free_indices(product)]
        dtype = expression_dtype(product, self.sizes.dtypes)
        total = summed(product, indices)
        for index in self.over:
            if index not in indices:
                total = Call(MUL, (self.sizes.factor(index, dtype), total))
        return total


def _sum_of(values: Sequence[Expr]) -> Expr:
    first, *rest = values
    for value in rest:
        first = Call(ADD, (first, value))
    return first


RULE = Rule(
    "correct_squares",
    Phase.FORMS,
    apply,
    result,
    Numbers.ROUNDS,
    Gain.DETOUR,
    traits=Trait.SUMS | Trait.FACTORS | Trait.INDICES,
)
