"""Splitting: what is better computed first, into a temporary tensor, than inside all loops.

Sums in products may be multiplied out before (`forms`), and divisors taken apart from products
(`quotients`) and sums (`divisors`). Six reasons to split a term off, each in a file of its own:

* a sum inside a product, or a term without an index of the result, would be computed again in every
  round of a loop it does not depend on (`hoist`);
* a sum over what a dense array stores outermost comes before its product (`sum_first`);
* a product of three or more operands has a cheaper order of pairwise contractions, as A·(B·x) is
  for A·B·x (`contract`);
* a sum has an integer or bool type that its accumulation in the result's type would not respect
  (`narrow`);
* a sum of many sparse terms, or a product of several such sums, has too many cases for one kernel
  (`in_turn`, `cases`);
* a product of dense tensors runs in register tiles only by itself, and of tensors alone (`tiles`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from codegen.names import Names
from taco_py.concrete.terms import map_terms, reductions, split_terms, sums_apart
from taco_py.cost.estimate import Statistics, result_size
from taco_py.cost.machine import GAIN
from taco_py.notation.checks import free_indices
from taco_py.notation.nodes import Access, Assignment, Expr
from taco_py.notation.tree import exchange
from taco_py.order.streams import innermost_sums
from taco_py.plan.algebra.divisors import as_factors, divide_last
from taco_py.plan.algebra.products import as_product, flatten, push_in
from taco_py.plan.costs import better_in_tiles, chain_cost, kernel_cost, merging
from taco_py.plan.ir.goal import SMALL, Request, real_statistics
from taco_py.plan.ir.index_sizes import Sizes
from taco_py.plan.ir.nodes import Operand, TakeSize
from taco_py.plan.rules.forms.multiply_out import Forms, cheapest_form
from taco_py.plan.rules.layout.store_temporary import store_well
from taco_py.plan.rules.needed.few_cases import few_cases
from taco_py.plan.rules.needed.narrow_sums import narrow_sums
from taco_py.plan.rules.needed.sum_in_chunks import sum_in_turn
from taco_py.plan.rules.split.contract import Path, contract
from taco_py.plan.rules.split.hoist_sum import hoist, hoist_term
from taco_py.plan.rules.split.split_dense_product import tiled_apart
from taco_py.plan.rules.split.sum_streamed_first import sum_first
from taco_py.plan.splitter import Splitter


@dataclass(frozen=True, slots=True)
class Split:
    """Assignments to compute in turn, the original target's last, and all their operands.

    notes  for each temporary why it is there
    sizes  the steps that take sizes before
    forms  which sums in products are multiplied out and which are not, and why
    rewritten  whether any are
    """

    assignments: tuple[Assignment, ...]
    operands: Mapping[str, Operand]
    notes: tuple[str, ...]
    sizes: tuple[TakeSize, ...] = ()
    forms: tuple[str, ...] = ()
    rewritten: bool = False


def split(
    assignment: Assignment,
    operands: Mapping[str, Operand],
    request: Request,
    names: Names,
    path: Path | None = None,
    pairs: bool = True,
) -> Split:
    """The assignment as a sequence of cheaper ones, or alone when it is best as a whole.

    path   the pairwise contractions of a single product, in einsum's numbering; chosen by cost
           where None
    pairs  False keeps products of any number of operands whole, and each sum around all of its own,
           but for those with too many cases
    """
    if path is not None or not pairs or request.forms is False:
        return _split(assignment, operands, request, names, path, pairs)
    sizes = Sizes.of(assignment, operands, names, request.sized)
    drafts = _Drafts(sizes.operands, request)
    asked = request.forms is True
    forms = cheapest_form(assignment, sizes, drafts.price, request.effort, asked, drafts.fill)
    parts = _split(sums_apart(forms.chosen), sizes.operands, request, names, None, True)
    told = (*forms.kept, *drafts.compared(assignment, forms))
    used = sizes.read_by(parts.assignments)
    return replace(parts, sizes=used, forms=told, rewritten=forms.chosen is not assignment)


@dataclass(slots=True)
class _Drafts:
    """The kernels that forms of an assignment are taken apart into, each form once."""

    operands: Mapping[str, Operand]
    request: Request
    known: dict[Assignment, Split] = field(default_factory=dict)

    def parts(self, form: Assignment) -> Split:
        if form not in self.known:
            names = Names((*self.operands, form.target.tensor))
            found = _split(sums_apart(form), self.operands, self.request, names, None, True)
            self.known[form] = found
        return self.known[form]

    def price(self, form: Assignment) -> float:
        """What all kernels of a form cost."""
        return cost_of(self.parts(form), self.request)

    def fill(self, term: Expr) -> float:
        """The share of its elements that a term is expected to store."""
        own = free_indices(term)
        if not own:
            return 1.0
        stats = self.request.statistics(Assignment(Access("", own), term), self.operands)
        return result_size(stats, term, own) / max(stats.volume(frozenset(own)), 1.0)

    def compared(self, assignment: Assignment, forms: Forms) -> Iterator[str]:
        """What the chosen form and the other one cost on the operands as large as they are."""
        if forms.other is None:
            return
        mine, its = (
            f"{cost_of(self.parts(form), self.request, real_statistics):.2g}"
            for form in (forms.chosen, forms.other)
        )
        small = self.request.statistics(assignment, self.operands).sizes
        if small != real_statistics(assignment, self.operands).sizes:
            its += f"; planned for sizes of {SMALL} and more"
        target = assignment.target.tensor
        if forms.chosen is assignment:
            what = f"left, about {mine} operations, multiplied out {its}"
        else:
            how = "multiplied out"
            if forms.counts:
                how = "over entries alone, with what is between them counted"
            what = f"{how}, about {mine} operations, as it is written {its}"
            if forms.differs:
                what += "; also a difference, most of whose elements have nothing to cancel"
        yield f"{target}: sums in products are {what}"


def cost_of(
    parts: Split,
    request: Request,
    known: Callable[[Assignment, Mapping[str, Operand]], Statistics] | None = None,
) -> float:
    """What kernels in turn cost, with the temporaries between them.

    known  what is known of the operands of an assignment; None for the request's
    """
    known = known or request.statistics
    *before, last = parts.assignments
    sizes = known(last, parts.operands).sizes
    splitter = Splitter(dict(parts.operands), request, Names(()), sizes, [], [], known)
    return chain_cost(splitter, before, last, each=kernel_cost) + merging(splitter, last)


def _split(
    assignment: Assignment,
    operands: Mapping[str, Operand],
    request: Request,
    names: Names,
    path: Path | None,
    pairs: bool,
) -> Split:
    known = request.statistics
    sizes = known(assignment, operands).sizes
    splitter = Splitter(dict(operands), request, names, sizes, [], [], known)
    value = few_cases(splitter, assignment.value)
    value = _in_steps(splitter, replace(assignment, value=value), path, pairs)
    value = map_terms(value, lambda term: hoist_term(splitter, assignment, term))
    value = few_cases(splitter, narrow_sums(splitter, value))
    value = sum_in_turn(splitter, value)
    last = replace(assignment, value=value)
    if pairs and request.forms is not False:
        last = _in_tiles(splitter, last)
    store_well(splitter, last)
    return Split((*splitter.made, last), splitter.operands, tuple(splitter.notes))


def _in_tiles(splitter: Splitter, last: Assignment) -> Assignment:
    """`last`, and before it all assignments made so far, with dense products in tiles apart."""
    before = tuple(zip(splitter.made, splitter.notes, strict=True))
    splitter.made, splitter.notes = [], []
    for part, note in before:
        type = splitter.operands[part.target.tensor].type
        splitter.made.append(_tiled(splitter, part, replace(splitter.request, type=type)))
        splitter.notes.append(note)
    return _tiled(splitter, last, splitter.request)


def _tiled(splitter: Splitter, part: Assignment, request: Request) -> Assignment:
    better = better_in_tiles(splitter, part, request)
    return tiled_apart(splitter, part, request) if better else part


def _in_steps(splitter: Splitter, assignment: Assignment, path: Path | None, pairs: bool) -> Expr:
    """The value of an assignment with what is better computed first in temporaries.

    y[i] = sum(j, A[i,j] * sum(k, B[j,k] * x[k])) / (sum(j, A[i,j]) + z[i])

    Divisors are taken apart from its products and sums, these are moved into factors, and what is
    left of it is hoisted and contracted. Sums that are no part of a term's product, as those of a
    quotient and those that are moved into a factor, come before it, each as the value of an
    assignment of its own.
    """
    free = pairs and path is None
    dtypes = splitter.dtypes
    value = map_terms(assignment.value, lambda term: flatten(term, dtypes))
    if free:
        value = map_terms(value, lambda term: as_factors(term, dtypes, splitter.is_full))
    value = map_terms(value, lambda term: divide_last(term, dtypes, splitter.is_full))
    if free:
        value = map_terms(value, lambda term: sum_first(splitter, assignment, term))
        value = map_terms(value, lambda term: _pushed_in(splitter, assignment, term))
    return map_terms(value, lambda term: _taken_apart(splitter, assignment, term, path, pairs))


def _taken_apart(
    splitter: Splitter, assignment: Assignment, term: Expr, path: Path | None, pairs: bool
) -> Expr:
    """The term with its inner sums hoisted, what these are of and itself contracted."""
    free = pairs and path is None
    for sum_ in reductions(split_terms(term)[0].body):
        own = Assignment(Access("", free_indices(sum_)), sum_)
        apart = _in_steps(splitter.computing(own), own, None, free)
        term = exchange(term, sum_, apart)
    term = hoist(splitter, assignment, term)
    return contract(splitter, assignment, term, path) if path is not None or pairs else term


def _pushed_in(splitter: Splitter, assignment: Assignment, expr: Expr) -> Expr:
    """The term with sums moved into factors: those that such an array stores innermost, where the
    loops run as one is stored, else all that may be. Those into a factor with all indices, whose
    loops are as many either way, stay where moving them clearly costs more.

    sum(j, k, T[i,j,k] * z[k])    as it is where T is stored in this order: its sum over j would be
                                  a matrix, made out of order
    """
    (term, *more) = split_terms(expr)
    only = None if more else innermost_sums(splitter.draft(assignment, expr), term)
    moved = push_in(expr, splitter.dtypes, only)
    if only is not None or moved is expr:
        return moved
    indices = set(free_indices(term.body))
    product = as_product(term.body, splitter.dtypes)
    factors = product.factors if product is not None else ()
    others = [i for f in factors if set(free_indices(f)) != indices for i in free_indices(f)]
    kept = push_in(expr, splitter.dtypes, set(others))
    if kept == moved:
        return moved

    def price(term: Expr) -> float:
        draft = splitter.drafting()
        last = replace(assignment, value=_taken_apart(draft, assignment, term, None, True))
        return chain_cost(draft, draft.made, last, each=kernel_cost)

    return kept if price(kept) * GAIN < price(moved) else moved
