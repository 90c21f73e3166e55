"""Copy small dense factors into the order of the array that loops run through.

    C[b,a,d] = A[b,a] * v[d,a]
    → v_ad is v stored as a,d;  C[b,a,d] = A[b,a] * v_ad[d,a]

The innermost loop then reads neighbours of them, and indices that lie together can be fused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

import numpy as np

from codegen.names import Names
from taco_py.compiler.concrete.terms import map_terms, split_terms
from taco_py.compiler.order.streams import stream_order
from taco_py.language.formats import Format
from taco_py.language.legal.stored import is_full_problem
from taco_py.language.notation.checks import accesses, all_indices
from taco_py.language.notation.nodes import Access, Assignment
from taco_py.language.problem import Problem
from taco_py.planner.algebra.products import flatten
from taco_py.planner.copies import OnCopies, dense_in_order
from taco_py.planner.ir.goal import Request, problem_of, real_statistics
from taco_py.planner.ir.nodes import Operand
from taco_py.planner.rules.base import Phase, Rule, StepsBefore, Trait, result, with_steps_before


def line_up(
    assignment: Assignment, operands: Mapping[str, Operand], request: Request, names: Names
) -> StepsBefore | None:
    """Read copies of small factors that the innermost loop strides through."""
    order = walked_order(assignment, operands, request)
    if order is None:
        return None
    sizes = real_statistics(assignment, operands).sizes
    volume, machine = prod(sizes[index] for index in order), request.machine
    forms: dict[Access, Format] = {}
    for access in dict.fromkeys(accesses(assignment.value)):
        source = operands[access.tensor]
        modes = source.type.format.mode_order
        is_strided = order[-1] in access.indices and access.indices[modes[-1]] != order[-1]
        least = max(
            machine.calls.small_factor_iterations, machine.calls.small_factor_ratio * source.nnz
        )
        if is_strided and volume >= least:
            forms[access] = dense_in_order(access, order)
    if not forms:
        return None
    reason = f"loops run in the order {','.join(order)}, the innermost across it"
    on = OnCopies(assignment, operands, request).in_orders(forms, names, reason)
    return StepsBefore(on.assignment, on.facts, on.steps, reason)


def walked_order(
    assignment: Assignment, operands: Mapping[str, Operand], request: Request
) -> tuple[str, ...] | None:
    """Return the storage order of the one dense array that has all indices; None without one."""
    dtypes = {name: np.dtype(operand.type.dtype) for name, operand in operands.items()}
    value = map_terms(assignment.value, lambda term: flatten(term, dtypes))
    return _order(problem_of(replace(assignment, value=value), operands, request))


def _order(problem: Problem) -> tuple[str, ...] | None:
    (term, *more) = split_terms(problem.assignment.value)
    if more or not is_full_problem(problem):
        return None
    target = problem.assignment.target
    if len(target.indices) > 1 and {*target.indices} == {*all_indices(problem.assignment)}:
        return problem.stored(target)
    return stream_order(problem, term.body, term.reduced)


RULE = Rule(
    "copy_small_across", Phase.LAYOUT, with_steps_before(line_up), result, traits=Trait.INDICES
)
