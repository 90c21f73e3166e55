"""Copy operands without empty rows into formats with a dense root, whose rows are looked up.

A matrix that stores no empty rows (DCSR, COO) is walked from its root; below a loop over another
operand its rows must be searched for among the other's coordinates. A copy with a dense root (CSR),
which shares coordinates and values with DCSR, has each row at hand:

    C[i,j] = A[i,k] * B[k,j], both in DCSR  →  for each k of a row of A, row k of a copy of B in CSR
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from codegen.names import Names
from taco_py.concrete.terms import split_terms
from taco_py.convert.convert import describe
from taco_py.cost.machine import Machine
from taco_py.formats import Format
from taco_py.notation.checks import accesses
from taco_py.notation.nodes import Access, Assignment
from taco_py.notation.tree import map_accesses
from taco_py.order.orders import best_order, needs_copy
from taco_py.plan.ir.formats import with_dense_root
from taco_py.plan.ir.goal import Request, draft_of, statistics
from taco_py.plan.ir.nodes import Operand, Reformat
from taco_py.plan.rules.base import Gain, Phase, Rule, StepsBefore, assignments, with_steps_before


def look_up_rows(
    assignment: Assignment, operands: Mapping[str, Operand], request: Request, names: Names
) -> StepsBefore | None:
    """Read copies with dense roots where looking rows up costs clearly less than searching."""
    copies: list[Reformat] = []
    machine = request.machine
    for access in dict.fromkeys(accesses(assignment)):
        source = operands[access.tensor]
        form = with_dense_root(source.type.format)
        if form is None or not _meets(assignment, access, form):
            continue
        target = names.fresh(f"{access.tensor}_rows")
        with_copy = {**operands, target: replace(source, type=replace(source.type, format=form))}
        changed = _reading(assignment, access, target)
        before, _ = _best(assignment, operands, request)
        after, copied = _best(changed, with_copy, request)
        after += rows_cost(source, form, machine)
        if target not in copied and after * machine.detour_gain < before:
            reason = f"its rows are looked up: {describe(source.type.format, form)}"
            index_dtype = source.type.index_dtype
            copies.append(Reformat(target, access.tensor, form, reason, index_dtype))
            assignment, operands = changed, with_copy
    return StepsBefore(assignment, operands, tuple(copies)) if copies else None


def _meets(assignment: Assignment, access: Access, form: Format) -> bool:
    """Whether another access has the index of the rows, so that they can be searched for."""
    row = access.indices[form.mode_order[0]]
    return any(row in a.indices for a in accesses(assignment) if a != access)


def rows_cost(source: Operand, form: Format, machine: Machine) -> float:
    """What a copy in `form` costs, which shares all but the root with anything but a list."""
    rows = machine.dense_root_row_steps * source.shape[form.mode_order[0]]
    entries = source.nnz if source.type.format.is_coo else 0.0
    return rows + machine.transposed_entry_steps * entries


def _reading(assignment: Assignment, old: Access, tensor: str) -> Assignment:
    """The assignment that reads `tensor` where it reads `old`."""

    def read(access: Access) -> Access:
        return replace(access, tensor=tensor) if access == old else access

    return replace(assignment, value=map_accesses(assignment.value, read))


def _best(
    assignment: Assignment, operands: Mapping[str, Operand], request: Request
) -> tuple[float, frozenset[str]]:
    """What the best loops cost with the copies that they need, and the tensors copied."""
    known = statistics(assignment, operands, request.machine)
    draft = draft_of(assignment, operands, request)
    cost, copied = 0.0, set[str]()
    for term in split_terms(assignment.value):
        best = best_order(draft, term, known, request.effort)
        cost += best.cost
        copied |= {a.tensor for a in accesses(term.body) if needs_copy(draft, term, a, best.order)}
    return cost, frozenset(copied)


RULE = Rule(
    "dense_root", Phase.LAYOUT, with_steps_before(look_up_rows), assignments, gain=Gain.DETOUR
)
