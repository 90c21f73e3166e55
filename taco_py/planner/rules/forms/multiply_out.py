"""Multiply sums in products out where all kernels then cost clearly less.

    y[i] = sum(k, (sum(j, A[i,j] * B[j,k]) + C[i,k]) * x[k])
    → y[i] = sum(k, sum(j, A[i,j] * B[j,k]) * x[k]) + sum(k, C[i,k] * x[k])

which is A·(B·x) + C·x where A·B was made before. Sums move through divisors too,

    y[i] = sum(j, (A[i,j] + m[j]) / s[j] * x[j])
    → y_0[i] = sum(j, A[i,j] / s[j] * x[j]) + sum(j, m[j] / s[j] * x[j])

and last of all y[i] = corrected(y_0[i], y_0[i], sum(j, (A[i,j] + m[j]) / s[j] * x[j])): what is
NaN, as 3 / 0 - 1 / 0 is, is computed as it is written.

Each sum may be multiplied out or left, as in the rewrites of Ahrens et al. 2022, section 7; the
forms are compared by what all their kernels cost. Sums over a sparse operand's entries, with the
elements between counted (`gaps`), are forms too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, replace
from itertools import islice

import numpy as np

from codegen.names import Names
from codegen.records import dataclass
from taco_py.compiler.concrete.terms import Term, map_terms, reductions, split_terms, sums_apart
from taco_py.compiler.cost.effort import Effort
from taco_py.compiler.cost.estimate import result_size
from taco_py.compiler.schedule.distribute import count_terms, is_taken, multiplied
from taco_py.language.legal.stored import is_full
from taco_py.language.legal.types import is_real
from taco_py.language.notation.checks import free_indices
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Reduce
from taco_py.language.notation.operators import CORRECTED
from taco_py.language.notation.printer import to_text
from taco_py.language.notation.tree import exchange, walk
from taco_py.planner.algebra.distribution import (
    FAR_CHEAPER,
    Rules,
    computed_in,
    divided_sums,
    has,
    loses_digits,
    moved_out,
    multiplied_out,
    sites,
    squared_sums,
)
from taco_py.planner.algebra.gaps import is_over_entries, without_gaps
from taco_py.planner.algebra.products import nest
from taco_py.planner.context import Context
from taco_py.planner.ir.goal import LEAST_SIZE, real_statistics
from taco_py.planner.ir.index_sizes import Sizes
from taco_py.planner.ir.program import Program
from taco_py.planner.price import merging
from taco_py.planner.rules.base import (
    Gain,
    Numbers,
    Outcome,
    Phase,
    Refusal,
    Rewrite,
    Rule,
    Site,
    Trait,
    result,
)

MOST_TERMS = 8
"""Terms up to which an assignment is multiplied out."""

FORMS_AT_ONCE = 6
"""Forms whose prices are compared at a time."""

FURTHER_ROUNDS = 3
"""Sums that are multiplied out after the first, at most."""

NOT_ALLOWED = 'and these may cancel; allow=("cancellation",) does it where that is cheaper'
Price = Callable[[Assignment], float]


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Choose the form of an assignment whose kernels cost least, after all rules that split it."""
    assignment = program.last
    names = Names(program.facts)
    sizes = Sizes.of(assignment, program.facts, names, context.goal.sized)
    drafts = _Drafts(program.only(program.result), sizes, context.drafting)
    type = program.result_type
    rules = Rules(
        sizes,
        drafts.fill,
        context.goal.machine,
        divided=is_full(type.format) and is_real(np.dtype(type.dtype)),
        squared=squared_sums(assignment.value),
    )
    is_forced, allowed = context.goal.forms is True, "cancellation" in context.goal.allow
    forms = cheapest_form(assignment, rules, drafts.price, context.effort, is_forced, allowed)
    reason = "\n".join((*forms.reasons, *drafts.compared(assignment, forms)))
    if forms.best is assignment:
        return Refusal(reason) if reason else None
    steps = tuple(sizes.steps.values())
    program = program.before(program.result, steps, sizes.operands)
    separate = sums_apart(forms.best)
    if len(divided_sums(assignment.value)) > len(divided_sums(forms.best.value)):
        return Rewrite(
            program.corrected(separate.value, _where_nan(assignment.value), reason), reason
        )
    return Rewrite(program.with_assignment(separate), reason)


def _where_nan(original: Expr) -> Callable[[Access], Expr]:
    """Return the correction that recomputes elements where divisors of 0 make NaN.

    Nothing is as large as NaN, not even NaN itself.
    """
    return lambda result: Call(CORRECTED, (result, result, original))


@dataclass(frozen=True, slots=True)
class _Drafts:
    """Programs of the forms of an assignment, each split once."""

    before: Program
    sizes: Sizes
    context: Context
    split: dict[Assignment, Program] = field(default_factory=dict)

    def program(self, form: Assignment) -> Program:
        """Return the program of a form before it is split."""
        sized = self.before.with_facts(self.sizes.operands)
        return sized.with_assignment(sums_apart(form))

    def parts(self, form: Assignment) -> Program:
        """Return the program of a form after all rules that split it."""
        if form not in self.split:
            self.split[form] = self.context.following.split(self.program(form), self.context)
        return self.split[form]

    def price(self, form: Assignment) -> float:
        """Return the price of all kernels of a form."""
        return cost_of(self.parts(form), self.context)

    def real(self, form: Assignment) -> float:
        """Return the price of a form on the actual operands."""
        return cost_of(self.parts(form), replace(self.context, statistics_of=real_statistics))

    def fill(self, term: Expr) -> float:
        """Return the expected fraction of stored elements of a term."""
        indices = free_indices(term)
        if not indices:
            return 1.0
        facts = self.sizes.operands
        stats = self.context.goal.statistics(Assignment(Access("", indices), term), facts)
        return result_size(stats, term, indices) / max(stats.volume(frozenset(indices)), 1.0)

    def compared(self, assignment: Assignment, forms: Forms) -> Iterator[str]:
        """Yield the prices of the chosen form and of its alternative on the actual operands."""
        if forms.other is None:
            return
        mine, its = (f"{self.real(form):.2g}" for form in (forms.best, forms.other))
        facts = self.sizes.operands
        small = self.context.goal.statistics(assignment, facts).sizes
        if small != real_statistics(assignment, facts, self.context.goal.machine).sizes:
            its += f"; planned for sizes of {LEAST_SIZE} and more"
        target = assignment.target.tensor
        if forms.best is assignment:
            what = f"left, about {mine} operations, multiplied out {its}"
        else:
            form_text = "multiplied out"
            if forms.counts:
                form_text = "over entries alone, with what is between them counted"
            what = f"{form_text}, about {mine} operations, as it is written {its}"
            if forms.differs:
                what += "; also a difference, most of whose elements have nothing to cancel"
        yield f"{target}: sums in products are {what}"


def cost_of(program: Program, context: Context) -> float:
    """Return the price of a program, with the price of merging the terms of a sparse result."""
    last = program.last
    sizes = context.of(last, program.facts, context.goal.machine).sizes
    program = replace(program, sizes=sizes)
    return context.costs.program(program, context) + merging(program, context)


@dataclass(frozen=True, slots=True)
class Forms:
    """The form that was chosen, and the one that it was compared with, None where there is none.

    reasons  the differences that are left in their products, and why
    differs  whether differences of sparse and full terms are multiplied out
    """

    best: Assignment
    other: Assignment | None
    reasons: tuple[str, ...]
    differs: bool = False

    @property
    def counts(self) -> bool:
        """Tell whether the form sums entries alone and counts the elements between them."""
        return any(is_over_entries(node) for node, _ in walk(self.best.value))


def cheapest_form(
    assignment: Assignment,
    rules: Rules,
    price: Price,
    effort: Effort,
    is_forced: bool = False,
    allowed: bool = True,
) -> Forms:
    """Return the assignment in its cheapest form: multiplied out, or over entries alone.

    rules  has the types of all operands; the sizes that the form needs are added to it
    price  what all kernels of an assignment are expected to cost
    is_forced  whether they are to be multiplied out, whatever it costs
    allowed  whether digits of differences may cancel
    """
    gain = rules.machine.copies.detour_gain
    best = _cheaper(assignment, rules, price, effort)
    form = assignment
    if best is not None and (is_forced or price(best) * gain < price(assignment)):
        form = best
    bases: tuple[Assignment, ...] = (form,)
    over = assignment if is_forced else without_gaps(assignment, rules.sizes)
    if over is not assignment:
        more = _cheaper(over, rules, price, effort)
        over = more if more is not None and price(more) * gain < price(over) else over
        counts = price(over) * gain < price(form)
        bases, form = ((over,), over) if counts else ((over, form), form)
    for base in bases:
        if not allowed:
            reason = NOT_ALLOWED
            break
        differences, reason = _differences_out(base, form, rules, price, effort)
        if differences is not None:
            reasons = tuple(dict.fromkeys(_explain_kept(differences, assignment, rules, reason)))
            return Forms(differences, assignment, reasons, True)
    reasons = tuple(dict.fromkeys(_explain_kept(assignment, assignment, rules, reason)))
    other = best if form is assignment else assignment
    return Forms(form, other, reasons)


def _cheaper(
    assignment: Assignment, rules: Rules, price: Price, effort: Effort
) -> Assignment | None:
    """Return the cheapest form with any sum multiplied out that loses no digits."""
    forms = (
        *_single_steps(assignment, rules),
        *_everywhere(assignment, rules),
        *_nested(assignment, rules),
        *_inside(assignment, rules),
    )
    prices = _priced(forms, price, effort)
    if not prices:
        return None
    best = min(prices, key=prices.__getitem__)
    for _ in range(FURTHER_ROUNDS):
        more = _priced(_single_steps(best, rules), price, effort)
        if not more or min(more.values()) >= price(best):
            break
        best = min(more, key=more.__getitem__)
    return best


def _differences_out(
    assignment: Assignment, current: Assignment, rules: Rules, price: Price, effort: Effort
) -> tuple[Assignment | None, str]:
    """Return the form with differences of sparse and full terms multiplied out, if far cheaper."""
    mixed = replace(rules, mixed=True)
    forms = (
        *_everywhere(assignment, mixed, least=1),
        *_nested(assignment, mixed, least=1),
        *_inside(assignment, mixed),
    )
    prices = _priced(forms, price, effort)
    if prices:
        form = min(prices, key=prices.__getitem__)
        form = _cheaper(form, rules, price, effort) or form
        over = without_gaps(form, rules.sizes)
        form = over if price(over) * rules.machine.copies.detour_gain < price(form) else form
        if price(form) * FAR_CHEAPER <= price(current):
            return form, ""
    if effort.over:
        return None, "and no time was left to compare"
    if any(next(_taken_out(form, mixed), None) for form in prices or (assignment,)):
        return None, f"and it would be a sum of more than {MOST_TERMS} terms"
    return None, f"and no form compared takes {FAR_CHEAPER} times fewer operations"


def _priced(options: Iterable[Assignment], price: Price, effort: Effort) -> dict[Assignment, float]:
    """Return the prices of the first few forms, as far as time allows."""
    prices: dict[Assignment, float] = {}
    for option in dict.fromkeys(islice(options, FORMS_AT_ONCE)):
        if effort.over:
            effort.cut("before all sums that may be were multiplied out")
            break
        prices[option] = price(option)
    return prices


def _single_steps(assignment: Assignment, rules: Rules) -> Iterator[Assignment]:
    """Yield the assignment with one of its sums multiplied out, for each such sum."""
    for form in _taken_out(assignment, rules):
        if len(split_terms(form.value)) <= MOST_TERMS:
            yield form


def _taken_out(assignment: Assignment, rules: Rules) -> Iterator[Assignment]:
    """Yield the assignment with one sum multiplied out, whatever its number of terms."""
    for site in sites(assignment.value):
        value = multiplied_out(assignment.value, site, rules)
        if value is not None:
            yield replace(assignment, value=value)


def _everywhere(assignment: Assignment, rules: Rules, least: int = 2) -> Iterator[Assignment]:
    """Yield the assignment with all of its several sums multiplied out."""
    forms: list[Assignment] = []
    for _ in range(MOST_TERMS):
        option = next(_single_steps(forms[-1] if forms else assignment, rules), None)
        if option is None:
            break
        forms.append(option)
    yield from forms[least - 1 :][-1:]


def _nested(assignment: Assignment, rules: Rules, least: int = 2) -> Iterator[Assignment]:
    """Yield the assignment with nested sums, all multiplied out."""
    base = next(_everywhere(assignment, rules, least=1), assignment)
    left = (rules.parts(site, computed_in(base.value, site, rules)) for site in sites(base.value))
    if any(left) and len(split_terms(base.value)) < MOST_TERMS:
        yield from _everywhere(replace(assignment, value=_nest(assignment, rules)), rules, least)


def _nest(assignment: Assignment, rules: Rules) -> Expr:
    """Return the value with each sum around only the factors with its index."""
    sizes = rules.sizes
    return map_terms(assignment.value, lambda term: nest(term, sizes.dtypes, sizes.size))


def _inside(assignment: Assignment, rules: Rules) -> Iterator[Assignment]:
    """Yield the assignment with nested sums that are multiplied out only inside themselves.

    s = sum(i, sum(a, (X[i,a] - m[a]) * v[a]) * sum(b, (X[i,b] - m[b]) * v[b]))
    → s = sum(i, (sum(a, X[i,a] * v[a]) - sum(a, m[a] * v[a])) * (…))
    """

    def taken_out(term: Expr) -> Expr:
        inner = tuple(reductions(split_terms(term)[0].body))
        values = [_alone(sum_, rules) for sum_ in inner]
        several = len(inner) - values.count(None) > 1
        for sum_, value in zip(inner, values, strict=True):
            new = value if several else map_terms(sum_, taken_out)
            term = term if new is None else exchange(term, sum_, new)
        return term

    nested = _nest(assignment, rules)
    value = map_terms(nested, taken_out)
    if value != nested:
        yield replace(assignment, value=value)


def _alone(sum_: Reduce, rules: Rules) -> Expr | None:
    """Return a sum multiplied out inside, as the value of an assignment of its own."""
    assignment = Assignment(Access("", free_indices(sum_)), sum_)
    return next((form.value for form in _everywhere(assignment, rules, least=1)), None)


def _explain_kept(
    assignment: Assignment, text: Assignment, rules: Rules, mixed: str
) -> Iterator[str]:
    """Yield the differences of the text that stay in their products, with the reason."""
    sites_of_text = {site: site for site in sites(text.value)}
    for site in sites(assignment.value):
        dtype = computed_in(assignment.value, site, rules)
        terms = rules.terms(site, dtype)
        lossy = rules.loses_digits(site, terms, dtype)
        if site not in sites_of_text or not lossy or not rules.is_of(dtype, site):
            continue
        if moved_out(assignment.value, site, terms, dtype, rules) is None:
            continue
        kind = "differences" if loses_digits(terms, dtype) else "squares of sums"
        reason = f"{kind} keep digits that those of products lose"
        mixed_form = moved_out(assignment.value, site, terms, dtype, replace(rules, mixed=True))
        if rules.is_mixed(site, dtype) and mixed_form is not None:
            reason += f", {mixed}"
        term = next(t for t in split_terms(text.value) if has(t.body, sites_of_text[site]))
        if _is_distributed(term, site):
            reason += "; distribute(…) does it"
        yield f"{to_text(site)} is not multiplied out: {reason}"


def _is_distributed(term: Term, site: Call) -> bool:
    """Tell whether `distribute` of a term splits a site."""
    if count_terms(term.body) > MOST_TERMS or not is_taken(term):
        return False
    return not any(site == node for _, part in multiplied(term.body) for node, _ in walk(part))


RULE = Rule(
    "multiply_out",
    Phase.FORMS,
    apply,
    result,
    Numbers.ROUNDS | Numbers.SPECIALS,
    gain=Gain.DETOUR,
    traits=Trait.SUMS | Trait.FACTORS,
)
