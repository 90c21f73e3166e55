"""Sums inside products, multiplied out: which may be, and what becomes of them.

    (A[i,j] + u[i] * v[j]) * x[j]  →  A[i,j] * x[j] + u[i] * v[j] * x[j]

Integers and booleans are exact either way, for all of it is computed in one type. Real numbers are
rounded at other places, as where a product is contracted in pairs. A difference of theirs stays as
it is written: (A - B) · x keeps digits that A·x - B·x cancels. But where A is sparse and B is full,
as in (A - d dᵀ) · x, most elements of B have nothing to cancel with, and the loops go through all
of them: such a difference is multiplied out where the whole plan is FAR_CHEAPER then. Its
full terms come apart too, where each has an index of its own and all one sign, as means of rows and
of columns; not t[j] - s[i], which may be nearly equal.

A part without the index of a sum around it is multiplied by the size of that index:

    v[a] = sum(i, X[i,a] + m[a])  →  v[a] = sum(i, X[i,a]) + size_i * m[a]

but not in a difference, for a column of X that is full has nothing but what cancels: there X's
entries are added up alone, and the elements between them counted (`gaps`), where that can be done.

`forms` chooses which are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from codegen.records import dataclass
from taco_py.compiler.concrete.terms import reductions
from taco_py.compiler.cost.machine import NOMINAL, Machine
from taco_py.language.diagnostics.errors import OperandTypeError
from taco_py.language.legal.absent import divides, is_factor
from taco_py.language.legal.stored import is_sparse
from taco_py.language.legal.types import rounds, sum_wraps_alone
from taco_py.language.notation.checks import accesses, free_indices
from taco_py.language.notation.dtypes import DType, expression_dtype
from taco_py.language.notation.nodes import Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import ADD, MUL, NEG, SUB
from taco_py.language.notation.tree import (
    addends,
    children,
    exchange,
    has_reductions,
    is_additive,
    is_sum,
    walk,
)
from taco_py.planner.algebra.gaps import is_over_entries
from taco_py.planner.ir.index_sizes import Sizes

Signed = tuple[bool, Expr]
"""A term, and whether it is subtracted."""
Fill = Callable[[Expr], float]
FAR_CHEAPER, FEWER_ELEMENTS = 3, 8
"""How many times cheaper a plan must be for differences of sparse and full terms to be multiplied
out, and how many times fewer elements than all the sparse ones store."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What may be multiplied out.

    sizes  has the types of all operands, and the sizes of indices as numbers
    fill   the share of its elements that a term is expected to store
    machine  the machine that the forms are priced for
    mixed  whether the sums that may be are the differences of sparse and full terms, and no others
    divided  whether sums may be moved through divisors, though they make NaN of (3 - 1) / 0
    squared  sums that are multiplied by themselves: near -q the square of x + q has few digits
    """

    sizes: Sizes
    fill: Fill
    machine: Machine = NOMINAL
    mixed: bool = False
    divided: bool = False
    squared: frozenset[Expr] = frozenset()

    def is_of(self, dtype: DType, expr: Expr) -> bool:
        """Tell whether an expression is defined and computed in this type."""
        try:
            return expression_dtype(expr, self.sizes.dtypes) == dtype
        except OperandTypeError:
            return False

    def terms(self, expr: Expr, dtype: DType) -> tuple[Signed, ...]:
        """Return the terms of a sum and of the sums in it: a - (b + c) → + a, - b, - c. Those of
        another type are left, for they may wrap in it."""
        return tuple(_terms(expr, lambda inner: self.is_of(dtype, inner)))

    def parts(self, site: Call, dtype: DType) -> tuple[Signed, ...]:
        """Return the terms that a sum is split into; none where it stays one sum."""
        terms = self.terms(site, dtype)
        if not self.is_of(dtype, site):
            return ()
        if not self.loses_digits(site, terms, dtype):
            return () if self.mixed else terms
        return self._without_counterparts(terms, dtype) if self.mixed else ()

    def loses_digits(self, site: Expr, terms: tuple[Signed, ...], dtype: DType) -> bool:
        """Tell whether products of the terms of a sum may cancel where the sum does not."""
        return loses_digits(terms, dtype) or (rounds(dtype) and site in self.squared)

    def is_sampled(self, expr: Expr, sum_: Expr) -> bool:
        """Tell whether there is a sparse operand outside of all sums, in the term that has this
        one."""
        term = next(term for term in addends(expr) if has(term, sum_))
        inside = {id(access) for part in reductions(term) for access in accesses(part)}
        return any(
            is_sparse(self.sizes.operands[access.tensor].type.format)
            for access in accesses(term)
            if id(access) not in inside
        )

    def is_mixed(self, site: Call, dtype: DType) -> bool:
        """Tell whether a sum is a difference of sparse and full terms."""
        terms = self.terms(site, dtype)
        lossy = self.loses_digits(site, terms, dtype)
        return lossy and bool(self._without_counterparts(terms, dtype))

    def _without_counterparts(self, terms: tuple[Signed, ...], dtype: DType) -> tuple[Signed, ...]:
        """Return the full terms beside sparse ones, which they meet at few elements."""
        full = tuple(term for term in terms if self.fill(term[1]) >= self.machine.copies.full_share)
        sparse = tuple(term for term in terms if term not in full)
        few = all(self.fill(term) <= 1 / FEWER_ELEMENTS for _, term in sparse)
        if not few:
            return ()
        ours, theirs = self._join_cancelling(sparse, dtype), self._join_cancelling(full, dtype)
        return (*ours, *theirs) if ours and theirs else ()

    def _join_cancelling(self, terms: tuple[Signed, ...], dtype: DType) -> tuple[Signed, ...]:
        """Return terms, joined where they cancel each other; none where a joined term has another
        type.
        """
        kept_terms: list[Signed] = []
        for group in _cancelling(terms, dtype):
            if not loses_digits(group, dtype):
                kept_terms += group
                continue
            one = _sum_of(group, dtype, self)
            if one is None:
                return ()
            kept_terms.append((False, one))
        return tuple(kept_terms)


# ---------------------------------------------------------------- sums in products


def sites(expr: Expr) -> Iterator[Call]:
    """Yield the sums among the factors of products, where multiplying out saves loops.

    And those with a term that has not an index which is summed around them, or that is a product.
    """
    sums: dict[int, Call] = {}
    for node in _open(expr):
        outer = {node.index} if is_sum(node) else set()
        for inside in _linear_in(node):
            while is_sum(inside):
                inside = inside.body
            if not isinstance(inside, Call) or len(tuple(_terms(inside))) < 2:
                continue
            terms = [term for _, term in _terms(inside)]
            even = outer and all(outer <= set(free_indices(term)) for term in terms)
            even = even and not any(isinstance(term, Call) for term in terms)
            if not even and free_indices(inside) and _is_summed(expr, inside):
                sums[id(inside)] = inside
    return iter(sums.values())


def _open(expr: Expr) -> Iterator[Expr]:
    """Yield every node outside sums over entries alone: these have few already."""
    if not is_over_entries(expr):
        yield expr
        for child in children(expr):
            yield from _open(child)


def _linear_in(node: Expr) -> Iterator[Expr]:
    """Yield the expressions that a node is linear in, directly below it."""
    if is_sum(node):
        yield node.body
    elif isinstance(node, Call) and not node.operator.additive:
        yield from (a for a, linear in zip(node.args, node.operator.linear, strict=False) if linear)


def _is_summed(expr: Expr, site: Expr) -> bool:
    """Tell whether there is a sum over an index around or beside a site, or in it."""
    term = next(t for t in addends(expr) if has(t, site))
    return has_reductions(term)


def squared_sums(expr: Expr) -> frozenset[Expr]:
    """Return the sums that an expression multiplies by themselves: x + q in (x + q) * w * (x +
    q)."""
    squares: set[Expr] = set()
    for node, _ in walk(expr):
        factors = [factor for factor in _factors(node) if isinstance(factor, Call)]
        squares.update(
            factor for factor in factors if factor.operator.additive and factors.count(factor) > 1
        )
    return frozenset(squares)


def _factors(expr: Expr) -> Iterator[Expr]:
    if isinstance(expr, Call) and expr.operator.distributes:
        for arg in expr.args:
            yield from _factors(arg)
    else:
        yield expr


def is_divided(expr: Call) -> bool:
    """Tell whether an operation divides by a value that may be 0."""
    return divides(expr) and not is_factor(expr.args[1])


def divided_sums(expr: Expr) -> set[Expr]:
    """Return the quotients of an expression with a sum in the numerator and a possible 0 below."""
    return {
        node
        for node, _ in walk(expr)
        if isinstance(node, Call) and is_divided(node) and _has_terms(node.args[0])
    }


def _has_terms(expr: Expr) -> bool:
    """Tell whether an expression is linear in some sum."""
    if is_additive(expr):
        return True
    return any(map(_has_terms, _linear_in(expr)))


def has(expr: Expr, site: Expr) -> bool:
    return any(node is site for node, _ in walk(expr))


def _terms(
    expr: Expr, is_apart: Callable[[Call], bool] = lambda _: True, negative: bool = False
) -> Iterator[Signed]:
    """Yield the terms of nested sums, with signs: a - (b + c) → + a, - b, - c."""
    if is_additive(expr) and is_apart(expr):
        for arg, sign in zip(expr.args, expr.operator.signs, strict=True):
            yield from _terms(arg, is_apart, negative != (sign < 0))
    else:
        yield negative, expr


def loses_digits(terms: Iterable[Signed], dtype: DType) -> bool:
    """Tell whether there are terms of both signs, in a type that is rounded."""
    signs = {minus != _is_negative(term) for minus, term in terms}
    return rounds(dtype) and len(signs) > 1


def _cancelling(terms: Iterable[Signed], dtype: DType) -> Iterator[tuple[Signed, ...]]:
    """Yield terms in groups that may cancel each other for all coordinates.

    - m[a] - r[i] + g  →  - m[a] + g,  - r[i]
    + t[a] - s[i]      →  + t[a] - s[i]
    """
    groups: dict[frozenset[str], tuple[Signed, ...]] = {}
    for term in terms:
        indices = frozenset(free_indices(term[1]))
        groups[indices] = (*groups.get(indices, ()), term)
    fewer: dict[frozenset[str], tuple[Signed, ...]] = {}
    for indices in sorted(groups, key=len):
        for more, signed in groups.items():
            if indices < more and loses_digits((*signed, *groups[indices]), dtype):
                fewer[more] = (*fewer.get(more, ()), *groups.pop(indices), *fewer.pop(indices, ()))
                break
    if loses_digits((term for group in groups.values() for term in group), dtype):
        rest = (
            term for terms_of in (groups, fewer) for group in terms_of.values() for term in group
        )
        yield tuple(rest)
        return
    for indices, group in groups.items():
        yield (*group, *fewer.get(indices, ()))


def _is_negative(expr: Expr) -> bool:
    """Tell whether a product has an odd number of negative literals and negations among its
    factors.
    """
    match expr:
        case Literal(value):
            return not isinstance(value, complex) and value < 0
        case Call(operator, (arg,)) if operator == NEG:
            return not _is_negative(arg)
        case Call(operator, args) if not operator.additive:
            return sum(map(_is_negative, args)) % 2 == 1
        case Reduce(_, _, body):
            return _is_negative(body)
    return False


# ---------------------------------------------------------------- multiplying out


def multiplied_out(expr: Expr, site: Call, rules: Rules) -> Expr | None:
    """Return `expr` with one of its sums multiplied out as far as linearity allows."""
    dtype = computed_in(expr, site, rules)
    parts = rules.parts(site, dtype)
    return moved_out(expr, site, parts, dtype, rules) if parts else None


def moved_out(
    expr: Expr, site: Call, parts: tuple[Signed, ...], dtype: DType, rules: Rules
) -> Expr | None:
    """Return `expr` with the parts of a sum instead of it, as far out as they may go."""
    outer = next((sum_ for sum_ in reductions(expr) if has(sum_, site)), None)
    if outer is not None and outer is not expr and not rules.is_sampled(expr, outer):
        inner = moved_out(outer, site, parts, dtype, rules)
        return None if inner is None else exchange(expr, outer, inner)
    terms = _lifted(expr, site, parts, dtype, rules)
    value = None if terms is None else _sum_of(terms, dtype, rules)
    return None if value == expr else value


def computed_in(expr: Expr, site: Call, rules: Rules) -> DType:
    """Return the type in which the sums around a site are computed."""
    dtype = expression_dtype(expr, rules.sizes.dtypes)
    term_dtype = expression_dtype(
        next(t for t in addends(expr) if has(t, site)), rules.sizes.dtypes
    )
    return dtype if sum_wraps_alone(term_dtype, dtype) else term_dtype


def _lifted(
    expr: Expr, site: Call, terms: tuple[Signed, ...], dtype: DType, rules: Rules
) -> tuple[Signed, ...] | None:
    """Return the terms that `expr` becomes: one where the site ends inside of what is not linear in
    it. None where a product of one of them is of another type: `u` of int8 in `(B + u) * v` may
    have been real beside B, and `u * v` would wrap."""
    if expr is site:
        return terms
    below = children(expr)
    place = next(k for k, child in enumerate(below) if has(child, site))
    parts = _lifted(below[place], site, terms, dtype, rules)
    if parts is None:
        return None
    if isinstance(expr, Reduce) and rules.mixed and not _all_have(expr.index, parts):
        # a column that is full cancels, and a product with the index's size has lost its digits
        if len(parts) > 1:
            return _lifted_inside(expr, site, terms, dtype, rules)
    elif _moves_through(expr, place, rules):
        lifted = tuple((minus, _with(expr, place, part, rules)) for minus, part in parts)
        same = expression_dtype(expr, rules.sizes.dtypes)
        return lifted if all(rules.is_of(same, part) for _, part in lifted) else None
    ended = _sum_of(parts, dtype, rules)
    return None if ended is None else ((False, _with(expr, place, ended, rules)),)


def _lifted_inside(
    expr: Reduce, site: Call, terms: tuple[Signed, ...], dtype: DType, rules: Rules
) -> tuple[Signed, ...] | None:
    """Return a sum that multiplies out no further than the outermost sum inside it that has the
    site.

    sum(i, m[k] * sum(j, (A[i,j] + m[j]) * x[j]))
    → sum(i, m[k] * (sum(j, A[i,j] * x[j]) + sum(j, m[j] * x[j])))
    """
    inner = next((sum_ for sum_ in reductions(expr.body) if has(sum_, site)), None)
    parts = None if inner is None else _lifted(inner, site, terms, dtype, rules)
    inner_sum = None if parts is None else _sum_of(parts, dtype, rules)
    if inner is None or inner_sum is None or inner_sum == inner:
        return None
    return ((False, exchange(expr, inner, inner_sum)),)


def _all_have(index: str, parts: Iterable[Signed]) -> bool:
    return all(index in free_indices(part) for _, part in parts)


def _moves_through(expr: Expr, place: int, rules: Rules) -> bool:
    """Tell whether `expr` of a sum is the sum of `expr` of its terms.

    Over a divisor it is but for some that are 0: (3 - 1) / 0 is infinite, and 3 / 0 - 1 / 0 is NaN.
    """
    if isinstance(expr, Reduce):
        return expr.operator.additive
    if isinstance(expr, Call) and is_divided(expr) and not rules.divided:
        return False
    return isinstance(expr, Call) and not expr.operator.additive and expr.operator.linear[place]


def _with(expr: Expr, place: int, part: Expr, rules: Rules) -> Expr:
    """Return `expr` with another of the expressions directly below it.

    A sum adds up one that has not its index as often as that has coordinates.
    """
    if isinstance(expr, Reduce):
        if expr.operator.additive and expr.index not in free_indices(part):
            size = rules.sizes.factor(expr.index, expression_dtype(expr, rules.sizes.dtypes))
            return Call(MUL, (size, part))
        return replace(expr, body=part)
    assert isinstance(expr, Call)
    return replace(expr, args=(*expr.args[:place], part, *expr.args[place + 1 :]))


def _sum_of(parts: tuple[Signed, ...], dtype: DType, rules: Rules) -> Expr | None:
    """Return the sum of terms; None where a term has another type than the sum."""
    (negative, first), *rest = parts
    if rest and not all(rules.is_of(dtype, part) for _, part in parts):
        return None
    total: Expr = Call(NEG, (first,)) if negative else first
    for minus, part in rest:
        total = Call(SUB if minus else ADD, (total, part))
    return total
