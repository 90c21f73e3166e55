"""Hoist a sum inside a product out of the loops that would repeat it.

    y[i] = sum(j, A[i,j] * sum(k, B[j,k]))
    → T[j] = sum(k, B[j,k]);  y[i] = sum(j, A[i,j] * T[j])

The sum comes with what is around it where that is sparse and costs less (`hoist_around_sum`). Sums
that are equal but for the names of their own indices are computed once:

    y[i] = (b[i] - sum(j, A[i,j])) * (b[i] - sum(k, A[i,k]))
    → T[i] = sum(j, A[i,j]);  y[i] = (b[i] - T[i]) * (b[i] - T[i])
"""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

from codegen.records import dataclass
from taco_py.compiler.concrete.inner_sums import (
    around_loose,
    equal_sums,
    exchange_equal,
    loose_sums,
)
from taco_py.compiler.concrete.terms import Term, reductions, split_terms
from taco_py.compiler.cost.estimate import Statistics, result_size
from taco_py.compiler.order.orders import best_order
from taco_py.language.legal.stored import is_full
from taco_py.language.notation.checks import accesses, free_indices
from taco_py.language.notation.nodes import Access, Assignment, Expr, Reduce
from taco_py.language.problem import Problem
from taco_py.planner.context import Context
from taco_py.planner.ir.program import Program
from taco_py.planner.price import copy_cost, term_cost
from taco_py.planner.rules.base import (
    Candidate,
    Gain,
    Numbers,
    Phase,
    Rewrite,
    Rule,
    Site,
    Trials,
    terms,
)
from taco_py.planner.rules.split.hoist_around_sum import around_sum
from taco_py.planner.temporaries import where_asked, with_temporary


def apply(program: Program, site: Site, context: Context) -> Trials:
    """Compute each inner sum of a term first that outer loops would repeat."""
    expr = site.term(program)
    (term, *more) = split_terms(expr)
    inner = tuple(reductions(term.body))
    if more or not inner:
        return
    loops = _Loops.of(program, context, expr, term)
    for sum_ in inner:
        before = program
        for candidate in (around_sum, loops.repeated, _cheaper_first):
            if any(sum_ is other for other in _inner(site.term(program))):
                program = yield candidate(program, site, context, sum_)
            if program is not before:
                break


def _hoisted(program: Program, site: Site, context: Context, sum_: Reduce, reason: str) -> Rewrite:
    """Return the program with an inner sum of a term, and equal ones, in a temporary."""
    value = where_asked(program, site.term(program), sum_)
    program, access = with_temporary(program, context, value, free_indices(sum_), reason)
    return Rewrite(site.put(program, exchange_equal(site.term(program), sum_, access)), reason)


@dataclass(frozen=True, slots=True)
class _Loops:
    """The best loops of a term with inner sums.

    order   of the loops
    shared  how many of them, from the outermost, run over the result's indices: around all sums
    """

    program: Program
    context: Context
    term: Term
    problem: Problem
    stats: Statistics
    order: tuple[str, ...]
    shared: int

    @staticmethod
    def of(program: Program, context: Context, expr: Expr, term: Term) -> _Loops:
        """Return the best loops of `expr`, whose only term is `term`."""
        stats = context.statistics(program, expr)
        problem = program.problem(program.last, expr)
        order = best_order(problem, term, stats, context.effort).order
        shared = len(tuple(takewhile(program.last.target.indices.__contains__, order)))
        return _Loops(program, context, term, problem, stats, order, shared)

    def repeated(self, program: Program, site: Site, context: Context, sum_: Reduce) -> Candidate:
        """Return the candidate of an inner sum computed first, priced by iterations."""
        sum_indices = frozenset(i for a in accesses(sum_) for i in a.indices)
        needs = free_indices(sum_)
        depth = max((self.order.index(i) + 1 for i in needs), default=0)
        depth = max(depth, self.shared)
        equal = tuple(equal_sums(self.term.body, sum_))
        bound = frozenset(self.order[:depth]) | sum_indices
        inside = self.stats.iterations(self.term.body, bound)
        if len(needs) > 1 and any(sum_ is loose for loose in loose_sums(self.term.body)):
            outer_part = around_loose(self.term.body, (sum_,))
            inside = min(inside, self.stats.iterations(outer_part, bound))
        alone = self.stats.iterations(sum_.body, sum_indices)
        alone += self.stats.machine.copies.temporary_entry_steps * result_size(
            self.stats, sum_, needs
        )
        effort = self.context.effort
        copies = copy_cost(self.stats, self.problem, self.term, effort, accesses(sum_))
        if copies:
            inside += copies
            alone += self._copies_alone(sum_)
        repeating = tuple(index for index in self.order[:depth] if index not in needs)
        reason = "by itself, this sum needs no copies of operands in another order, or fewer"
        if len(equal) > 1:
            reason = f"this sum occurs {len(equal)} times, and is computed once"
        if repeating:
            reason = (
                f"this sum does not depend on {','.join(repeating)}, whose loop would repeat it"
            )
        return Candidate(inside, alone, lambda: _hoisted(program, site, context, sum_, reason))

    def _copies_alone(self, sum_: Reduce) -> float:
        """Return the price of the copies that a sum needs when it is computed alone."""
        (term, *more) = split_terms(sum_)
        if more:
            return 0.0
        part = Assignment(Access("", free_indices(sum_)), sum_)
        form = self.program.usual_format(part)
        problem = self.program.problem(part, sum_)
        problem = replace(problem, result=replace(problem.result, format=form))
        return copy_cost(self.stats, problem, term, self.context.effort)


def _cheaper_first(program: Program, site: Site, context: Context, sum_: Reduce) -> Candidate:
    """Return the candidate of an inner sum computed first, priced by both programs.

    Operands are taken as large as they are where they are not taken for larger: a kernel over tiny
    temporaries is compared with one over the operands that they are made from.
    """
    expr = site.term(program)
    (term,) = split_terms(expr)
    draft, priced = context.real(program, expr)
    if context.statistics(program, expr).sizes != priced.statistics(draft, expr).sizes:
        draft, priced = program, context
    problem, stats = draft.problem(draft.last, expr), priced.statistics(draft, expr)
    one = term_cost(problem, term, stats, context.effort)
    draft = draft.only_of(draft.last)
    draft, access = with_temporary(draft, priced, sum_, free_indices(sum_), "")
    last = replace(draft.last, value=exchange_equal(expr, sum_, access))
    two = priced.costs.in_loops(draft.with_assignment(last), priced)
    dense = is_full(draft.facts[access.tensor].type.format)
    reason = f"about {two:.2g} operations instead of {one:.2g} in loops around this sum"
    return Candidate(
        one,
        two,
        lambda: _hoisted(program, site, context, sum_, reason),
        Gain.DENSE if dense else Gain.DETOUR,
    )


def _inner(expr: Expr) -> tuple[Reduce, ...]:
    """Return the sums inside a term."""
    (term,) = split_terms(expr)
    return tuple(reductions(term.body))


RULE = Rule("hoist_sum", Phase.SPLIT, apply, terms, Numbers.SPECIALS, Gain.DETOUR)
