"""One assignment over the user's objects: checks, plan, run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from codegen.names import Names
from taco_py.api.arguments import Settings, check_static_size
from taco_py.api.call_state import Task
from taco_py.api.call_text import by_place
from taco_py.api.fast import compiled_kernels, keep_call, make_call
from taco_py.api.libraries import libraries_of
from taco_py.api.operands import (
    Given,
    check_names,
    check_orders,
    check_sizes,
    copies_made,
    facts,
    give,
    informer,
    joined_of,
    type_of,
)
from taco_py.api.readings import arrays_of
from taco_py.api.results import ResultKind, hand_out, index_dtype, result_kind
from taco_py.api.short import no_short_way
from taco_py.autoschedule.effort import Effort
from taco_py.diagnostics.errors import (
    OperandTypeError,
    OutputDtypeError,
    OutputError,
)
from taco_py.driver import CompiledKernel, Recipe, compile_recipe
from taco_py.interop.numpy_arrays import from_numpy
from taco_py.kernels import KERNELS
from taco_py.notation.checks import check_assignment, operand_names
from taco_py.notation.dtypes import result_dtype
from taco_py.notation.einsum import Squeezed
from taco_py.notation.nodes import Access, Assignment, Call
from taco_py.notation.parser import parse_assignment
from taco_py.notation.reduce import insert_reductions
from taco_py.plan.arranged import arranged
from taco_py.plan.explain import explain as explain_plan
from taco_py.plan.make import Options, make_plan
from taco_py.plan.nodes import Plan
from taco_py.plan.request import Request
from taco_py.plan.run import Execution, copies_in_order, run
from taco_py.problem import TensorType
from taco_py.storage.tensor_data import Array, TensorData


def parsed(text: str) -> Assignment:
    """The assignment of a text, checked, with its sums explicit."""
    return _parsed(text) if isinstance(text, str) else parse_assignment(text)


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Assignment:
    assignment = parse_assignment(text)
    check_assignment(assignment)
    return insert_reductions(assignment)


def compute(
    assignment: Assignment,
    objects: Mapping[str, Any],
    settings: Settings,
    out: Array | None = None,
    squeezed: Squeezed = (),
    key: tuple[object, ...] | None = None,
    axes: tuple[int, ...] = (),
) -> Any:
    """Plan and run `assignment`, whose sums are explicit.

    key   under which to remember the short way for calls like this one
    axes  of the result in the order in which they are wanted, () for that of `assignment`
    """
    begin, target = "", assignment.target.tensor
    if assignment.operator is not None and out is not None and target not in objects:
        begin, objects = target, {target: out, **objects}  # y += value, written where y is
    if settings.measure:
        settings = measured(assignment, objects, settings, squeezed)
    prepared = prepare(assignment, objects, settings, squeezed)
    execution = start(prepared, settings, writable(out, prepared, settings))
    data = unfused(run(prepared.plan, execution), prepared.shape)
    if key is not None and KERNELS.memo.get(key) in (None, no_short_way):
        task = None if execution.wide else task_of(prepared, objects, out, begin, axes)
        if task is not None:
            remember(key, task, settings, execution.threads)
    if out is not None:
        if not np.may_share_memory(data.values, out):  # else it was written there
            np.copyto(out, data.values, casting="unsafe")
        return out
    found = hand_out(data, prepared.kind)
    return found.transpose(axes) if axes else found


def unfused(data: TensorData, shape: tuple[int, ...]) -> TensorData:
    """A result with the modes that the assignment says, where the plan fused some of them."""
    return data if data.shape == shape else from_numpy(data.values.reshape(shape))


def measured(
    assignment: Assignment,
    objects: Mapping[str, Any],
    settings: Settings,
    squeezed: Squeezed = (),
) -> Settings:
    """The settings with the schedule that is fastest on these operands.

    It is remembered for operands with the same facts.
    """
    plain = replace(settings, measure=False)
    prepared = prepare(assignment, objects, plain, squeezed)
    key = ("measured", assignment, squeezed, plain, facts(prepared.given))

    def find() -> Settings:
        from taco_py.api.measure import alternatives, fastest

        def attempt(choice: Settings) -> None:
            ready = prepare(assignment, objects, choice, squeezed)
            run(ready.plan, start(ready, choice, None))

        operands = {name: g.operand for name, g in prepared.given.items()}
        type = TensorType(prepared.kind.format, prepared.dtype.name)
        choices = () if squeezed else alternatives(prepared.assignment, operands, type, plain)
        return fastest(plain, choices, attempt) if choices else plain

    return KERNELS.once(key, find)


def task_of(
    prepared: Prepared,
    objects: Mapping[str, Any],
    out: Array | None,
    begin: str = "",
    axes: tuple[int, ...] = (),
) -> Task | None:
    """What calls like the one that was prepared do; None where it was not done with one kernel a
    step.

    begin  the operand that is `out` itself, or ""
    axes   as `compute` has them
    """
    plan = prepared.plan
    kernels = compiled_kernels(prepared.kernels, [step.target for step in plan.kernels])
    if kernels is None:
        return None
    kind, dtype = prepared.kind, None if out is None else out.dtype
    assignment, given = prepared.assignment, prepared.given
    return Task(assignment, objects, given, plan, kernels, kind, dtype, begin, axes)


def remember(key: tuple[object, ...], task: Task, settings: Settings, threads: int) -> None:
    """The short way for later calls with this key and, where it can be, for later processes."""
    call, parts = make_call(task, by_place, threads)
    KERNELS.memo.put(key, call)
    keep_call(key, parts, settings.threads)


def planned_text(
    assignment: Assignment,
    objects: Mapping[str, Any],
    settings: Settings,
    squeezed: Squeezed = (),
) -> str:
    """Plan and compile `assignment`, and say what was planned."""
    if settings.measure:
        settings = measured(assignment, objects, settings, squeezed)
    prepared = prepare(assignment, objects, settings, squeezed)
    steps = prepared.plan.kernels
    kernels = [
        compile_recipe(Recipe(s.problem, s.orders, schedule=s.schedule, strategy=s.strategy))
        for s in steps
    ]
    copies = copies_made(objects, prepared.given)
    execution = start(prepared, settings, None)
    for step, kernel in zip(steps, kernels, strict=True):
        copies += copies_in_order(kernel, step, execution)
    return explain_plan(
        prepared.plan,
        kernels,
        tuple(dict.fromkeys(copies)),
        execution.threads,
        execution.tensors,
    )


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
    squeezed: Squeezed = (),
) -> Prepared:
    """All checks, then the plan."""
    assignment = accumulated(assignment, objects)
    check_names(assignment, objects)
    given = converted(give(objects, settings.dtype, settings.weak), settings)
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
    squeezed: Squeezed,
    sizes: Mapping[str, int],
) -> Planned:
    kind = result_kind(assignment, given, settings.format)
    dtypes = {name: g.data.dtype for name, g in given.items()}
    dtype = result_dtype(assignment, dtypes) if settings.dtype is None else settings.dtype
    type = TensorType(kind.format, dtype.name, index_dtype(given, sizes))
    options = Options(settings.path, settings.contract, settings.schedule, libraries_of(settings))
    operands = {name: g.operand for name, g in given.items()}
    effort = Effort(settings.budget)
    request = Request(type, settings.static, effort, memory=settings.memory, sized=True)
    if kind.kind == "tensor" and settings.format is None and settings.schedule is None:
        request = arranged(assignment, operands, request)
        kind = replace(kind, format=request.type.format)
    plan = make_plan(assignment, operands, request, options, squeezed)
    return Planned(plan, kind, dtype, {})


def accumulated(assignment: Assignment, objects: Mapping[str, Any]) -> Assignment:
    """`y += value` as `y' = y + value` when there is a `y` to begin from, else as `y = value`."""
    if assignment.operator is None:
        return assignment
    target = assignment.target
    if target.tensor not in objects:
        return replace(assignment, operator=None)
    taken = (*objects, *operand_names(assignment), target.tensor)
    name = Names(taken).fresh(f"{target.tensor}_new")
    value = Call(assignment.operator, (target, assignment.value))
    return Assignment(Access(name, target.indices, target.span), value, None, assignment.span)


def converted(given: Mapping[str, Given], settings: Settings) -> dict[str, Given]:
    """The operands in the dtype to compute in: by a copy where kernels cannot convert each value
    as they read it.

    Raises OperandTypeError where `casting` forbids it.
    """
    wanted = settings.dtype
    if wanted is None:
        return dict(given)
    found = {}
    for name, g in given.items():
        if not np.can_cast(g.data.dtype, wanted, settings.casting):  # type: ignore[arg-type]
            raise OperandTypeError(
                f"Expected operands that can be cast to {wanted} by the rule {settings.casting!r}, "
                f"found {name} of dtype {g.data.dtype}",
                hint='allow it with casting="unsafe", or choose another dtype',
            )
        data = g.data
        if not converts_in_place(data.dtype, wanted):
            data = replace(data, values=data.values.astype(wanted, copy=False))
        type, levels = type_of(data), joined_of(data)  # a copy need not have the same strides
        if data.dtype != wanted:
            type = replace(type, dtype=wanted.name, stored=data.dtype.name)
        found[name] = replace(g, data=data, operand=replace(g.operand, type=type, joined=levels))
    return found


def converts_in_place(found: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Whether a conversion in C gives what NumPy's gives.

    Real numbers are made complex by NumPy, for a C compiler leaves the zeros out of their products,
    which are not zero beside an infinity; so are conversions that lose a kind of number, which warn
    or have no result in C.
    """
    complexity = (found.kind == "c") == (wanted.kind == "c")
    return complexity and np.can_cast(found, wanted, "same_kind")


def start(prepared: Prepared, settings: Settings, out: Array | None) -> Execution:
    """An execution over the prepared operands."""
    given = prepared.given
    tensors = {name: g.data for name, g in given.items()}
    threads = settings.threads or KERNELS.cores
    return Execution(tensors, threads, out, informer(given), prepared.kernels)


def writable(out: Array | None, prepared: Prepared, settings: Settings) -> Array | None:
    """`out` if a kernel may write into it as it goes, None if the result is to be copied there.

    Raises OutputError when it cannot hold the result.
    """
    if out is None:
        return None
    if not isinstance(out, np.ndarray):
        raise OutputError(
            f"Expected out= to be a NumPy array, found {type(out).__name__}",
            hint="leave out= away, or pass an array of the result's shape and dtype",
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
    _check_memory(out)
    return out if _direct(out, prepared) else None


def _check_memory(out: Array) -> None:
    """Raise OutputError where what is written would be refused, hidden, or written over."""
    if not out.flags.writeable:
        raise OutputError("Expected a writable array for out=, found a read-only one")
    if isinstance(out, np.ma.MaskedArray):
        raise OutputError(
            "Expected an array without a mask for out=, found a numpy.ma.MaskedArray",
            hint="pass its .data",
        )
    if out.size and any(step == 0 < n - 1 for step, n in zip(out.strides, out.shape, strict=True)):
        raise OutputError(
            "Expected memory for each element of out=, found elements that share theirs (a stride "
            "of 0)",
            hint="pass a copy: out.copy()",
        )


def _direct(out: Array, prepared: Prepared) -> bool:
    plain = out.flags.c_contiguous and out.flags.aligned and out.dtype == prepared.dtype
    if not plain or not out.dtype.isnative or type(out) is not np.ndarray:
        return False
    arrays = [a for g in prepared.given.values() for a in arrays_of(g.data)]
    return not any(np.may_share_memory(out, a) for a in arrays)
