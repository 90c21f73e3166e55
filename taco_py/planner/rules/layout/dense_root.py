"""Copy operands without empty rows into formats with a dense root, whose rows are looked up.

A matrix that stores no empty rows (DCSR, COO) is walked from its root; below a loop over another
operand its rows must be searched for among the other's coordinates. A copy with a dense root (CSR),
which shares coordinates and values with DCSR, has each row at hand:

    C[i,j] = sum(k, A[i,k] * B[k,j])    A and B in DCSR
    → B_rows is B in CSR;  C[i,j] = sum(k, A[i,k] * B_rows[k,j])
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from taco_py.compiler.concrete.terms import split_terms
from taco_py.compiler.cost.machine import Machine
from taco_py.compiler.order.orders import best_order, needs_copy
from taco_py.data.convert.convert import describe
from taco_py.language.formats import Format
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access, Assignment
from taco_py.planner.context import Context
from taco_py.planner.copies import read_copies
from taco_py.planner.ir.formats import with_dense_root
from taco_py.planner.ir.goal import Request, draft_of, statistics
from taco_py.planner.ir.nodes import Operand, Reformat
from taco_py.planner.ir.program import Program
from taco_py.planner.rules.base import Gain, Phase, Rule, Site, StepsBefore, Trials, assignments


def apply(program: Program, site: Site, context: Context) -> Trials:
    """Read copies with dense roots where looking rows up costs clearly less than searching."""
    for access in dict.fromkeys(accesses(program.define(site.target).assignment)):
        copy = _looked_up(program, site, context, access)
        if copy is not None:
            program = yield copy.outcome(program, site.target)


def _looked_up(
    program: Program, site: Site, context: Context, access: Access
) -> StepsBefore | None:
    """Return the assignment on a copy of one operand with a dense root; None where none can be
    read.
    """
    assignment, operands = program.define(site.target).assignment, program.facts
    source = operands[access.tensor]
    form = with_dense_root(source.type.format)
    if form is None or not _meets(assignment, access, form):
        return None
    request = context.request(program, site.target)
    target = program.fresh(f"{access.tensor}_rows")
    with_copy = {**operands, target: replace(source, type=replace(source.type, format=form))}
    assignment_ = replace(assignment, value=read_copies(assignment.value, {access: target}))
    before, _ = _best(assignment, operands, request)
    after, copied = _best(assignment_, with_copy, request)
    if target in copied:
        return None
    reason = f"its rows are looked up: {describe(source.type.format, form)}"
    copy = Reformat(target, access.tensor, form, reason, source.type.index_dtype)
    cost = rows_cost(source, form, request.machine)
    return StepsBefore(assignment_, with_copy, (copy,), reason, before, after + cost)


def _meets(assignment: Assignment, access: Access, form: Format) -> bool:
    """Tell whether another access has the row index, so that rows would be searched for."""
    row = access.indices[form.mode_order[0]]
    return any(row in a.indices for a in accesses(assignment) if a != access)


def rows_cost(source: Operand, form: Format, machine: Machine) -> float:
    """Return the cost of a copy in `form`, which shares all levels below the root if it can."""
    rows = machine.copies.dense_root_row_steps * source.shape[form.mode_order[0]]
    is_list = source.type.format.is_coo
    seconds = machine.calls.distribution_seconds if is_list else machine.calls.conversion_seconds
    entries = source.nnz if is_list else 0.0
    call = seconds / machine.step_seconds
    return call + rows + machine.copies.transposed_entry_steps * entries


def _best(
    assignment: Assignment, operands: Mapping[str, Operand], request: Request
) -> tuple[float, frozenset[str]]:
    """Return the cost of the best loops with their copies, and the copied tensors."""
    stats = statistics(assignment, operands, request.machine)
    draft = draft_of(assignment, operands, request)
    cost, copied = 0.0, set[str]()
    for term in split_terms(assignment.value):
        best = best_order(draft, term, stats, request.effort)
        cost += best.cost
        copied |= {a.tensor for a in accesses(term.body) if needs_copy(draft, term, a, best.order)}
    return cost, frozenset(copied)


RULE = Rule("dense_root", Phase.LAYOUT, apply, assignments, gain=Gain.DETOUR)
