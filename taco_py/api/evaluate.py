"""`evaluate` and `einsum`: one line in, a result out."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from codegen.names import Names
from taco_py.api.fast import Prelude, ShortCall, by_place, make_call
from taco_py.api.operands import (
    Given,
    check_names,
    check_orders,
    check_sizes,
    facts,
    give,
    informer,
)
from taco_py.api.results import ResultKind, hand_out, index_dtype, result_kind
from taco_py.api.signatures import call_key
from taco_py.diagnostics.errors import (
    DimensionError,
    NotationError,
    OperandError,
    OperandTypeError,
    OutputError,
    ScheduleError,
)
from taco_py.driver import KERNELS, CompiledKernel, Recipe, compile_recipe
from taco_py.formats import Format
from taco_py.notation.checks import check_assignment
from taco_py.notation.dtypes import result_dtype
from taco_py.notation.nodes import Access, Assignment, Call
from taco_py.notation.parser import parse_assignment
from taco_py.notation.reduce import insert_reductions
from taco_py.plan.explain import explain as explain_plan
from taco_py.plan.make import Options, make_plan
from taco_py.plan.nodes import Compute, Plan
from taco_py.plan.run import Execution, run
from taco_py.plan.single import Request
from taco_py.problem import TensorType
from taco_py.schedule.commands import Schedule
from taco_py.storage.tensor_data import Array, TensorData


@dataclass(frozen=True, slots=True)
class Settings:
    """The keyword arguments that all front ends share, checked."""

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


COUNTS = (int, type(None))  # True is no number of threads, though it is equal to one
CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")


@lru_cache(maxsize=1024)
def parsed(text: str) -> Assignment:
    """The assignment of a text, checked, with its sums explicit."""
    assignment = parse_assignment(text)
    check_assignment(assignment)
    return insert_reductions(assignment)


def evaluate(
    text: str,
    operands: Mapping[str, Any] | None = None,
    /,
    *,
    format: Format | str | None = None,
    out: Array | None = None,
    dtype: DTypeLike | None = None,
    casting: str = "safe",
    schedule: Schedule | str | None = None,
    threads: int | None = None,
    static: Mapping[str, int] | None = None,
    **named: Any,
) -> Any:
    """The value of an assignment in index notation.

    >>> evaluate("r[i] = b[i] - A[i,j] * x[j]", b=b, A=A, x=x)

    text      `+ - * /`, parentheses, numbers, `=` and `+=`. An index that is not on the left is
              summed within each additive term that uses it, over the smallest product that holds
              its uses, or where `sum(j, …)` says so.
    operands  NumPy arrays, scipy.sparse arrays or matrices, Tensors and numbers, by name or as a
              mapping. They are not copied and never modified.
    format    how to store the result; by default an index is compressed when every term
              restricts it
    out       an array of the result's shape and dtype to write into
    dtype     compute in this dtype; `casting` says which conversions to it are allowed
    schedule  scheduling commands, such as "reorder(i,k,j)"
    threads   at most so many threads
    static    sizes to compile into the kernel, by index

    Raises NotationError, OperandError, OperandTypeError, DimensionError, FormatError, OutputError,
    ScheduleError before anything is compiled; CompilerError when there is no compiler.
    """
    given = named if operands is None else {**operands, **named}
    key = None
    if out is None and dtype is None and static is None and type(threads) in COUNTS:
        identity = (text, format, casting, schedule, threads, *given)
        key = call_key(identity, given.values())
        call = KERNELS.memo.get(key)
        if call is not None:
            result = call(*given.values())
            if result is not None:
                return result
    settings = Settings(
        format, as_schedule(schedule), check_threads(threads), dtype, casting, check_static(static)
    )
    return compute(parsed(text), given, settings, out, key=key)


def compute(
    assignment: Assignment,
    objects: Mapping[str, Any],
    settings: Settings,
    out: Array | None = None,
    squeezed: tuple[tuple[str, tuple[int, ...]], ...] = (),
    key: Hashable = None,
) -> Any:
    """Plan and run `assignment`, whose sums are explicit.

    key  under which to remember the short way for calls like this one
    """
    prepared = prepare(assignment, objects, settings, squeezed)
    target = writable(out, prepared, settings)
    execution = start(prepared, settings, target)
    data = run(prepared.plan, execution)
    if key is not None and KERNELS.memo.get(key) is None:
        call = short_way(prepared, objects, execution.threads, by_place)
        if call is not None:
            KERNELS.memo.put(key, call)
    if out is not None:
        if data.values is not out:
            np.copyto(out, data.values, casting="unsafe")
        return out
    return hand_out(data, prepared.kind, whole=True)


def short_way(
    prepared: Prepared, objects: Mapping[str, Any], threads: int, prelude: Prelude
) -> ShortCall | None:
    """The short way for calls like the one that was prepared, where its plan has one."""
    match prepared.plan.steps:
        case (Compute() as step,):
            kernel = prepared.kernels[step.target, "evaluate"]
            return make_call(objects, prepared.given, step, kernel, prepared.kind, threads, prelude)
    return None


def explain(
    text: str,
    operands: Mapping[str, Any] | None = None,
    /,
    *,
    format: Format | str | None = None,
    dtype: DTypeLike | None = None,
    casting: str = "safe",
    schedule: Schedule | str | None = None,
    threads: int | None = None,
    static: Mapping[str, int] | None = None,
    **named: Any,
) -> str:
    """How `evaluate` with the same arguments computes its result, and why that way. Computes
    nothing.

    Concrete notation, iteration graph, loop order, formats, inserted conversions and workspaces,
    what is parallel and if not why, compile time and cache hit, for each kernel. Raises as
    `evaluate`.
    """
    given = {**(operands or {}), **named}
    settings = Settings(
        format, as_schedule(schedule), check_threads(threads), dtype, casting, check_static(static)
    )
    return explained(parsed(text), given, settings)


def explained(assignment: Assignment, objects: Mapping[str, Any], settings: Settings) -> str:
    """Plan and compile `assignment`, and say what was planned."""
    prepared = prepare(assignment, objects, settings)
    parallel = parallel_loop(settings.schedule)
    recipes = [Recipe(s.problem, s.orders, parallel=parallel) for s in prepared.plan.kernels]
    return explain_plan(prepared.plan, [compile_recipe(r) for r in recipes])


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """Checked operands and a plan.

    kernels  those of the plan that are compiled, shared by all calls with this plan
    """

    assignment: Assignment
    given: Mapping[str, Given]
    plan: Plan
    kind: ResultKind
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    kernels: dict[tuple[str, str], CompiledKernel]


def prepare(
    assignment: Assignment,
    objects: Mapping[str, Any],
    settings: Settings,
    squeezed: tuple[tuple[str, tuple[int, ...]], ...] = (),
) -> Prepared:
    """All checks, then the plan."""
    assignment = accumulated(assignment, objects)
    check_names(assignment, objects)
    given = converted(give(objects), settings)
    shapes = {name: g.data.shape for name, g in given.items()}
    for name, axes in squeezed:
        shapes[name] = tuple(n for axis, n in enumerate(shapes[name]) if axis not in axes)
    check_orders(assignment, shapes)
    sizes = check_sizes(assignment, shapes)
    for index, size in settings.static:
        check_static_size(index, size, sizes)
    key = ("plan", assignment, squeezed, settings, facts(given))
    planned = KERNELS.memo.get(key)
    if planned is None:
        planned = _planned(assignment, given, settings, squeezed, sizes)
        KERNELS.memo.put(key, planned)
    shape = tuple(sizes[i] for i in assignment.target.indices)
    return Prepared(
        assignment, given, planned.plan, planned.kind, shape, planned.dtype, planned.kernels
    )


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """What is the same for all operands with the same facts."""

    plan: Plan
    kind: ResultKind
    dtype: np.dtype[Any]
    kernels: dict[tuple[str, str], CompiledKernel]


def _planned(
    assignment: Assignment,
    given: Mapping[str, Given],
    settings: Settings,
    squeezed: tuple[tuple[str, tuple[int, ...]], ...],
    sizes: Mapping[str, int],
) -> Planned:
    kind = result_kind(assignment, given, settings.format)
    dtypes = {name: g.data.dtype for name, g in given.items()}
    dtype = np.dtype(settings.dtype) if settings.dtype else result_dtype(assignment, dtypes)
    type = TensorType(kind.format, dtype.name, index_dtype(given, sizes))
    options = Options(settings.path, settings.contract, settings.schedule)
    operands = {name: g.operand for name, g in given.items()}
    plan = make_plan(assignment, operands, Request(type, settings.static), options, squeezed)
    return Planned(plan, kind, dtype, {})


def accumulated(assignment: Assignment, objects: Mapping[str, Any]) -> Assignment:
    """`y += value` as `y' = y + value` when there is a `y` to begin from, else as `y = value`."""
    if assignment.operator is None:
        return assignment
    target = assignment.target
    if target.tensor not in objects:
        return replace(assignment, operator=None)
    name = Names((*objects, target.tensor)).fresh(f"{target.tensor}_new")
    value = Call(assignment.operator, (target, assignment.value))
    return Assignment(Access(name, target.indices, target.span), value, None, assignment.span)


def converted(given: Mapping[str, Given], settings: Settings) -> dict[str, Given]:
    """The operands in the dtype to compute in.

    Raises OperandTypeError where `casting` forbids it.
    """
    if settings.dtype is None:
        return dict(given)
    wanted = np.dtype(settings.dtype)
    found = {}
    for name, g in given.items():
        if not np.can_cast(g.data.dtype, wanted, settings.casting):  # type: ignore[arg-type]
            raise OperandTypeError(
                f"Expected operands that can be cast to {wanted} by the rule {settings.casting!r}, "
                f"found {name} of dtype {g.data.dtype}",
                hint='allow it with casting="unsafe", or choose another dtype',
            )
        data = replace(g.data, values=g.data.values.astype(wanted, copy=False))
        type = replace(g.operand.type, dtype=wanted.name)
        found[name] = replace(g, data=data, operand=replace(g.operand, type=type))
    return found


def start(prepared: Prepared, settings: Settings, out: Array | None) -> Execution:
    """An execution over the prepared operands."""
    given = prepared.given
    tensors = {name: g.data for name, g in given.items()}
    threads = settings.threads or default_threads()
    parallel = parallel_loop(settings.schedule)
    return Execution(tensors, threads, parallel, out, informer(given), prepared.kernels)


def parallel_loop(schedule: Schedule | None) -> str | None:
    """The index whose loop a schedule shares among threads: "" for none, None to choose."""
    if schedule is None:
        return None
    return "" if schedule.serial else schedule.parallel


# ---------------------------------------------------------------- arguments


def writable(out: Array | None, prepared: Prepared, settings: Settings) -> Array | None:
    """`out` if a kernel may write into it as it goes, None if the result is to be copied there.

    Raises OutputError when it cannot hold the result.
    """
    if out is None:
        return None
    if not isinstance(out, np.ndarray):
        raise OutputError(
            f"Expected out= to be a NumPy array, found {type(out).__name__}",
            hint="a sparse result is returned, not written: leave out= away",
        )
    if prepared.kind.kind != "ndarray":
        raise OutputError(
            f"Expected no out=, for the result is sparse ({prepared.kind.kind}), found an array",
            hint="leave out= away, or ask for a dense result by format=",
        )
    if out.shape != prepared.shape:
        raise OutputError(
            f"Expected out= of shape {prepared.shape}, found {out.shape}",
            hint="its dimensions are the sizes of the indices on the left",
        )
    if not np.can_cast(prepared.dtype, out.dtype, settings.casting):  # type: ignore[arg-type]
        raise OutputDtypeError(
            f"Expected out= of a dtype that {prepared.dtype} can be cast to by the rule "
            f"{settings.casting!r}, found {out.dtype}",
            hint=f"pass an array of dtype {prepared.dtype}",
        )
    if not out.flags.writeable:
        raise OutputError("Expected a writable array for out=, found a read-only one")
    return out if _direct(out, prepared) else None


class OutputDtypeError(OutputError, TypeError):
    """The `out=` array's dtype cannot take the result's."""


def _direct(out: Array, prepared: Prepared) -> bool:
    plain = out.flags.c_contiguous and out.flags.aligned and out.dtype == prepared.dtype
    if not plain or not out.dtype.isnative or type(out) is not np.ndarray:
        return False
    arrays = [a for g in prepared.given.values() for a in arrays_of(g.data)]
    return not any(np.may_share_memory(out, a) for a in arrays)


def arrays_of(data: TensorData) -> list[Array]:
    """All arrays of a stored tensor."""
    found = [data.values]
    for level in data.levels:
        found += [a for a in (level.pos, level.crd) if a is not None]
    return found


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


@lru_cache(maxsize=1)
def default_threads() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


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
