"""A problem as values of the entries of one sparse operand, whose coordinates its result has.

    P[i,j] = A[i,j] * w[j] / sum(k, A[i,k])   A, P: ds
    →  a slab for each i, a loop over the positions p of its entries, j read where A stores it

Where A stores nothing, the value is 0 and what is reduced is the identity: so loops over positions
take the place of loops over coordinates, and the rest is as for dense tensors (`slab_form`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from codegen.records import dataclass
from taco_py.compiler.dataflow.slab_form import (
    NoSlabError,
    SlabForm,
    chain_of,
    inner_reductions,
    slab_form,
)
from taco_py.language.formats import Format, Level, dense
from taco_py.language.legal.absent import restricts, same, without
from taco_py.language.legal.stored import is_full
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.dtypes import expression_dtype
from taco_py.language.notation.nodes import Access, Call, Expr
from taco_py.language.notation.operators import COMPILER, FILLED, POSITION, VALUE
from taco_py.language.notation.tree import map_children
from taco_py.language.problem import Problem, TensorType


@dataclass(frozen=True, slots=True)
class EntryForm:
    """Values of entries as values of slabs, for which dense tensors stand in.

    problem  with dense tensors in place of the sparse ones, in the same order of modes
    form     its slabs; the last index of its order is that of the entries of a slab
    source   the access whose coordinates the result has
    levels   those of the operand and of the result
    """

    problem: Problem
    form: SlabForm
    source: Access
    levels: tuple[Level, ...]

    @property
    def result(self) -> str:
        """Return the name of the sparse result."""
        return self.problem.assignment.target.tensor

    @property
    def above(self) -> tuple[str, ...]:
        """Return the indices of the levels above the last one."""
        return self.form.order[:-1]

    @property
    def in_rows(self) -> bool:
        """Tell whether the levels above the last one have every coordinate."""
        return all(level.full for level in self.levels[:-1])


def entry_form(problem: Problem) -> EntryForm:
    """Return a problem as values of entries. Raises NoSlabError with the reason where it is none.

    The result has the levels of the one sparse operand, the last of which is a list.
    """
    source = _source(problem)
    levels = problem.result.format.levels
    _check_absent(problem, source)
    value = _at_entries(problem.assignment.value)
    stand_in = replace(
        problem,
        assignment=replace(problem.assignment, value=value),
        operands=tuple((name, _stand_in(type)) for name, type in problem.operands),
        result=_stand_in(problem.result),
    )
    form = slab_form(stand_in)
    stored = stand_in.stored(form.outputs[-1].target)
    if form.order != stored:
        raise NoSlabError("a value has other indices than its entries")
    if tuple(index.name for index in form.slab if index.block == 1) != stored[:-1]:
        raise NoSlabError("what is summed is no row of entries")
    entries = EntryForm(stand_in, form, source, levels)
    _check_reads(entries)
    return entries


def _source(problem: Problem) -> Access:
    """Return the access of the operand whose coordinates the result has."""
    if problem.side or problem.static or problem.vast or problem.assignment.operator is not None:
        raise NoSlabError("its result is not all that the kernel makes")
    result, target = problem.result, problem.assignment.target
    if result.fill or result.format.order < 2:
        raise NoSlabError("its result has no rows, or another fill value than 0")
    *above, last = result.format.levels
    if not (last.is_list and last.unique):
        raise NoSlabError("its result has no lists of entries below a level")
    if not all(level.is_list or (level.full and level.kind.usual) for level in above):
        raise NoSlabError("the levels of its result are neither dense nor compressed")
    if any(level.is_list for level in above) and above[-1].full:
        raise NoSlabError("its rows are dense below a list")
    if any(type.stored for type in (result, *(type for _, type in problem.operands))):
        raise NoSlabError("elements are stored in another type than they are computed in")
    sparse = [name for name, type in problem.operands if not is_full(type.format)]
    if len(sparse) != 1:
        raise NoSlabError("it reads several sparse tensors, or none")
    (name,) = sparse
    source = Access(name, target.indices)
    form = problem.type_of(name).format
    if form.mode_order != result.format.mode_order or not _are_alike(form, result.format):
        raise NoSlabError(f"{name} is stored otherwise than the result")
    if not restricts(problem.assignment.value, source):
        raise NoSlabError(f"a value is not 0 where {name} stores nothing")
    return source


def _are_alike(form: Format, other: Format) -> bool:
    pairs = zip(form.levels, other.levels, strict=True)
    return all((a.kind, a.unique) == (b.kind, b.unique) for a, b in pairs)


def _check_absent(problem: Problem, source: Access) -> None:
    """Raise NoSlabError for a reduction that is not over stored elements alone."""
    dtypes = {name: np.dtype(type.dtype) for name, type in problem.operands}
    for chain in inner_reductions((problem.assignment,)):
        if len(chain) > 1:
            raise NoSlabError("a sum is over several indices")
        (reduce,) = chain
        identity = reduce.operator.identity_of(expression_dtype(reduce, dtypes))
        inside = [
            access
            for access in accesses(reduce.body)
            if access.tensor == source.tensor and reduce.index in access.indices
        ]
        if not any(same(without(reduce.body, access), identity) for access in inside):
            raise NoSlabError(f"the sum over {reduce.index} is also of what is not stored")
    if chain_of(problem.assignment.value)[0]:
        raise NoSlabError("its result is a sum")


def _at_entries(expr: Expr) -> Expr:
    """Return an expression where all of its sparse operands store an element."""
    match expr:
        case Call(operator, (arg, *_)) if operator in (FILLED, POSITION, VALUE):
            return _at_entries(arg)
        case Call(operator) if operator.name in COMPILER:
            raise NoSlabError(f"{operator.name} asks which elements are stored")
    return map_children(expr, _at_entries)


def _stand_in(type: TensorType) -> TensorType:
    """Return the type of a dense tensor with the values of a sparse one."""
    if is_full(type.format):
        return type
    form = replace(dense(type.format.order), mode_order=type.format.mode_order)
    return TensorType(form, type.dtype, type.index_dtype)


def _check_reads(entries: EntryForm) -> None:
    """Raise NoSlabError for a dense operand at a coordinate that no slab knows."""
    above = entries.above
    at_hand = {*above} if entries.in_rows else {above[-1]}
    at_hand.add(entries.form.order[-1])
    for output in entries.form.outputs:
        for access in accesses(output.value):
            if access.tensor != entries.source.tensor and not {*access.indices} <= at_hand:
                raise NoSlabError(f"{access.tensor} is read at coordinates of an outer list")
