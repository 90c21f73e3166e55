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
        """Return the program with its result's assignment split, and the steps before it."""
        return program.spliced(self.split(program.only(program.result), context))

    def forms(self, program: Program, context: Context) -> Program:
        """Return the program in its cheapest form, after all rules that split assignments."""
        program = apply_rules(catalogue.PRODUCTS, program, context)
        return self.split(program.only(program.result), context)

    def split(self, program: Program, context: Context) -> Program:
        """Return the program of one assignment after all rules that split assignments."""
        program = replace(
            program, sizes=context.of(program.last, program.facts, context.goal.machine).sizes
        )
        program = apply_rules(catalogue.PROGRAM_RULES, program, context)
        program = self._split_terms(program, context)
        return apply_rules(catalogue.REST, program, context)

    def split_term(self, program: Program, context: Context) -> Program:
        """Return the program of one term after the rules that split terms."""
        (site,) = terms(program)
        return self._split_term(program, site, context)

    def _split_terms(self, program: Program, context: Context) -> Program:
        """Return the program with each term of its result's assignment split, and the sums inside
        it."""
        program = apply_rules(catalogue.EXPRESSION, program, context)
        for site in terms(program):
            program = self._split_term(program, site, context)
        return program

    def _split_term(self, program: Program, site: Site, context: Context) -> Program:
        """Return the program with a term and its inner sums split, the innermost first."""
        (first, *_) = split_terms(site.term(program))
        inside = _inside(context)
        for sum_ in distinct(reductions(first.body)):
            inner = self._split_terms(program_of_sum(program, sum_), inside)
            program = program.with_parts(inner)
            term = exchange_equal(site.term(program), sum_, inner.last.value)
            program = _rename_clashing(site.put(program, term))
        for rule, _ in catalogue.TERM:
            program = tried_at(rule, program, site, context)
        return program


def _rename_clashing(program: Program) -> Program:
    """Return the program whose last assignment has distinct index names in neighbouring sums."""
    renamed = sums_apart(program.last)
    return program if renamed is program.last else program.with_assignment(renamed)


def _inside(context: Context) -> Context:
    """Return the context for inner sums, without the user's contraction order."""
    if context.goal.path is None:
        return context
    left_out = context.goal.left_out | names_of(Trait.FACTORS, Trait.KERNELS)
    return replace(context, goal=replace(context.goal, path=None, left_out=left_out))


def apply_rules(entries: Entries, program: Program, context: Context) -> Program:
    """Return the program after rules in order, each at all of its sites."""
    for rule, _ in entries:
        for site in rule.sites(program) if rule.takes_part(context) else ():
            program = tried_at(rule, program, site, context)
    return program


def tried_at(rule: Rule, program: Program, site: Site, context: Context) -> Program:
    """Return the program after a rule at one site, unchanged where the rule is refused."""
    outcome = rule.apply(program, site, context) if rule.takes_part(context) else None
    if not isinstance(outcome, Generator):
        return _decided(rule, outcome, program, site, context)
    try:
        result = next(outcome)
        while True:
            program = _decided(rule, result, program, site, context)
            result = outcome.send(program)
    except StopIteration:
        return program


def _decided(
    rule: Rule, outcome: Outcome, program: Program, site: Site, context: Context
) -> Program:
    """Return the program after one outcome of a rule, and log the outcome."""
    match outcome:
        case None:
            return program
        case Refusal(why):
            context.log.add(Entry(rule.name, site.target, False, why))
            return program
        case Rewrite(changed, why):
            lost = _repeats_unique(program, changed)
            context.log.add(Entry(rule.name, site.target, not lost, lost or why))
            return program if lost else changed
        case Candidate():
            return _if_it_pays(rule, outcome, program, site, context)


def _if_it_pays(
    rule: Rule, candidate: Candidate, program: Program, site: Site, context: Context
) -> Program:
    """Return the program after a candidate that pays; else the unchanged program.

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
    lost = _repeats_unique(program, rewrite.program)
    if lost:
        context.log.add(Entry(rule.name, site.target, False, lost))
        return program
    entry = Entry(rule.name, site.target, True, rewrite.reason, before, after)
    context.log.decide(decision, entry)
    return rewrite.program


def _repeats_unique(before: Program, after: Program) -> str:
    """Explain why a rewrite is refused: it computes a unique tensor again; "" otherwise.

    Rules know nothing of that: whatever one does with a tensor, it is refused here.
    """
    targets = {step.target for step in after.steps}
    lost = (s.target for s in before.steps if s.target in after.unique and s.target not in targets)
    return next((f"{name} is compared with itself: it is stored, and read" for name in lost), "")
