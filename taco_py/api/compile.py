"""`compile`: a kernel for operands of given formats, without data."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from numpy.typing import DTypeLike

from taco_py.call.draft import draft
from taco_py.call.kernel import Kernel, compile_draft
from taco_py.formats import Format
from taco_py.schedule.schedule import Schedule
from taco_py.values.settings import (
    Settings,
    as_schedule,
    check_budget,
    check_forbid,
    check_libraries,
    check_static,
    check_threads,
    merged,
)

if TYPE_CHECKING:
    from taco_py.call.builder import ScheduleBuilder


def compile(
    text: str,
    formats: Mapping[str, Format | str] | None = None,
    /,
    *,
    dtypes: Mapping[str, DTypeLike] | DTypeLike | None = None,
    index_dtype: str = "int32",
    static: Mapping[str, int] | None = None,
    schedule: ScheduleBuilder | Schedule | str | None = None,
    threads: int | None = None,
    libraries: bool = True,
    schedule_budget: float | None = None,
    forbid: Collection[str] | str = (),
    **named: Format | str,
) -> Kernel:
    """Compile an assignment for operands of given formats, without data.

    formats      the format of each operand, and of the result unless it is to be chosen
    dtypes       one for all operands, or by name; float64 where not given
    index_dtype  "int32" or "int64": of pos and crd arrays
    static       sizes that the kernel is specialised for, by index
    schedule, threads, libraries, schedule_budget, forbid   as in `evaluate`

    Raises NotationError, OperandError, FormatError, OperandTypeError, ScheduleError, CompilerError.
    """
    drafted = draft(text, merged(formats, named, "formats"), dtypes, index_dtype, static)
    settings = Settings(
        schedule=as_schedule(schedule),
        threads=check_threads(threads),
        static=check_static(static),
        libraries=check_libraries(libraries),
        budget=check_budget(schedule_budget),
        forbid=check_forbid(forbid),
    )
    return compile_draft(drafted, settings)
