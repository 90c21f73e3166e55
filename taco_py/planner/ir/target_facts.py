"""What planning knows of the tensor that an assignment makes, before it is made.

S[i,j] = kept(l[i] + r[j], stored(M[i,j]))     as many entries as M, at its coordinates
C[i,j] = sum(k, A[i,k] * B[k,j])               as many entries as are expected
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from taco_py.compiler.cost.estimate import result_size
from taco_py.compiler.cost.machine import Machine
from taco_py.language.legal.absent import fill_of, restricts
from taco_py.language.legal.stored import is_sparse
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Assignment
from taco_py.language.problem import TensorType
from taco_py.planner.ir.goal import real_statistics
from taco_py.planner.ir.nodes import Operand


def facts_of_target(
    assignment: Assignment,
    facts: Mapping[str, Operand],
    type: TensorType,
    shape: tuple[int, ...],
    machine: Machine,
) -> Operand:
    """Return the facts of the target of an assignment over operands with facts."""
    entries = float(prod(shape))
    if not is_sparse(type.format):
        return Operand(type, shape, entries)
    source = pattern_source(assignment, facts)
    if source is not None:
        return Operand(type, shape, source.nnz, source.entries)
    stats = real_statistics(assignment, facts, machine)
    expected = result_size(stats, assignment.value, assignment.target.indices)
    return Operand(type, shape, min(entries, expected))


def pattern_source(assignment: Assignment, facts: Mapping[str, Operand]) -> Operand | None:
    """Return the operand whose coordinates an assignment stores; None where there is no such.

    All operands that decide where the value is stored have these coordinates.
    """
    value, indices = assignment.value, assignment.target.indices
    deciding = [
        access
        for access in dict.fromkeys(accesses(value))
        if is_sparse(facts[access.tensor].type.format)
        and (access.indices == indices or restricts(value, access))
    ]
    if not deciding or any(access.indices != indices for access in deciding):
        return None
    source, *further = (facts[access.tensor] for access in deciding)
    pattern = source.entries
    if pattern is None or fill_of(value, lambda a: 0 if a in deciding else None) != 0:
        return None
    patterns = [operand.entries for operand in further]
    is_same = all(other is not None and pattern.stores_as(other) for other in patterns)
    return source if is_same else None
