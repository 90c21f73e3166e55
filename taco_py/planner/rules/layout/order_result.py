"""Order the modes of a sparse result as costs least, where nobody asks for an order.

Which indices are compressed follows from the operands; in which order they are stored does so only
as far as the operands agree. Where they do not, some must be copied, or the result is met out of
order, and the least of that decides:

    C[i,j] = A[i,j] + B[i,j]      A in ss with few entries, B in ss:1,0 with many  →  C in ss:1,0
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import permutations

from taco_py.language.formats import Format
from taco_py.language.legal.stored import is_full
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access, Assignment
from taco_py.planner.algebra.normalize import normal_form
from taco_py.planner.context import Context
from taco_py.planner.ir.goal import statistics
from taco_py.planner.ir.nodes import Operand
from taco_py.planner.ir.program import Program
from taco_py.planner.rules.base import (
    Candidate,
    Gain,
    Outcome,
    Phase,
    Refusal,
    Rewrite,
    Rule,
    Site,
    Trait,
    result,
)

REORDERED_MODES = 3
"""Modes up to which every order is compared."""


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Store a sparse result in the order of modes with the cheapest kernels.

    Orders are compared by the last kernel of the usual order's, and the best of them then by all
    kernels that are best for it.
    """
    usual = program.result_type.format
    formats = tuple(_other_formats(program.last, program.facts, usual))
    if not formats:
        return None
    original = program
    program = program.with_assignment(normal_form(program.last, program.facts))
    before = _split(program, context)
    context = replace(context, statistics_of=statistics)

    def last(program: Program) -> float:
        return context.costs.loops(program, program.last, context)

    prices = {form: last(_in(before, form)) for form in formats}
    form = min(formats, key=lambda other: prices[other])
    if prices[form] >= last(before):
        return Refusal(f"the last kernel costs no less than as {usual}")
    after = context.costs.in_loops(_split(_in(program, form), context), context)
    cost = context.costs.in_loops(before, context)
    reason = f"about {after:.2g} operations instead of {cost:.2g} as {usual}"
    stored = Rewrite(_in(original, form), f"{program.result} stored as {form}: {reason}")
    return Candidate(cost, after, lambda: stored)


def _other_formats(
    assignment: Assignment, operands: Mapping[str, Operand], usual: Format
) -> Iterator[Format]:
    """Yield the format in other orders of modes, with the same level for each index.

    None for dense results, for diagonals, and where all sparse operands store their indices alike.
    """
    if is_full(usual) or not 1 < usual.order <= REORDERED_MODES:
        return
    reads = tuple(accesses(assignment.value))
    if any(len(set(a.indices)) < operands[a.tensor].type.format.order for a in reads):
        return
    stored = {tuple(_as_stored(assignment, access, operands)) for access in reads}
    if sum(len(indices) > 1 for indices in stored) < 2:
        return
    level = dict(zip(usual.mode_order, usual.levels, strict=True))
    for order in permutations(range(usual.order)):
        levels = tuple(level[mode] for mode in order)
        if order != usual.mode_order and levels == usual.levels:
            yield Format(levels, order)


def _as_stored(
    assignment: Assignment, access: Access, operands: Mapping[str, Operand]
) -> Iterator[str]:
    """Yield the result's indices in the order in which a sparse operand stores them."""
    form = operands[access.tensor].type.format
    for mode in () if is_full(form) else form.mode_order:
        if access.indices[mode] in assignment.target.indices:
            yield access.indices[mode]


def _in(program: Program, form: Format) -> Program:
    """Return the program with its result stored in another format."""
    facts = program.facts[program.result]
    stored = replace(facts, type=replace(facts.type, format=form))
    return program.with_facts({program.result: stored})


def _split(program: Program, context: Context) -> Program:
    """Return the program after all rules that split it, with the sizes of its text."""
    split = context.following.forms(program, context.drafting)
    return replace(split, sizes=statistics(program.last, program.facts, context.goal.machine).sizes)


RULE = Rule(
    "order_result",
    Phase.LAYOUT,
    apply,
    result,
    gain=Gain.DETOUR,
    traits=Trait.INDICES | Trait.RESULT,
)
