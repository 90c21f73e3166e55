"""`schedule`: say how an assignment is computed, one command after another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from taco_py.calls.kernels.builder import ScheduleBuilder


def schedule(
    text: str,
    /,
    *formats: Any,
    dtypes: Mapping[str, DTypeLike] | DTypeLike | None = None,
    index_dtype: str = "int32",
    static: Mapping[str, int] | None = None,
    target: str | None = None,
    memory_limit: int | str | None = None,
    **named: Any,
) -> ScheduleBuilder:
    """Build a schedule for an assignment, or for einsum's subscripts, command by command.

    >>> s = tp.schedule("y[i] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1))
    >>> print(s.split("i", "i0", "i1", 32).parallelize("i0", "threads").schedule)
    split(i,i0,i1,32), parallelize(i0,CPUThread,NoRaces)
    >>> A = sp.csr_array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    >>> tp.evaluate("y[i] = A[i,j] * x[j]", A=A, x=np.ones(3), schedule=s)
    array([3., 3.])

    Returns a `ScheduleBuilder`; each command is checked when it is given, against formats too.

    text     index notation, or einsum's subscripts
    formats, named  of the operands by name, or in the order of their first use; also of the result,
             if it is not to be chosen. An array stands for its own format, type and sizes; for the
             format alone where it is the result's, which nothing is added to.
    dtypes, index_dtype, static   as in `compile`
    target   what the schedule is for, as in `evaluate`, the CPU unless an operand is on a device:
             its units and limits are what commands are checked against; `compile()` makes a kernel
             that runs there
    memory_limit  bytes that calls of that kernel may take, as in `evaluate`

    Raises as `compile` does.
    """
    from taco_py.arguments.option_checks import check_target
    from taco_py.calls.call.devices.placed import placed
    from taco_py.calls.kernels.builder import ScheduleBuilder
    from taco_py.calls.kernels.draft import CompileArguments, draft, draft_einsum, named_formats
    from taco_py.data.tensors.byte_counts import check_memory_limit

    in_order = {f"operand {place}": form for place, form in enumerate(formats)}
    placed_formats, where = placed({**in_order, **named}, target)
    check_target(where)
    formats = tuple(placed_formats.pop(place) for place in in_order)
    if isinstance(text, str) and "=" not in text:
        arguments = CompileArguments(placed_formats, dtypes, index_dtype, static)
        drafted = draft_einsum(text, formats, arguments)
    else:
        formats_by_name = named_formats(text, formats, placed_formats)
        drafted = draft(text, CompileArguments(formats_by_name, dtypes, index_dtype, static))
    return ScheduleBuilder(drafted.on(where), check_memory_limit(memory_limit))
