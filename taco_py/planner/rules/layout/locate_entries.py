"""Locate the entries of sparse operands where another is walked, instead of merging both.

    y[i] = sum(j, A[i,j] * x[j])      A a coordinate list, x a sparse vector
    → x_at[j,u] of x[j];  y[i] = sum(j, sum(u, A[i,j] * x_at[j,u]))

Walking A and x together goes through x again for each row of A, and a list is sorted for it first.
In x_at each coordinate of x has its entries at hand, one or none: its levels are dense but for the
last, whose index u is 0. Unlike an array with zeros in between, it tells a stored zero from none,
which an infinity beside it needs; integers have none, and are read from such an array.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from codegen.names import Names
from taco_py.compiler.concrete.terms import map_terms, split_terms, summed
from taco_py.compiler.cost.machine import Machine
from taco_py.data.convert.locate import located_format
from taco_py.language.formats import dense
from taco_py.language.legal.stored import is_full, is_sparse
from taco_py.language.legal.types import has_special_values
from taco_py.language.notation.checks import accesses, all_indices
from taco_py.language.notation.dtypes import expression_dtype
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr
from taco_py.language.notation.tree import is_sum, map_accesses, walk
from taco_py.planner.context import Context
from taco_py.planner.copies import OnCopies
from taco_py.planner.ir.goal import statistics
from taco_py.planner.ir.nodes import Locate, Operand, Reformat
from taco_py.planner.ir.program import Program
from taco_py.planner.price import locating
from taco_py.planner.rules.base import (
    Candidate,
    Gain,
    Phase,
    Rewrite,
    Rule,
    Site,
    Trait,
    Trials,
    assignments,
)


def apply(program: Program, site: Site, context: Context) -> Trials:
    """Read copies in which entries are located where that costs clearly less than merging."""
    if not context.goal.look_up:
        return
    before = program
    draft = _as_it_is(program, site, context)
    able = [a for a in dict.fromkeys(accesses(draft.assignment)) if _may(draft, a)]
    for access in able:
        program = yield _located_in(program, site, context, (access,))
    if program is before and len(able) > 1:  # a list is sorted as long as one of them is merged
        yield _located_in(program, site, context, able)


def _as_it_is(program: Program, site: Site, context: Context) -> OnCopies:
    """Return the assignment at a site on its unchanged operands."""
    assignment = program.define(site.target).assignment
    return OnCopies(assignment, program.facts, context.request(program, site.target))


def _located_in(
    program: Program, site: Site, context: Context, looked_up: Sequence[Access]
) -> Candidate:
    """Return the assignment at a site on copies of operands in which their entries are located."""
    copies = before = _as_it_is(program, site, context)
    exact = _is_exact(program, site.target)
    cost, machine, names = 0.0, before.request.machine, Names(program.facts)
    for access in looked_up:
        source = copies.facts[access.tensor]
        cost += locating(source, machine)
        if not exact:
            cost += _asking(source, machine) * _lookups(copies.assignment, access, copies.facts)
        copies = (_from_array if exact else _one_by_one)(copies, access, names)
    cost += copies.loops_cost(statistics)
    merged = before.loops_cost(statistics)

    def rewrite() -> Rewrite:
        reason = (
            f"about {cost:.2g} operations where its entries are looked up, {merged:.2g} where they "
            "are merged with others"
        )
        return Rewrite(copies.put(program, site.target, reason), reason)

    return Candidate(merged, cost, rewrite)


def _from_array(before: OnCopies, access: Access, names: Names) -> OnCopies:
    """Return the assignment on a dense copy of an operand."""
    source, target = before.facts[access.tensor], names.fresh(f"{access.tensor}_at")
    full = _full(source)
    step = Reformat(target, access.tensor, full.type.format, "", source.type.index_dtype)
    assignment = _reading(before.assignment, access, replace(access, tensor=target))
    operands = {**before.facts, target: full}
    return OnCopies(assignment, operands, before.request, (*before.steps, step))


def _one_by_one(before: OnCopies, access: Access, names: Names) -> OnCopies:
    """Return the assignment on a copy that has a dense level above the entries of each
    coordinate.
    """
    source, target = before.facts[access.tensor], names.fresh(f"{access.tensor}_at")
    unit = Names(all_indices(before.assignment)).fresh("u")
    new = replace(access, tensor=target, indices=(*access.indices, unit))
    step = Locate(target, access.tensor, access.indices, "")
    assignment = _reading(before.assignment, access, new, unit)
    operands = {**before.facts, target: _located(source)}
    request = replace(before.request, static=(*before.request.static, (unit, 1)))
    return OnCopies(assignment, operands, request, (*before.steps, step))


def _is_exact(program: Program, target: str) -> bool:
    """Tell whether a product with 0 is always 0: of integers and booleans. A stored zero is another
    thing than none where that is asked, and where results list what is stored.
    """
    value = program.define(target).assignment.value
    asking = (define.assignment.value for define in program.defines)
    values = [value] if program.is_full(target) else [value, *asking]
    if any(
        isinstance(e, Call) and e.operator.at_absent for define in values for e, _ in walk(define)
    ):
        return False
    lists = not program.is_full(target) and not all(map(program.is_full, program.results))
    return not lists and not has_special_values(expression_dtype(value, program.dtypes))


def _may(on: OnCopies, access: Access) -> bool:
    """Tell whether an operand may be looked up in loops over other operands."""
    assignment, operands = on.assignment, on.facts
    source, result = operands[access.tensor], on.request.type.format
    if is_full(source.type.format) or prod(source.shape) > on.request.machine.copies.dense_elements:
        return False
    other_accesses = [
        a for a in accesses(assignment) if a != access and is_sparse(operands[a.tensor].type.format)
    ]
    walked = {index for other in other_accesses for index in other.indices}
    if not walked.issuperset(access.indices):
        return False
    stored = {} if is_full(result) else result.stored(assignment.target.indices)
    if any(index in access.indices for index in stored):
        return False
    return all(_is_linear(term.body, access) for term in split_terms(assignment.value))


def _is_linear(expr: Expr, access: Access) -> bool:
    """Tell whether an expression is linear in `access`: a product with it or a quotient of it."""
    if access not in accesses(expr) or expr == access:
        return True
    if not isinstance(expr, Call) or expr.operator.additive:
        return False
    with_it = [place for place, arg in enumerate(expr.args) if access in accesses(arg)]
    return len(with_it) == 1 and all(
        expr.operator.linear[place] and _is_linear(expr.args[place], access) for place in with_it
    )


def _full(source: Operand) -> Operand:
    """Return the operand as a dense array."""
    form = dense(len(source.shape))
    return replace(source, type=replace(source.type, format=form), entries=None)


def _located(source: Operand) -> Operand:
    type = replace(source.type, format=located_format(len(source.shape)))
    return replace(source, type=type, shape=(*source.shape, 1), entries=None)


def _asking(source: Operand, machine: Machine) -> float:
    """Return the cost of testing whether an entry is present."""
    fraction = min(1.0, source.nnz / max(1, prod(source.shape)))
    return machine.loops.misprediction_steps * min(fraction, 1.0 - fraction)


def _lookups(assignment: Assignment, access: Access, operands: Mapping[str, Operand]) -> float:
    """Return the number of lookups of an operand."""
    full = {**operands, access.tensor: _full(operands[access.tensor])}
    stats = statistics(assignment, full)
    terms = (term for term in split_terms(assignment.value) if access in accesses(term.body))
    return sum(
        stats.iterations(t.body, frozenset(i for a in accesses(t.body) for i in a.indices))
        for t in terms
    )


def _reading(assignment: Assignment, old: Access, new: Access, unit: str = "") -> Assignment:
    """Return the assignment that reads `new` where it reads `old`, summed over its index `unit`."""

    def read(term: Expr) -> Expr:
        if old not in accesses(term):
            return term
        term_ = map_accesses(term, lambda access: new if access == old else access)
        return _innermost(term_, unit) if unit else term_

    return replace(assignment, value=map_terms(assignment.value, read))


def _innermost(expr: Expr, index: str) -> Expr:
    """Return the term with one more sum, inside its other sums."""
    if is_sum(expr):
        return replace(expr, body=_innermost(expr.body, index))
    return summed(expr, (index,))


RULE = Rule(
    "locate_entries", Phase.LAYOUT, apply, assignments, gain=Gain.DETOUR, traits=Trait.WALKS
)
