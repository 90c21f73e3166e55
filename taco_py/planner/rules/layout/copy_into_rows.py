"""Copy dense tensors beside sparse ones so that the innermost loop runs along their rows.

    Y[r,i] = sum(j, X[i,j] * H[r,j])
    → H_jr is H stored as j,r;  Y[r,i] = sum(j, X[i,j] * H_jr[r,j])    stored as i,r

A loop over an index that no sparse operand has can be the innermost one, and runs in vectors where
every array stores that index last. Operands that store it elsewhere are copied before, and a dense
result after, where loops and copies together are expected to cost clearly less than loops on the
arrays as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod

import numpy as np

from codegen.names import Names
from codegen.records import dataclass
from taco_py.compiler.cost.machine import Machine
from taco_py.language.formats import Format
from taco_py.language.legal.stored import all_full, is_sparse
from taco_py.language.notation.checks import accesses, all_indices
from taco_py.language.notation.nodes import Access, Assignment
from taco_py.language.problem import TensorType
from taco_py.planner.context import Context
from taco_py.planner.copies import OnCopies
from taco_py.planner.ir.goal import Request, real_statistics
from taco_py.planner.ir.nodes import Operand
from taco_py.planner.ir.program import Program
from taco_py.planner.rules.base import (
    Candidate,
    Gain,
    Outcome,
    Phase,
    Rewrite,
    Rule,
    Site,
    Trait,
    assignments,
)


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Store dense operands and the result along the innermost loop where that pays."""
    request = context.request(program, site.target)
    assignment = program.define(site.target).assignment
    rows = in_rows(assignment, program.facts, request, Names(program.facts))
    if rows is None:
        return None
    before = OnCopies(assignment, program.facts, request).loops_cost(real_statistics)

    def rewrite() -> Rewrite:
        costs = f"about {rows.cost:.2g} operations with copies, on the arrays as they are"
        reason = f"{rows.reason}: {costs} {before:.2g}"
        return Rewrite(rows.copies.put(program, site.target, reason), reason)

    return Candidate(before, rows.cost, rewrite)


@dataclass(frozen=True, slots=True)
class InRows:
    """An assignment on copies of its dense operands, and what it costs.

    cost  of the loops and the copies
    reason   what led to it, for explain()
    """

    copies: OnCopies
    cost: float
    reason: str


def in_rows(
    assignment: Assignment, operands: Mapping[str, Operand], request: Request, names: Names
) -> InRows | None:
    """Return the cheapest copies with the innermost index stored last; None where there
    are none.
    """
    as_it_is = OnCopies(assignment, operands, request)
    indices = {index for access in accesses(assignment.value) for index in access.indices}
    if not request.look_up or not indices.issuperset(assignment.target.indices):
        return None  # other terms may have the rest, whose sizes are not known here
    long = (i for i in _innermost(assignment, operands, request) if _fills_vectors(i, as_it_is))
    options = [_rows_along(index, as_it_is, names) for index in long]
    return min(options, key=lambda option: option.cost, default=None)


def _innermost(
    assignment: Assignment, operands: Mapping[str, Operand], request: Request
) -> Iterator[str]:
    """Yield the indices that no sparse level stores and that a dense tensor stores not last."""
    types = {a: operands[a.tensor].type for a in accesses(assignment.value)}
    if all_full(types.values()):
        return
    types[assignment.target] = request.type
    list_indices = {i for access, type in types.items() for i in _in_lists(type.format, access)}
    for index in all_indices(assignment):
        if index not in list_indices and any(
            _lies_across(a, index, type) for a, type in types.items()
        ):
            yield index


def _fills_vectors(index: str, on: OnCopies) -> bool:
    """Tell whether a loop over an index is long enough to be faster in vectors."""
    size = real_statistics(on.assignment, on.facts).sizes[index]
    machine, is_summed_not = on.request.machine, index in on.assignment.target.indices
    return size >= (
        machine.calls.copied_row_elements if is_summed_not else machine.calls.copied_sum_elements
    )


def _in_lists(form: Format, access: Access) -> tuple[str, ...]:
    """Return the indices of a tensor's levels down to the last that is not full."""
    return form.stored(access.indices)[: form.depth]


def _lies_across(access: Access, index: str, type: TensorType) -> bool:
    """Tell whether the elements along an index of a dense tensor are not contiguous."""
    if is_sparse(type.format) or access.indices.count(index) != 1:
        return False
    return type.format.stored(access.indices)[-1] != index or not type.unit_stride


def _rows_along(index: str, as_it_is: OnCopies, names: Names) -> InRows:
    """Return the assignment on copies that all store an index last."""
    assignment, facts, machine = as_it_is.assignment, as_it_is.facts, as_it_is.request.machine
    target, type = assignment.target, as_it_is.request.type
    reason = f"the innermost loop runs along {index}"
    forms = {
        access: _with_last(facts[access.tensor].type.format, access.indices.index(index))
        for access in dict.fromkeys(accesses(assignment.value))
        if _lies_across(access, index, facts[access.tensor].type)
    }
    copies = as_it_is.in_orders(forms, names, reason)
    cost = 0.0
    for access in forms:
        cost += copying(facts[access.tensor].nnz, facts[access.tensor].type, machine)
    if _lies_across(target, index, type):
        form = _with_last(type.format, target.indices.index(index))
        sizes = real_statistics(assignment, facts).sizes
        cost += copying(prod((sizes[i] for i in target.indices), start=1.0), type, machine)
        request = replace(as_it_is.request, type=replace(type, format=form))
        copies = replace(copies, request=request)
    return InRows(copies, cost + copies.loops_cost(real_statistics), reason)


def _with_last(form: Format, last: int) -> Format:
    """Return a dense format with one mode stored last."""
    return replace(form, mode_order=(*(mode for mode in form.mode_order if mode != last), last))


def copying(elements: float, type: TensorType, machine: Machine) -> float:
    """Return the cost of a copy of a dense tensor in another order, in steps."""
    element_steps = machine.copied_element(elements * np.dtype(type.dtype).itemsize)
    return (machine.calls.plan_step_seconds + elements * element_steps) / machine.step_seconds


RULE = Rule("copy_into_rows", Phase.LAYOUT, apply, assignments, gain=Gain.DENSE, traits=Trait.WALKS)
