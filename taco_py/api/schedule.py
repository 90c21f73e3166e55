"""`schedule`: say how an assignment is computed, one command after another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from taco_py.call.builder import ScheduleBuilder


def schedule(
    text: str,
    /,
    *formats: Any,
    dtypes: Mapping[str, DTypeLike] | DTypeLike | None = None,
    index_dtype: str = "int32",
    static: Mapping[str, int] | None = None,
    **named: Any,
) -> ScheduleBuilder:
    """A schedule to build for an assignment, or for einsum's subscripts.

    >>> s = tp.schedule("y[i] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1))
    >>> s.split("i", "i0", "i1", 32).parallelize("i0", "threads")
    >>> y = tp.evaluate("y[i] = A[i,j] * x[j]", A=A, x=x, schedule=s)

    formats  of the operands by name, or in the order of their first use; also of the result, if it
             is not to be chosen. An array stands for its own format, type and sizes; for the format
             alone where it is the result's, which nothing is added to.
    dtypes, index_dtype, static   as in `compile`

    Each command is checked when it is given, against formats too; see `ScheduleBuilder`.

    Raises as `compile` does.
    """
    from taco_py.call.builder import ScheduleBuilder
    from taco_py.call.draft import draft, draft_einsum, named_formats

    if isinstance(text, str) and "=" not in text:
        return ScheduleBuilder(draft_einsum(text, formats, named, dtypes, index_dtype, static))
    given = named_formats(text, formats, named)
    return ScheduleBuilder(draft(text, given, dtypes, index_dtype, static))
