"""What a call's result is: its container, its type, and the assignment that is planned for it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.arguments.operands import Given
from taco_py.arguments.options import CallOptions
from taco_py.arguments.result_table import TENSOR, ResultKind
from taco_py.arguments.results import index_dtype, result_kind
from taco_py.language.fill import fill_of as fill_text
from taco_py.language.legal.absent import fill_of
from taco_py.language.legal.stored import is_sparse
from taco_py.language.legal.wraps import with_wraps
from taco_py.language.notation.dtypes import result_dtype
from taco_py.language.notation.half_types import computed_dtype
from taco_py.language.notation.nodes import Access, Assignment
from taco_py.language.notation.operators import Number
from taco_py.language.notation.rewrites.fills import stored_alone
from taco_py.language.problem import TensorType


@dataclass(frozen=True, slots=True, eq=False)
class WantedResult:
    """The result of a call.

    assignment  what is planned: what wraps is written out, and what differs from the fill value
    dtype       of the result; the type's is `computed_dtype` of it
    any_order   whether its modes may be stored in any order
    """

    assignment: Assignment
    kind: ResultKind
    dtype: np.dtype[Any]
    type: TensorType
    any_order: bool


def wanted_result(
    assignment: Assignment,
    given: Mapping[str, Given],
    sizes: Mapping[str, int],
    options: CallOptions,
) -> WantedResult:
    """Return the result of an assignment over operands that were checked."""
    dtypes = {name: g.operand.type.promoted for name, g in given.items()}
    dtype = result_dtype(assignment, dtypes) if options.dtype is None else options.dtype
    fills = partial(_fill_of_access, given)
    assignment = with_wraps(assignment, fills, dtypes)
    kind, fill = result_kind(assignment, given, options.format), ""
    value = fill_of(assignment.value, fills, dtypes)
    if value is not None and value != 0:
        alone = stored_alone(assignment)
        sparse = result_kind(alone, given, options.format)
        if sparse.kind == TENSOR and is_sparse(sparse.format):
            assignment, kind, fill = alone, sparse, fill_text(value, dtype)
    computed = computed_dtype(dtype).name
    type = TensorType(kind.format, computed, index_dtype(given, sizes), fill=fill)
    any_order = kind.kind == TENSOR and options.format is None
    return WantedResult(assignment, kind, dtype, type, any_order)


def _fill_of_access(given: Mapping[str, Given], access: Access) -> Number | None:
    return 0 if is_sparse(given[access.tensor].operand.type.format) else None
