"""What meets in one place of a result, reduced by the operator of the assignment.

    y[p[i]] += x[i]     →   y[r] += sum(i, P[r,i] * x[i])
    y[p[i]] min= x[i]   →   y[r] min= min(i, filled(kept(x[i], P[r,i]), inf))

P is a selection (`derived`): 1 where r = p[i]. Elements that no value meets keep what they hold, or
are the operator's identity where there is nothing to begin from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.arguments.operands import is_number
from taco_py.data.storage.tensor_data import TensorData
from taco_py.language.legal.absent import fill_of
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.dtypes import DType, dtype_of_number, is_weak, value_dtype
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import ADD, KEEP, MUL, VALUE, Operator
from taco_py.language.notation.rewrites.fills import filled_of_type
from taco_py.language.notation.tree import has_reductions, map_children, walk


@dataclass(frozen=True, slots=True)
class Meeting:
    """How values that meet are reduced.

    operator  of the assignment; that of sums where `=` writes each element once
    dtype     in which it reduces
    value     the right-hand side, in which numbers have types
    absent    whether the value is a number also where nothing is stored of it
    """

    operator: Operator
    dtype: DType
    value: Callable[[Expr], Expr]
    absent: bool

    def reduced(self, value: Expr, selections: tuple[Access, ...], over: tuple[str, ...]) -> Expr:
        """Reduce a value where selections are stored, over indices from the outermost on."""
        value, operator = self.value(value), self.operator
        if operator.additive:
            value = reduce(lambda inner, one: Call(MUL, (one, inner)), selections, value)
        else:
            value = Call(VALUE, (value,)) if self.absent else value
            value = reduce(lambda inner, one: Call(KEEP, (inner, one)), selections, value)
            value = filled_of_type(value, operator.identity_of(self.dtype), self.dtype)
        operator = replace(operator, needs_elements=False)
        return reduce(lambda body, index: Reduce(operator, index, body), reversed(over), value)


def meeting_of(
    assignment: Assignment, dtypes: Mapping[str, DType], is_full: Callable[[Access], bool]
) -> Meeting:
    """Return the reduction of values that meet, by the types and stored elements of operands."""
    operator, target = assignment.operator or ADD, assignment.target
    begins = assignment.operator is not None and target.tensor in dtypes
    update = Call(operator, (target, assignment.value)) if begins else assignment.value
    dtype = value_dtype(update, dtypes)

    def typed(expr: Expr) -> Expr:
        if isinstance(expr, Literal):
            return replace(expr, dtype=expr.dtype or dtype.name)
        return map_children(expr, typed)

    fill = fill_of(assignment.value, lambda access: None if is_full(access) else 0)
    reduces = has_reductions(assignment.value)
    absent = fill == 0 or (reduces and not all(map(is_full, accesses(assignment.value))))
    numeric = begins and is_weak(assignment.value)
    return Meeting(operator, dtype, typed if numeric else lambda expr: expr, absent)


def dtypes_for_meeting(
    assignment: Assignment,
    objects: Mapping[str, Any],
    tensors: Mapping[str, TensorData],
    dtype: DType | None,
) -> dict[str, DType]:
    """Find the types in which operands are read of which values meet; none where none do.

    tensors  the arrays of the objects
    dtype    in which everything is computed, None for the types of operands
    """
    target = assignment.target
    if not target.subscripts:
        return {}
    nodes = (node for node, _ in walk(assignment.value))
    read = [node for node in nodes if isinstance(node, Access)]
    names = {access.tensor for access in read if not access.is_number} | {target.tensor}
    weak = {name for name in names if is_number(objects.get(name))}
    dtypes = {n: dtype or tensors[n].dtype for n in names if n in tensors and n not in weak}
    dtypes.update((a.tensor, dtype or np.dtype(np.int64)) for a in read if a.is_number)
    strong = tuple(dtypes.values())
    for name in weak:
        dtypes[name] = dtype_of_number(objects[name], strong) if strong else tensors[name].dtype
    return dtypes
