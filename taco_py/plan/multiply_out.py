"""Sums inside products, multiplied out where the whole plan then costs clearly less.

    y[i] = sum(k, (sum(j, A[i,j] * B[j,k]) + C[i,k]) * x[k])
    → y[i] = sum(k, sum(j, A[i,j] * B[j,k]) * x[k]) + sum(k, C[i,k] * x[k])

which is A·(B·x) + C·x where A·B was made before. Each sum may be multiplied out or left, as in the
rewrites of Ahrens et al. 2022, section 7; the forms are compared by what all their kernels cost.

Integers and booleans are exact either way, for all of it is computed in one type. Real numbers are
rounded at other places, as where a product is contracted in pairs. A difference of theirs stays as
it is written: (A - B) · x keeps digits that A·x - B·x cancels. But where A is sparse and B is full,
as in (A - d dᵀ) · x, most elements of B have nothing to cancel with, and the loops go through all
of them: such a difference is multiplied out where the whole plan is FAR_CHEAPER then.

A part without the index of a sum around it is multiplied by the size of that index:

    v[a] = sum(i, X[i,a] + m[a])  →  v[a] = sum(i, X[i,a]) + size_i * m[a]

but not in a difference, for a column of X that is full has nothing but what cancels: there X's
entries are added up alone, and the elements between them counted (`gaps`), where that can be done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from taco_py.autoschedule.effort import Effort
from taco_py.concrete.terms import Term, map_terms, reductions, split_terms
from taco_py.cost.machine import FULL, GAIN
from taco_py.diagnostics.errors import OperandTypeError
from taco_py.notation.checks import accesses, free_indices
from taco_py.notation.dtypes import DType, expression_dtype
from taco_py.notation.nodes import Assignment, Call, Expr, Literal, Reduce
from taco_py.notation.operators import ADD, MUL, NEG, SUB
from taco_py.notation.printer import to_text
from taco_py.notation.tree import children, exchange, walk
from taco_py.plan.gaps import is_over_entries, without_gaps
from taco_py.plan.products import nest
from taco_py.plan.sizes import Sizes
from taco_py.schedule.distribute import count_terms, is_taken, multiplied

TERMS, OPTIONS, ROUNDS = 8, 6, 3
"""Terms up to which an assignment is multiplied out; forms that are compared at a time, and sums
that are multiplied out after the first."""
Signed = tuple[bool, Expr]
"""A term, and whether it is subtracted."""
Price = Callable[[Assignment], float]
Fill = Callable[[Expr], float]
FAR_CHEAPER = 8
"""How many times cheaper a plan must be for differences of sparse and full terms to be multiplied
out, and how many times fewer elements than all the sparse ones store."""


@dataclass(frozen=True, slots=True)
class Forms:
    """The form that was chosen, and the one that it was compared with, None where there is none.

    kept  the differences that are left in their products, and why
    differs  whether differences of sparse and full terms are multiplied out
    counts   whether sums go over entries alone, and the elements between them are counted
    """

    chosen: Assignment
    other: Assignment | None
    kept: tuple[str, ...]
    differs: bool = False
    counts: bool = False


def cheapest_form(
    assignment: Assignment,
    sizes: Sizes,
    price: Price,
    effort: Effort,
    asked: bool = False,
    fill: Fill = lambda _: 1.0,
) -> Forms:
    """The assignment with sums multiplied out, or over entries alone, where its price is clearly
    less then.

    sizes  has the types of all operands; the sizes that the form needs are added to it
    price  what all kernels of an assignment are expected to cost
    asked  whether they are to be multiplied out, whatever it costs
    fill   the share of its elements that a term is expected to store
    """
    rules = _Rules(sizes, fill)
    best = _cheaper(assignment, rules, price, effort)
    chosen = assignment
    if best is not None and (asked or price(best) * GAIN < price(assignment)):
        chosen = best
    bases: tuple[Assignment, ...] = (chosen,)
    over = assignment if asked else without_gaps(assignment, sizes)
    if over is not assignment:
        more = _cheaper(over, rules, price, effort)
        over = more if more is not None and price(more) * GAIN < price(over) else over
        counts = price(over) * GAIN < price(chosen)
        bases, chosen = ((over,), over) if counts else ((over, chosen), chosen)
    for base in bases:
        apart, why = _differences_out(base, price(chosen), rules, price, effort)
        if apart is not None:
            kept = tuple(dict.fromkeys(_kept(apart, assignment, rules, why)))
            return Forms(apart, assignment, kept, True, base is over is not assignment)
    kept = tuple(dict.fromkeys(_kept(assignment, assignment, rules, why)))
    other = best if chosen is assignment else assignment
    return Forms(chosen, other, kept, counts=chosen is over is not assignment)


def _cheaper(
    assignment: Assignment, rules: _Rules, price: Price, effort: Effort
) -> Assignment | None:
    """The cheapest form found with anything multiplied out that keeps its digits."""
    forms = (
        *_once(assignment, rules),
        *_everywhere(assignment, rules),
        *_nested(assignment, rules),
    )
    found = _priced(forms, price, effort)
    if not found:
        return None
    best = min(found, key=found.__getitem__)
    for _ in range(ROUNDS):
        more = _priced(_once(best, rules), price, effort)
        if not more or min(more.values()) >= price(best):
            break
        best = min(more, key=more.__getitem__)
    return best


def _differences_out(
    assignment: Assignment, cost: float, rules: _Rules, price: Price, effort: Effort
) -> tuple[Assignment | None, str]:
    """The form with sparse minus full terms multiplied out too, where that is far cheaper than
    `cost`; or why there is none."""
    mixed = replace(rules, mixed=True)
    forms = (*_everywhere(assignment, mixed, least=1), *_nested(assignment, mixed, least=1))
    found = _priced(forms, price, effort)
    if found:
        form = min(found, key=found.__getitem__)
        form = _cheaper(form, rules, price, effort) or form
        if price(form) * FAR_CHEAPER <= cost:
            return form, ""
    if effort.over:
        return None, "and no time was left to compare"
    if any(next(_taken_out(form, mixed), None) for form in found or (assignment,)):
        return None, f"and it would be a sum of more than {TERMS} terms"
    return None, f"and no form compared takes {FAR_CHEAPER} times fewer operations"


def _priced(options: Iterable[Assignment], price: Price, effort: Effort) -> dict[Assignment, float]:
    """What the first few forms cost, as far as there is time."""
    found: dict[Assignment, float] = {}
    for option in dict.fromkeys(islice(options, OPTIONS)):
        if effort.over:
            effort.cut("before all sums that may be were multiplied out")
            break
        found[option] = price(option)
    return found


@dataclass(frozen=True, slots=True)
class _Rules:
    """What may be multiplied out.

    sizes  has the types of all operands, and the sizes of indices as numbers
    fill   the share of its elements that a term is expected to store
    mixed  whether the sums that may be are the differences of sparse and full terms, and no others
    """

    sizes: Sizes
    fill: Fill
    mixed: bool = False

    def is_of(self, dtype: DType, expr: Expr) -> bool:
        """Whether an expression is computed in this type; not where an operator is not defined for
        its operands, or they have no room for a number, as the sum had that it was a part of."""
        try:
            return expression_dtype(expr, self.sizes.dtypes) == dtype
        except OperandTypeError:
            return False

    def terms(self, expr: Expr, whole: DType) -> tuple[Signed, ...]:
        """The terms of a sum and of the sums in it: a - (b + c) → + a, - b, - c. Those of another
        type are left, for they may wrap in it."""
        return tuple(_terms(expr, lambda inner: self.is_of(whole, inner)))

    def parts(self, site: Call, whole: DType) -> tuple[Signed, ...]:
        """What a sum is taken apart into; none where it is left."""
        terms = self.terms(site, whole)
        if not self.is_of(whole, site):
            return ()
        if not _loses_digits(terms, whole):
            return () if self.mixed else terms
        return self._without_counterparts(terms, whole) if self.mixed else ()

    def is_sampled(self, expr: Expr, sum_: Expr) -> bool:
        """Whether there is a sparse operand outside of all sums, in the term that has this one."""
        term = next(term for term in _outer_terms(expr) if _has(term, sum_))
        inside = {id(access) for each in reductions(term) for access in accesses(each)}
        return any(
            not self.sizes.operands[access.tensor].type.format.is_dense
            for access in accesses(term)
            if id(access) not in inside
        )

    def is_mixed(self, site: Call, whole: DType) -> bool:
        """Whether a sum is a difference of sparse and full terms."""
        terms = self.terms(site, whole)
        return _loses_digits(terms, whole) and bool(self._without_counterparts(terms, whole))

    def _without_counterparts(self, terms: tuple[Signed, ...], whole: DType) -> tuple[Signed, ...]:
        """Full terms apart from the sparse ones, which meet them at few elements; none where there
        are not both."""
        full = tuple(term for term in terms if self.fill(term[1]) >= FULL)
        sparse = tuple(term for term in terms if term not in full)
        few = all(self.fill(term) <= 1 / FAR_CHEAPER for _, term in sparse)
        if not few:
            return ()
        ours, theirs = self._apart(sparse, whole), self._apart(full, whole)
        return (*ours, *theirs) if ours and theirs else ()

    def _apart(self, terms: tuple[Signed, ...], whole: DType) -> tuple[Signed, ...]:
        """Terms, as one where they cancel each other."""
        if not _loses_digits(terms, whole):
            return terms
        one = _joined(terms, whole, self)
        return () if one is None else ((False, one),)


def _once(assignment: Assignment, rules: _Rules) -> Iterator[Assignment]:
    """The assignment with one of its sums multiplied out, for each that may be."""
    for form in _taken_out(assignment, rules):
        if len(split_terms(form.value)) <= TERMS:
            yield form


def _taken_out(assignment: Assignment, rules: _Rules) -> Iterator[Assignment]:
    """The same, of any number of terms."""
    for site in _sites(assignment.value):
        value = _out(assignment.value, site, rules)
        if value is not None:
            yield replace(assignment, value=value)


def _everywhere(assignment: Assignment, rules: _Rules, least: int = 2) -> Iterator[Assignment]:
    """The assignment with all of its sums multiplied out that may be, where these are several."""
    found: list[Assignment] = []
    for _ in range(TERMS):
        option = next(_once(found[-1] if found else assignment, rules), None)
        if option is None:
            break
        found.append(option)
    yield from found[least - 1 :][-1:]


def _nested(assignment: Assignment, rules: _Rules, least: int = 2) -> Iterator[Assignment]:
    """The same of the assignment with each sum around the factors alone that have its index, where
    other sums around one of those sums are in the way (`_lifted`)."""
    whole = next(_everywhere(assignment, rules, least=1), assignment)
    left = (
        rules.parts(site, _computed_in(whole.value, site, rules)) for site in _sites(whole.value)
    )
    if any(left) and len(split_terms(whole.value)) < TERMS:
        value = map_terms(assignment.value, lambda term: nest(term, rules.sizes.dtypes))
        yield from _everywhere(replace(assignment, value=value), rules, least)


def _kept(assignment: Assignment, text: Assignment, rules: _Rules, mixed: str) -> Iterator[str]:
    """The differences of the text that are left in their products, and why; those of sparse and
    full terms for this reason besides."""
    written = {site: site for site in _sites(text.value)}
    for site in _sites(assignment.value):
        whole = _computed_in(assignment.value, site, rules)
        terms = rules.terms(site, whole)
        if site not in written or not _loses_digits(terms, whole) or not rules.is_of(whole, site):
            continue
        if _moved(assignment.value, site, terms, whole, rules) is None:
            continue
        why = "differences keep digits that those of products lose"
        apart = _moved(assignment.value, site, terms, whole, replace(rules, mixed=True))
        if rules.is_mixed(site, whole) and apart is not None:
            why += f", {mixed}"
        term = next(t for t in split_terms(text.value) if _has(t.body, written[site]))
        if _is_distributed(term, site):
            why += "; distribute(…) does it"
        yield f"{to_text(site)} is not multiplied out: {why}"


def _is_distributed(term: Term, site: Call) -> bool:
    """Whether `distribute` of a term takes a site apart."""
    if count_terms(term.body) > TERMS or not is_taken(term):
        return False
    return not any(site == node for _, part in multiplied(term.body) for node, _ in walk(part))


# ---------------------------------------------------------------- sums in products


def _sites(expr: Expr) -> Iterator[Call]:
    """The sums that a product, or the numerator of a quotient, has among its factors, where any
    index is summed around or inside them: without loops more nothing is to be gained. And those
    with a term that has not an index which is summed around them, or that is a product."""
    found: dict[int, Call] = {}
    for node in _open(expr):
        around = {node.index} if isinstance(node, Reduce) and node.operator.additive else set()
        for inside in _linear_in(node):
            while isinstance(inside, Reduce) and inside.operator.additive:
                inside = inside.body
            if not isinstance(inside, Call) or len(tuple(_terms(inside))) < 2:
                continue
            terms = [term for _, term in _terms(inside)]
            even = around and all(around <= set(free_indices(term)) for term in terms)
            even = even and not any(isinstance(term, Call) for term in terms)
            if not even and free_indices(inside) and _is_summed(expr, inside):
                found[id(inside)] = inside
    return iter(found.values())


def _open(expr: Expr) -> Iterator[Expr]:
    """Every node outside sums over entries alone: these have few already."""
    if not is_over_entries(expr):
        yield expr
        for child in children(expr):
            yield from _open(child)


def _linear_in(node: Expr) -> Iterator[Expr]:
    """The expressions directly below a product, a quotient or a sum over an index that it is linear
    in."""
    if isinstance(node, Reduce) and node.operator.additive:
        yield node.body
    elif isinstance(node, Call) and not node.operator.additive:
        yield from (a for a, linear in zip(node.args, node.operator.linear, strict=False) if linear)


def _is_summed(expr: Expr, site: Expr) -> bool:
    """Whether there is a sum over an index around or beside a site, or in it."""
    term = next(t for t in _outer_terms(expr) if _has(t, site))
    return any(isinstance(node, Reduce) for node, _ in walk(term))


def _outer_terms(expr: Expr) -> Iterator[Expr]:
    if isinstance(expr, Call) and expr.operator.additive:
        for arg in expr.args:
            yield from _outer_terms(arg)
    else:
        yield expr


def _has(expr: Expr, site: Expr) -> bool:
    return any(node is site for node, _ in walk(expr))


def _terms(
    expr: Expr, is_apart: Callable[[Call], bool] = lambda _: True, negative: bool = False
) -> Iterator[Signed]:
    """The terms of nested sums: a - (b + c) → + a, - b, - c; of those that are taken apart."""
    if isinstance(expr, Call) and expr.operator.additive and is_apart(expr):
        for arg, sign in zip(expr.args, expr.operator.signs, strict=True):
            yield from _terms(arg, is_apart, negative != (sign < 0))
    else:
        yield negative, expr


def _loses_digits(terms: Iterable[Signed], whole: DType) -> bool:
    """Whether there are terms of both signs, in a type that is rounded."""
    signs = {minus != _is_negative(term) for minus, term in terms}
    return whole.kind in "fc" and len(signs) > 1


def _is_negative(expr: Expr) -> bool:
    """Whether a product has an odd number of negative numbers among its factors, as far as the text
    says."""
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


def _out(expr: Expr, site: Call, rules: _Rules) -> Expr | None:
    """`expr` with one of its sums multiplied out, as far as the products and sums around it are
    linear; None where that changes nothing, or a part is computed in another type than the whole.
    """
    whole = _computed_in(expr, site, rules)
    parts = rules.parts(site, whole)
    return _moved(expr, site, parts, whole, rules) if parts else None


def _moved(
    expr: Expr, site: Call, parts: tuple[Signed, ...], whole: DType, rules: _Rules
) -> Expr | None:
    """`expr` with a site's parts instead of it, as far out as they may be; no further than the sums
    around it where nothing around these is sparse: what they are multiplied by has no loops to save
    then."""
    around = next((sum_ for sum_ in reductions(expr) if _has(sum_, site)), None)
    if around is not None and around is not expr and not rules.is_sampled(expr, around):
        inner = _moved(around, site, parts, whole, rules)
        return None if inner is None else exchange(expr, around, inner)
    moved = _lifted(expr, site, parts, whole, rules)
    value = None if moved is None else _joined(moved, whole, rules)
    return None if value == expr else value


def _computed_in(expr: Expr, site: Call, rules: _Rules) -> DType:
    """The type that sums have around a site: its term's, where terms of that type are added up in
    the type of all of them without wrapping before, else that."""
    whole = expression_dtype(expr, rules.sizes.dtypes)
    own = expression_dtype(next(t for t in _outer_terms(expr) if _has(t, site)), rules.sizes.dtypes)
    return own if own.kind in "fc" else whole


def _lifted(
    expr: Expr, site: Call, terms: tuple[Signed, ...], whole: DType, rules: _Rules
) -> tuple[Signed, ...] | None:
    """The terms that `expr` becomes: one where the site ends inside of what is not linear in it.
    None where a product of one of them is of another type: `u` of int8 in `(B + u) * v` may have
    been real beside B, and `u * v` would wrap."""
    if expr is site:
        return terms
    below = children(expr)
    place = next(k for k, child in enumerate(below) if _has(child, site))
    parts = _lifted(below[place], site, terms, whole, rules)
    if parts is None:
        return None
    if isinstance(expr, Reduce) and rules.mixed and not _all_have(expr.index, parts):
        # a column that is full cancels, and a product with the index's size has lost its digits
        if len(parts) > 1:
            return _lifted_inside(expr, site, terms, whole, rules)
    elif _moves_through(expr, place):
        moved = tuple((minus, _with(expr, place, part, rules)) for minus, part in parts)
        same = expression_dtype(expr, rules.sizes.dtypes)
        return moved if all(rules.is_of(same, part) for _, part in moved) else None
    ended = _joined(parts, whole, rules)
    return None if ended is None else ((False, _with(expr, place, ended, rules)),)


def _lifted_inside(
    expr: Reduce, site: Call, terms: tuple[Signed, ...], whole: DType, rules: _Rules
) -> tuple[Signed, ...] | None:
    """A sum that multiplies out no further than the outermost sum inside it that has the site.

    sum(i, m[k] * sum(j, (A[i,j] + m[j]) * x[j]))
    → sum(i, m[k] * (sum(j, A[i,j] * x[j]) + sum(j, m[j] * x[j])))
    """
    inner = next((sum_ for sum_ in reductions(expr.body) if _has(sum_, site)), None)
    parts = None if inner is None else _lifted(inner, site, terms, whole, rules)
    joined = None if parts is None else _joined(parts, whole, rules)
    if inner is None or joined is None or joined == inner:
        return None
    return ((False, exchange(expr, inner, joined)),)


def _all_have(index: str, parts: Iterable[Signed]) -> bool:
    return all(index in free_indices(part) for _, part in parts)


def _moves_through(expr: Expr, place: int) -> bool:
    """Whether `expr` of a sum is the sum of `expr` of its terms."""
    if isinstance(expr, Reduce):
        return expr.operator.additive
    return isinstance(expr, Call) and not expr.operator.additive and expr.operator.linear[place]


def _with(expr: Expr, place: int, part: Expr, rules: _Rules) -> Expr:
    """`expr` with another of the expressions directly below it.

    A sum adds up one that has not its index as often as that has coordinates.
    """
    if isinstance(expr, Reduce):
        if expr.operator.additive and expr.index not in free_indices(part):
            often = rules.sizes.factor(expr.index, expression_dtype(expr, rules.sizes.dtypes))
            return Call(MUL, (often, part))
        return replace(expr, body=part)
    assert isinstance(expr, Call)
    return replace(expr, args=(*expr.args[:place], part, *expr.args[place + 1 :]))


def _joined(parts: tuple[Signed, ...], whole: DType, rules: _Rules) -> Expr | None:
    """The sum of terms; None where one is of another type than the whole."""
    (negative, first), *others = parts
    if others and not all(rules.is_of(whole, part) for _, part in parts):
        return None
    found: Expr = Call(NEG, (first,)) if negative else first
    for minus, part in others:
        found = Call(SUB if minus else ADD, (found, part))
    return found
