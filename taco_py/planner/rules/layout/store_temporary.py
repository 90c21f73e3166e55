"""Store a temporary in the format that is cheapest for the kernels that make and read it.

    T[i,k] = sum(j, A[i,j] * B[j,k]);  y[i] = sum(k, T[i,k] * x[k])    T in ds, nearly full
    → the same with T in dd

Nobody asks for the format of a temporary, so that it is free. Beside the usual one, which a result
would have, there are

    dense            T is expected to be nearly full, or dense factors meet it
    ds:1,0 for ds    its readers walk it by columns: no copy is made
    ss for ds        most of its rows are expected to be empty
    ds for ss        its rows are looked up: no search, no copy
    unsorted rows    no reader relies on their order (of a kernel that meets columns in any order)

Each is compared by what all kernels around the temporary cost in their best loop orders.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from math import prod

from taco_py.compiler.concrete.terms import split_terms
from taco_py.language.formats import Format, dense
from taco_py.language.legal.absent import depends_on_presence, restricts
from taco_py.language.legal.stored import is_full, is_sparse
from taco_py.language.notation.checks import accesses, operand_names
from taco_py.language.notation.nodes import Access, Assignment, Expr
from taco_py.language.notation.operators import DIV
from taco_py.language.notation.tree import children, is_call_of
from taco_py.planner.algebra.rings import holds_zero
from taco_py.planner.context import Context
from taco_py.planner.ir.formats import COMPRESSED, DENSE
from taco_py.planner.ir.nodes import Operand
from taco_py.planner.ir.program import Program
from taco_py.planner.price import keeping
from taco_py.planner.rules.base import (
    Candidate,
    Gain,
    Numbers,
    Outcome,
    Phase,
    Rewrite,
    Rule,
    Site,
    temporaries,
)

REORDERED_MODES = 3
"""Modes up to which a temporary is considered in every order."""


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Store a temporary in the format with the cheapest kernels."""
    name = site.target
    usual = program.facts[name]
    part = program.define(name)
    readers = [define.assignment for define in program.readers(name)]
    options = tuple(_options(program, context, part.assignment, readers))
    if not options:
        return None
    before = _cost(program, context, part.assignment, readers, usual)
    costs = {
        form: _cost(program, context, part.assignment, readers, _stored(usual, form))
        for form in options
    }
    form = min(options, key=lambda option: costs[option])

    def rewrite() -> Rewrite:
        reason = (
            f"stored as {form}: about {costs[form]:.2g} operations instead of {before:.2g} as "
            f"{usual.type.format}"
        )
        stored = program.with_facts({name: _stored(usual, form)})
        return Rewrite(stored.noted(name, f"{part.note}; {reason}"), reason)

    return Candidate(before, costs[form], rewrite)


def _cost(
    program: Program,
    context: Context,
    part: Assignment,
    readers: Sequence[Assignment],
    stored: Operand,
) -> float:
    """Return the cost of the kernels that make and read a temporary in the type `stored`."""
    stored_program = program.with_facts({part.target.tensor: stored})
    kernels = (
        context.costs.kernel(stored_program, assignment, context) for assignment in (part, *readers)
    )
    return keeping(stored, context.goal.machine) + sum(kernels)


def _stored(usual: Operand, form: Format) -> Operand:
    return replace(usual, type=replace(usual.type, format=form))


# ---------------------------------------------------------------- candidates


def _options(
    program: Program, context: Context, part: Assignment, readers: Sequence[Assignment]
) -> Iterator[Format]:
    """Yield alternatives to the default format; none for scalars and among dense tensors only."""
    stored = program.facts[part.target.tensor]
    usual = stored.type.format
    tensors = {name for assignment in (part, *readers) for name in operand_names(assignment)}
    if not usual.order or all(is_full(program.facts[n].type.format) for n in tensors):
        return
    result = program.result_type.format
    free = is_full(result) or all(
        _adds_no_entries(program, context, part, reader) for reader in readers
    )
    small = prod(stored.shape) <= context.goal.machine.copies.dense_elements
    if is_sparse(usual) and free and small and not _is_asked_for(program, part, readers):
        yield dense(usual.order)
    looked_up = tuple(i for i in part.target.indices if _may_be_full(i, program.last, result))
    for form in _arranged(usual):
        root = part.target.indices[form.mode_order[0]]
        same = form.levels[0] == usual.levels[0] and form.mode_order[0] == usual.mode_order[0]
        if form != usual and (same or not form.levels[0].full or root in looked_up):
            yield form


def _is_asked_for(program: Program, part: Assignment, readers: Sequence[Assignment]) -> bool:
    """Tell whether a reader asks for the stored pattern of a temporary, which a dense one loses."""
    values, target = [reader.value for reader in readers], part.target
    if holds_zero(part.value, target, values, program.dtypes):
        return False
    return any(
        depends_on_presence(value, access)
        for value in values
        for access in accesses(value)
        if access.tensor == target.tensor
    )


def _adds_no_entries(
    program: Program, context: Context, part: Assignment, reader: Assignment
) -> bool:
    """Tell whether a sparse result gains few entries where a temporary is dense."""
    name, stored = part.target.tensor, program.facts[part.target.tensor]
    full = stored.nnz >= context.goal.machine.copies.full_share * prod(stored.shape)
    for term in split_terms(reader.value):
        walked = [
            set(access.indices)
            for access in accesses(term.body)
            if access.tensor != name
            and is_sparse(program.facts[access.tensor].type.format)
            and restricts(term.body, access)
        ]
        for access in _undivided(term.body):
            if access.tensor != name:
                continue
            if not full or not any(set(access.indices) <= indices for indices in walked):
                return False
    return True


def _undivided(expr: Expr) -> Iterator[Access]:
    """Yield the accesses outside of divisors."""
    if isinstance(expr, Access):
        yield expr
    divided = is_call_of(expr, DIV)
    for child in children(expr)[:1] if divided else children(expr):
        yield from _undivided(child)


def _may_be_full(index: str, last: Assignment, result: Format) -> bool:
    """Tell whether the result stores the same where a temporary has all coordinates of `index`."""
    if index not in last.target.indices:
        return True
    return result.levels[result.mode_order.index(last.target.indices.index(index))].full


def _arranged(usual: Format) -> Iterator[Format]:
    """Yield the format in every order of modes, with a dense and with a compressed root."""
    modes = range(usual.order)
    if usual.order <= REORDERED_MODES and (is_full(usual) or _by_rows(usual)):
        yield from (Format(usual.levels, order) for order in permutations(modes))
    if is_sparse(usual) and _by_rows(usual):
        root = COMPRESSED if usual.levels[0].full else DENSE
        yield replace(usual, levels=(root, *usual.levels[1:]))


def _by_rows(form: Format) -> bool:
    """Tell whether all levels but the root are compressed."""
    return form.order > 1 and all(level == COMPRESSED for level in form.levels[1:])


RULE = Rule("store_temporary", Phase.LAYOUT, apply, temporaries, Numbers.SPECIALS, gain=Gain.DETOUR)
