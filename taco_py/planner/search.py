"""The search for a program: rules are tried in the order of the catalogue, what pays is taken.

    for each rule: for each site: before → after, taken where after · gain < before

Rules that compare many candidates (`multiply_out`, `push_sum_in`, `order_result`) ask the search
what a candidate becomes by the rules that follow, for only that tells its cost.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

from codegen.records import dataclass
from taco_py.compiler.concrete.inner_sums import distinct, exchange_equal
from taco_py.compiler.concrete.terms import reductions, split_terms, sums_apart
from taco_py.planner.context import Context
from taco_py.planner.ir.log import Entry
from taco_py.planner.ir.program import Program
from taco_py.planner.rules import catalogue
from taco_py.planner.rules.base import (
    Candidate,
    Outcome,
    Refusal,
    Rewrite,
    Rule,
    Site,
    Trait,
    terms,
)
from taco_py.planner.rules.catalogue import Entries, names_of
from taco_py.planner.temporaries import program_of_sum


@dataclass(frozen=True, slots=True)
class Search:
    """The catalogue as a procedure; it holds nothing and changes nothing but the log."""

    def split_result(self, program: Program, context: Context) -> Program:
        """Return the program with its result's assignment split, after the steps that it has
        before."""
        return program.spliced(self.split(program.only(program.result), context))

    def forms(self, program: Program, context: Context) -> Program:
        """Return the program in its cheapest form, after all rules that split assignments."""
        program = tried(catalogue.PRODUCTS, program, context)
        return self.split(program.only(program.result), context)

    def split(self, program: Program, context: Context) -> Program:
        """Return the program of one assignment after all rules that split assignments."""
        program = replace(
            program, sizes=context.of(program.last, program.facts, context.goal.machine).sizes
        )
        program = tried(catalogue.WHOLE, program, context)
        program = self._split_terms(program, context)
        return tried(catalogue.REST, program, context)

    def split_term(self, program: Program, context: Context) -> Program:
        """Return the program of one term after the rules that split terms."""
        (site,) = terms(program)
        return self._split_term(program, site, context)

    def _split_terms(self, program: Program, context: Context) -> Program:
        """Return the program with each term of its result's assignment split, and the sums inside
        it."""
        program = tried(catalogue.EXPRESSION, program, context)
        for site in terms(program):
            program = self._split_term(program, site, context)
        return program

    def _split_term(self, program: Program, site: Site, context: Context) -> Program:
        """Return the program with the inner sums of a term split, the innermost first, equal ones
        alike, then the term."""
        (first, *_) = split_terms(site.term(program))
        inside = _inside(context)
        for sum_ in distinct(reductions(first.body)):
            own = self._split_terms(program_of_sum(program, sum_), inside)
            program = program.with_parts(own)
            term = exchange_equal(site.term(program), sum_, own.last.value)
            program = _with_names_apart(site.put(program, term))
        for rule, _ in catalogue.TERM:
            program = tried_at(rule, program, site, context)
        return program


def _with_names_apart(program: Program) -> Program:
    """Return the program whose last assignment has no index of one sum in another one's beside
    it."""
    apart = sums_apart(program.last)
    return program if apart is program.last else program.with_assignment(apart)


def _inside(context: Context) -> Context:
    """Return the context for inner sums: a contraction order that was given is about the whole."""
    if context.goal.path is None:
        return context
    left_out = context.goal.left_out | names_of(Trait.FACTORS, Trait.KERNELS)
    return replace(context, goal=replace(context.goal, path=None, left_out=left_out))


def tried(entries: Entries, program: Program, context: Context) -> Program:
    """Return the program after rules in order, each at all of its sites."""
    for rule, _ in entries:
        for site in rule.sites(program) if rule.takes_part(context) else ():
            program = tried_at(rule, program, site, context)
    return program


def tried_at(rule: Rule, program: Program, site: Site, context: Context) -> Program:
    """Return the program after a rule at one site, or as it was where the rule is refused; in the
    log."""
    outcome = rule.apply(program, site, context) if rule.takes_part(context) else None
    if not isinstance(outcome, Generator):
        return _decided(rule, outcome, program, site, context)
    try:
        each = next(outcome)
        while True:
            program = _decided(rule, each, program, site, context)
            each = outcome.send(program)
    except StopIteration:
        return program


def _decided(
    rule: Rule, outcome: Outcome, program: Program, site: Site, context: Context
) -> Program:
    """Return the program after one outcome of a rule, which is put in the log."""
    match outcome:
        case None:
            return program
        case Refusal(why):
            context.log.add(Entry(rule.name, site.target, False, why))
            return program
        case Rewrite(changed, why):
            lost = _computed_again(program, changed)
            context.log.add(Entry(rule.name, site.target, not lost, lost or why))
            return program if lost else changed
        case Candidate():
            return _if_it_pays(rule, outcome, program, site, context)


def _if_it_pays(
    rule: Rule, candidate: Candidate, program: Program, site: Site, context: Context
) -> Program:
    """Return the program after a candidate where it is enough times cheaper, else as it was.

    The other way round where the goal reverses the decision.
    """
    before, after = candidate.before, candidate.after
    gain = candidate.gain or rule.gain
    pays = gain is None or gain.pays(before, after, context.goal.machine)
    decision = context.log.next_decision(rule.name, site.target)
    if pays is (decision in context.goal.reversed):
        context.log.decide(decision, Entry(rule.name, site.target, False, "", before, after))
        return program
    rewrite = candidate.rewrite()
    lost = _computed_again(program, rewrite.program)
    if lost:
        context.log.add(Entry(rule.name, site.target, False, lost))
        return program
    entry = Entry(rule.name, site.target, True, rewrite.why, before, after)
    context.log.decide(decision, entry)
    return rewrite.program


def _computed_again(before: Program, after: Program) -> str:
    """Say why a rewrite is not taken: it stores no more what is to be computed once; "" where it
    does.

    Rules know nothing of that: whatever one does with a tensor, it is refused here.
    """
    kept = {step.target for step in after.steps}
    lost = (s.target for s in before.steps if s.target in after.once and s.target not in kept)
    return next((f"{name} is compared with itself: it is stored, and read" for name in lost), "")
