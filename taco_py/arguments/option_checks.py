"""Checks of the keyword arguments that all calls share: each returns the value that is computed
with, or raises."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from operator import index as as_integer
from typing import Any

import numpy as np

from codegen.machine.target import TARGETS
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.language.diagnostics.errors import (
    DimensionError,
    NotationError,
    OperandError,
    OperandTypeError,
    ScheduleError,
)
from taco_py.language.diagnostics.suggest import with_suggestion

CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")
MOST_THREADS = 1024  # OpenMP ends the process where the machine has no room for more
LARGEST_SIZE = 2**63 - 1
MEASURE, TUNED = "measure", "tuned"
"""The schedules that are chosen by timing: at the first call, or before and kept in a store."""


def merged(
    operands: Mapping[str, Any] | None, keywords: Mapping[str, Any], what: str = "operands"
) -> dict[str, Any]:
    """Merge the arguments of a mapping with those by keyword.

    Raises OperandTypeError where it is no mapping, OperandError for a name in both.
    """
    if operands is None:
        return dict(keywords)
    if not isinstance(operands, Mapping):
        raise OperandTypeError(
            f"Expected the {what} by name or as a mapping, found {type(operands).__name__}",
            hint='as in A=A, or {"A": A}',
        )
    check_apart(operands, keywords, "in the mapping")
    return {**operands, **keywords}


def check_apart(first: Collection[Any], keywords: Collection[str], where: str) -> None:
    """Raise OperandError for a name that was given `where` and by keyword too."""
    twice = [str(name) for name in first if name in keywords]
    if twice:
        raise OperandError(
            f"Expected each name once, found {', '.join(twice)} {where} and by keyword too",
            hint=f"leave out one {twice[0]}",
        )


def check_casting(casting: str) -> str:
    """Raise NotationError unless it is one of NumPy's rules."""
    if not isinstance(casting, str) or casting not in CASTINGS:
        raise NotationError(
            f"Expected casting to be one of {', '.join(CASTINGS)}, found {casting!r}",
            hint=with_suggestion(
                'casting="unsafe" allows every conversion', str(casting), CASTINGS
            ),
        )
    return casting


def check_target(target: str) -> str:
    """Raise OperandTypeError unless it is the name of something that kernels run on."""
    if target not in TARGETS:
        raise OperandTypeError(
            f"Expected target to be one of {', '.join(TARGETS)}, found {target!r}",
            hint=with_suggestion('target="cuda" is a GPU', str(target), TARGETS),
        )
    return target


def check_libraries(libraries: bool) -> bool:
    """Raise OperandTypeError unless it is True or False."""
    if not isinstance(libraries, bool | np.bool_):
        raise OperandTypeError(
            f"Expected libraries to be True or False, found {libraries!r}",
            hint="libraries=False computes by generated code alone",
        )
    return bool(libraries)


def as_schedules(schedule: Any) -> Schedule | dict[str, Schedule] | None:
    """Return a schedule as `as_schedule` does; those of statements by name, in a mapping or in
    pairs, by name."""
    if not isinstance(schedule, Mapping | tuple):
        return as_schedule(schedule)
    schedules = {name: as_schedule(value) for name, value in dict(schedule).items()}
    return {name: value for name, value in schedules.items() if value is not None}


def as_schedule(schedule: Any) -> Schedule | None:
    """Return a schedule from its text, or from its builder. "auto" leaves everything open."""
    if isinstance(schedule, str) and schedule in (MEASURE, TUNED):
        does = (
            "times them on data" if schedule == MEASURE else "looks plans up by what data are like"
        )
        raise ScheduleError(
            f"Expected a schedule for formats alone, found {schedule!r}, which {does}",
            hint="evaluate and einsum have operands",
        )
    if isinstance(schedule, str):
        word, words = schedule.strip(), ("auto", MEASURE, TUNED)
        if word.isalpha() and word != "auto":
            raise ScheduleError(
                f"Expected 'auto', '{MEASURE}', '{TUNED}' or the text of a schedule, found "
                f"{schedule!r}",
                hint=with_suggestion('as in schedule="reorder(i,k,j)"', word, words),
            )
        return None if word == "auto" else Schedule.parse(schedule)
    schedule = getattr(schedule, "schedule", schedule)
    if schedule is not None and not isinstance(schedule, Schedule):
        raise ScheduleError(
            f"Expected a Schedule or its text, found {type(schedule).__name__}",
            hint='as in schedule="reorder(i,k,j)"',
        )
    return schedule


LONG = 1e9
"""Seconds that no search takes."""


def check_budget(seconds: float | None, name: str = "schedule_budget") -> float | None:
    """Raise ScheduleError unless it is a number of seconds or None."""
    number = isinstance(seconds, int | float | np.integer | np.floating)
    number = number and not isinstance(seconds, bool)
    if seconds is not None and not (number and seconds >= 0):
        raise ScheduleError(
            f"Expected {name} to be a number of seconds, found {seconds!r}",
            hint="leave it out to search to the end",
        )
    return None if seconds is None else float(min(seconds, LONG))


ALLOWED = ("cancellation",)
"""What a plan may lose where the user allows it: digits of differences that are multiplied out."""


def check_allow(allow: Collection[str] | str) -> frozenset[str]:
    """Return the losses that a user allows a plan, one word or several. Raises OperandTypeError."""
    words = (allow,) if isinstance(allow, str) else allow
    if not isinstance(words, Collection) or any(word not in ALLOWED for word in words):
        raise OperandTypeError(
            f"Expected {' or '.join(map(repr, ALLOWED))} in allow, found {allow!r}",
            hint=with_suggestion(
                'as in allow=("cancellation",)', _first_unknown(words, ALLOWED), ALLOWED
            ),
        )
    return frozenset(words)


def _first_unknown(words: Any, allowed: Collection[str]) -> str:
    """Find the first of the words that is not known, "" for something else than words."""
    candidates = words if isinstance(words, Collection) else ()
    return next((w for w in candidates if isinstance(w, str) and w not in allowed), "")


def check_forbid(forbid: Collection[str] | str) -> frozenset[str]:
    """Return the names of rules that a user forbids, one name or several; and "atomic_sums".

    Raises ScheduleError for a name that no rule has, or of a rule that no kernel can do without.
    """
    names = (forbid,) if isinstance(forbid, str) else forbid
    if not names:
        return frozenset()
    from taco_py.compiler.ways.gpu_check import ATOMIC_SUMS
    from taco_py.planner.rules.catalogue import CATALOGUE

    rules = {rule.name: rule for rule, _ in CATALOGUE}
    free = sorted(name for name, rule in rules.items() if rule.optional)
    free.append(ATOMIC_SUMS)
    if not isinstance(names, Collection) or not all(isinstance(name, str) for name in names):
        raise ScheduleError(
            f"Expected the names of rules in forbid, found {forbid!r}",
            hint='as in forbid=("multiply_out",)',
        )
    for name in names:
        if name in rules and name not in free:
            raise ScheduleError(
                f"Expected rules that kernels can do without in forbid, found {name}",
                hint=f"it is {rules[name].phase.value}",
            )
        if name not in rules and name != ATOMIC_SUMS:
            raise ScheduleError(
                f"Expected the names of rules in forbid, found {name!r}",
                hint=with_suggestion(f"they are {', '.join(free)}", name, free),
            )
    return frozenset(names)


def check_threads(threads: int | None) -> int | None:
    """Return the number as an int, None for as many as there are cores.

    Raises ScheduleError unless it is an integer from 1 to MOST_THREADS.
    """
    if threads is None:
        return None
    count = integer(threads)
    if count is None or not 1 <= count <= MOST_THREADS:
        raise ScheduleError(
            f"Expected a positive number of threads, at most {MOST_THREADS}, found {threads!r}",
            hint="threads=1 runs without parallel loops",
        )
    return count


def integer(number: Any) -> int | None:
    """Return a Python or NumPy integer as an int; None for anything else, True and False among
    it."""
    if isinstance(number, bool | np.bool_):
        return None
    try:
        return as_integer(number)
    except TypeError:
        return None


def check_static(static: Mapping[str, int] | None) -> tuple[tuple[str, int], ...]:
    """Return sizes by index, sorted. Raises OperandTypeError or DimensionError."""
    if static is None:
        return ()
    if not isinstance(static, Mapping):
        raise OperandTypeError(
            f"Expected static to be a mapping from indices to sizes, found {static!r}",
            hint='as in static={"k": 32}',
        )
    return tuple(sorted((_static_index(i), _static_size(i, n)) for i, n in static.items()))


def _static_index(index: Any) -> str:
    if not isinstance(index, str):
        raise OperandTypeError(
            f"Expected the name of an index in static, found {index!r}",
            hint='as in static={"k": 32}',
        )
    return index


def _static_size(index: str, size: Any) -> int:
    count = integer(size)
    if count is None:
        raise OperandTypeError(
            f"Expected an integer as the static size of index {index}, found {size!r}",
            hint='as in static={"k": 32}',
        )
    if not 0 <= count <= LARGEST_SIZE:
        raise DimensionError(
            f"Expected a static size from 0 to 2^63 - 1 of index {index}, found {count}",
            hint="pass the size that the operands have along this index",
        )
    return count


def check_static_index(index: str, indices: Collection[str]) -> None:
    """Raise OperandError unless `index` is one that the operands have."""
    if index not in indices:
        raise OperandError(
            f"Expected static sizes of the indices {', '.join(indices) or 'none'}, found {index!r}",
            hint=with_suggestion(
                "leave it out of static=, or use it in the expression", index, indices
            ),
        )


def check_static_size(index: str, size: int, sizes: Mapping[str, int]) -> None:
    """Raise DimensionError or OperandError unless the operands agree with a static size."""
    check_static_index(index, sizes)
    if sizes[index] != size:
        raise DimensionError(
            f"Expected size {size} for the static index {index}, found {sizes[index]}",
            hint="pass operands of that size, or leave the index out of static=",
        )
