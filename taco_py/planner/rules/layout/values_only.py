"""Read the values alone of sparse operands whose coordinates no loop asks for.

    s = sum(i, j, A[i,j] * A[i,j])    →    s = sum(e, A_values[e] * A_values[e])

One loop over all entries then takes the place of one over the entries of each row, which may be
short, and of a list in any order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from codegen.names import Names
from taco_py.compiler.concrete.terms import Term, reductions, split_terms, summed
from taco_py.language.formats import dense
from taco_py.language.legal.absent import differs_where_absent, divides, restricts, tells_zero
from taco_py.language.legal.stored import is_sparse
from taco_py.language.notation.checks import accesses, all_indices, with_linearity
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Reduce
from taco_py.language.notation.operators import NEG
from taco_py.language.notation.tree import exchange, map_accesses
from taco_py.planner.ir.goal import Request
from taco_py.planner.ir.nodes import Operand, TakeValues
from taco_py.planner.rules.base import (
    Phase,
    Rule,
    StepsBefore,
    Trait,
    assignments,
    with_steps_before,
)


def take_values(
    assignment: Assignment, operands: Mapping[str, Operand], request: Request, names: Names
) -> StepsBefore | None:
    """Read only the values of a sparse operand where the sum over all entries uses no
    coordinates.
    """
    if not request.sized or not request.look_up:
        return None  # kernels for any operands, and loops that are marked
    facts = dict(operands)
    steps: list[TakeValues] = []
    free = Names(all_indices(assignment))

    value = assignment.value
    for sum_ in tuple(reductions(value)):
        access = _walked_alone(sum_, facts) if sum_.operator.additive else None
        if access is None or differs_where_absent(value, sum_, _is_other_of_zero):
            continue  # a sum over an array of no values would be a zero that is there
        (term,) = split_terms(sum_)
        source, index = facts[access.tensor], free.fresh("e")
        target = names.fresh(f"{access.tensor}_values")
        type = replace(source.type, format=dense(1))
        facts[target] = Operand(type, (int(source.nnz),), source.nnz)
        linear = [ways for access_, ways in with_linearity(term.body) if access_ == access]
        distinct = linear != [True]
        steps.append(TakeValues(target, access.tensor, access.indices, distinct))
        body = _reading(term, access, Access(target, (index,)))
        left = (i for i in term.reduced if i not in access.indices)
        value = exchange(value, sum_, summed(body, (*left, index)))
    return StepsBefore(replace(assignment, value=value), facts, tuple(steps)) if steps else None


def _is_other_of_zero(call: Call) -> bool:
    """Tell whether an operation may map a stored zero to another number than 0."""
    return divides(call) or tells_zero(call)


def _reading(term: Term, old: Access, new: Access) -> Expr:
    """Return the term's body, negated where it is subtracted, with another access."""
    body = map_accesses(term.body, lambda read: new if read == old else read)
    return Call(NEG, (body,)) if term.negative else body


def _walked_alone(sum_: Reduce, operands: Mapping[str, Operand]) -> Access | None:
    """Return the sparse access whose indices are all summed and used nowhere else, if
    there is one.
    """
    (term, *more) = split_terms(sum_)
    reads = dict.fromkeys(accesses(term.body))
    sparse = [access for access in reads if is_sparse(operands[access.tensor].type.format)]
    if more or len(sparse) != 1 or any(True for _ in reductions(term.body)):
        return None
    (access,) = sparse
    levels = operands[access.tensor].type.format.levels
    if any(level.kind.gaps or level.kind.shared for level in levels):
        return None
    indices = set(access.indices)
    other_indices = {index for other in reads if other != access for index in other.indices}
    alone = (
        indices <= set(term.reduced)
        and not indices & other_indices
        and restricts(term.body, access)
    )
    return access if alone and len(indices) == len(access.indices) > 0 else None


RULE = Rule(
    "values_only", Phase.LAYOUT, with_steps_before(take_values), assignments, traits=Trait.WALKS
)
