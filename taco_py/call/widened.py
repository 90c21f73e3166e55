"""Operands whose equal coordinates are added up in the type that they are read in.

    C[i,j] = 1.0 * A[i,j]    A of uint8 stores 255 and 1 at one place: C has 256.0 there, not 0.0

A plan may add up entries in a copy, or one by one in the product that reads them. In a narrow
integer type the copy would wrap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from taco_py.legal.types import computes_exactly
from taco_py.notation.dtypes import DType, expression_dtype, operand_dtype, result_dtype
from taco_py.notation.nodes import Access, Assignment, Call, Expr, Reduce
from taco_py.storage.pack import chain_ascends, is_unique, sparse_chains
from taco_py.storage.tensor_data import TensorData
from taco_py.values.operands import Given, informer, type_of


def widened(
    assignment: Assignment, given: Mapping[str, Given], wanted: DType | None
) -> Mapping[str, Given]:
    """Convert integer operands that store a coordinate twice to the wider type they are read in.

    Other operands are as they were. An operand that is read in several types is left in its own.

    wanted  what all is computed in, where the user says so
    """
    dtypes = {name: each.data.dtype for name, each in given.items()}
    lists = {name for name, each in given.items() if not each.data.format.is_dense}
    read = read_types(assignment, dtypes, wanted) if lists else {}
    found, inform = dict(given), informer(given)
    for name in lists.intersection(read):
        data = given[name].data
        if _may_repeat(inform(name, data)):
            data = replace(data, values=data.values.astype(read[name]))
            operand = replace(given[name].operand, type=type_of(data))
            found[name] = replace(given[name], data=data, operand=operand)
    return found if any(found[name] is not each for name, each in given.items()) else given


def _may_repeat(data: TensorData) -> bool:
    """Whether a coordinate may be stored twice; a list out of order is not sorted to know."""
    if data.unique is None and not all(level.unique for level in data.format.levels):
        return not all(chain_ascends(data, *chain, strictly=True) for chain in sparse_chains(data))
    return not is_unique(data)


def read_types(
    assignment: Assignment, dtypes: Mapping[str, DType], wanted: DType | None = None
) -> dict[str, DType]:
    """Find the integer operands that are read in one wider type, and this type, by name.

    wanted  as `widened` has it
    """
    narrow = {name for name in dtypes if computes_exactly(dtypes[name])}
    if not narrow:
        return {}
    types: dict[str, set[DType]] = {}
    for access, dtype in _reads(assignment.value, result_dtype(assignment, dtypes), dtypes):
        types.setdefault(access.tensor, set()).add(wanted or dtype)
    return {
        name: wide
        for name, (wide, *others) in types.items()
        if name in narrow
        and not others
        and wide != dtypes[name]
        and np.can_cast(dtypes[name], wide, "same_kind")
    }


def _reads(
    expr: Expr, dtype: DType, dtypes: Mapping[str, DType]
) -> Iterator[tuple[Access, np.dtype[Any]]]:
    """Each access of an expression, with the type that its elements are converted to."""
    match expr:
        case Access():
            yield expr, dtype
        case Call(_, args):
            own = operand_dtype(expr, dtypes)
            for arg in args:
                yield from _reads(arg, own, dtypes)
        case Reduce(_, _, body):
            yield from _reads(body, expression_dtype(expr, dtypes), dtypes)
