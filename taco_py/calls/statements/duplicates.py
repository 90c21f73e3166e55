"""Operands whose equal coordinates are added up in the type that they are read in.

    C[i,j] = 1.0 * A[i,j]    A of uint8 stores 255 and 1 at one place: C has 256.0 there, not 0.0

A plan may add up entries in a copy, or one by one in the product that reads them. In a narrow
integer type the copy would wrap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from taco_py.data.storage.pack import chain_ascends, is_unique, sparse_chains
from taco_py.data.storage.tensor_data import TensorData
from taco_py.language.notation.dtypes import DType, argument_dtype, expression_dtype, result_dtype
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Reduce


def may_repeat(data: TensorData) -> bool:
    """Tell whether a coordinate may be stored twice; a list out of order is not sorted to know."""
    if data.unique is None and not all(level.unique for level in data.format.levels):
        return not all(chain_ascends(data, *chain, strictly=True) for chain in sparse_chains(data))
    return not is_unique(data)


def read_types(assignment: Assignment, dtypes: Mapping[str, DType]) -> dict[str, DType]:
    """Find the operands that are converted to one type alone where they are read, and this type."""
    types: dict[str, set[DType]] = {}
    for access, dtype in _reads(assignment.value, result_dtype(assignment, dtypes), dtypes):
        types.setdefault(access.tensor, set()).add(dtype)
    return {name: dtype for name, (dtype, *further) in types.items() if not further}


def _reads(
    expr: Expr, dtype: DType, dtypes: Mapping[str, DType]
) -> Iterator[tuple[Access, np.dtype[Any]]]:
    """Yield each access of an expression, with the type that its elements are converted to."""
    match expr:
        case Access():
            yield expr, dtype
        case Call(_, args):
            for arg in args:
                yield from _reads(arg, argument_dtype(expr, arg, dtypes), dtypes)
        case Reduce(_, _, body):
            yield from _reads(body, expression_dtype(expr, dtypes), dtypes)
