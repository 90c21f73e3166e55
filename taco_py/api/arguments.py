"""The keyword arguments that all front ends share, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from taco_py.diagnostics.errors import (
    DimensionError,
    NotationError,
    OperandError,
    ScheduleError,
)
from taco_py.formats import Format
from taco_py.schedule.commands import Schedule

CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")


@dataclass(frozen=True, slots=True)
class Settings:
    """What a call says besides its text and operands; `path` and `contract` are einsum's."""

    format: Format | str | None = None
    schedule: Schedule | None = None
    threads: int | None = None
    dtype: Any = None
    casting: str = "safe"
    static: tuple[tuple[str, int], ...] = ()
    path: tuple[tuple[int, ...], ...] | None = None
    contract: bool = True

    def __post_init__(self) -> None:
        if self.casting not in CASTINGS:
            raise NotationError(
                f"Expected casting to be one of {', '.join(CASTINGS)}, found {self.casting!r}"
            )


def settings_of(
    format: Format | str | None,
    schedule: Schedule | str | None,
    threads: int | None,
    dtype: Any,
    casting: str,
    static: Mapping[str, int] | None,
) -> Settings:
    """The arguments as the user gave them, checked.

    Raises NotationError or ScheduleError.
    """
    return Settings(
        format, as_schedule(schedule), check_threads(threads), dtype, casting, check_static(static)
    )


def as_schedule(schedule: Schedule | str | None) -> Schedule | None:
    """A schedule from its text. "auto" leaves everything open."""
    if isinstance(schedule, str):
        return None if schedule == "auto" else Schedule.parse(schedule)
    if schedule is not None and not isinstance(schedule, Schedule):
        raise ScheduleError(
            f"Expected a Schedule or its text, found {type(schedule).__name__}",
            hint='as in schedule="reorder(i,k,j)"',
        )
    return schedule


def check_threads(threads: int | None) -> int | None:
    """Raise ScheduleError unless it is a positive integer or None."""
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise ScheduleError(
            f"Expected a positive number of threads, found {threads!r}",
            hint="threads=1 runs without parallel loops",
        )
    return threads


def check_static(static: Mapping[str, int] | None) -> tuple[tuple[str, int], ...]:
    """Sizes by index, sorted."""
    return tuple(sorted((str(i), int(n)) for i, n in (static or {}).items()))


def check_static_size(index: str, size: int, sizes: Mapping[str, int]) -> None:
    """Raise DimensionError or OperandError unless the operands agree with a static size."""
    if index not in sizes:
        raise OperandError(
            f"Expected static sizes of the indices {', '.join(sizes)}, found {index}"
        )
    if sizes[index] != size:
        raise DimensionError(
            f"Expected size {size} for the static index {index}, found {sizes[index]}",
            hint="pass operands of that size, or leave the index out of static=",
        )
