"""One assignment over the user's objects: checks, plan, run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from taco_py.arguments.call_arguments import CallArguments
from taco_py.arguments.device_tensor import place_of
from taco_py.arguments.operands import copies_made
from taco_py.arguments.options import CallOptions
from taco_py.arguments.result_table import ResultKind
from taco_py.arguments.results import hand_out
from taco_py.calls.call.devices.on_device import remember_on_device, stay, told_place
from taco_py.calls.call.plan_choice import PLAN_CHOICE
from taco_py.calls.call.prepare import Prepared, note_fit, start
from taco_py.calls.call.prepare import prepare_within as prepare
from taco_py.calls.call.views import shared_look
from taco_py.compiler.driver import compile_recipes
from taco_py.data.convert.in_type import values_in_type
from taco_py.data.kernels import KERNELS
from taco_py.data.storage.tensor_data import Array, TensorData, arrays_of, on_host
from taco_py.language.diagnostics.cautions import issue_warnings
from taco_py.language.diagnostics.errors import OutputDtypeError, OutputError
from taco_py.language.notation.einsum import Squeezed
from taco_py.language.notation.half_types import computed_dtype, is_half
from taco_py.language.notation.nodes import Assignment
from taco_py.language.notation.printer import to_text
from taco_py.running.execute.run import copies_in_order, run
from taco_py.running.replay.call_text import by_place
from taco_py.running.replay.call_watch import WATCH
from taco_py.running.replay.find import ShortCall, no_short_way
from taco_py.running.replay.make_call import compiled_kernels, keep_call, make_call, remember_shown
from taco_py.running.replay.state import Task


def compute(
    assignment: Assignment,
    call: CallArguments,
    squeezed: Squeezed = (),
    axes: tuple[int, ...] = (),
    cautions: tuple[UserWarning, ...] = (),
    place: str | None = None,
    watched: bool = True,
) -> Any:
    """Plan and run `assignment`, whose sums are explicit.

    call  over numbers
    axes  of the result in the order in which they are wanted, () for that of `assignment`
    cautions  what such calls are warned of
    place  the device that the result stays on, "" for the host; None for where operands are
    watched  whether those who watch calls are told of it
    """
    objects, options, out, key = call.objects, call.options, call.out, call.key
    issue_warnings(cautions)
    if watched and WATCH.watchers:
        WATCH.tell(assignment, objects, options, {"squeezed": squeezed, "out": out})
    if place is None:
        place = place_of(objects.values())
    usual = out is None and not (axes or squeezed or place)
    look = shared_look(assignment, objects, options) if usual else None
    if look is not None:
        if key is not None:
            remember_shown(key, look)
        return look.function()(*objects.values())
    begin, objects = _begun(assignment, objects, out)
    stored = options.tuned  # in a store that later processes look into again
    options = PLAN_CHOICE.options(assignment, objects, options, squeezed)[0]
    prepared, usual = prepare(assignment, objects, options, squeezed)
    key = key if usual else None
    execution = start(prepared, options, writable(out, prepared, options))
    data = rounded(run(prepared.plan, execution), prepared.dtype, out)
    note_fit(key, execution, objects)
    if place and out is None:
        if key is not None and not execution.wide and not is_half(prepared.dtype):
            remember_on_device(key, prepared, objects, options, axes, cautions)
        return stay(data, prepared, axes, place)
    if key is not None and options.is_native and KERNELS.memo.get(key) in (None, no_short_way):
        once = execution.wide or prepared.checked.copied
        task = None if once else task_of(prepared, objects, out, begin, axes)
        if task is not None:
            remember(key, task, options, execution.threads, cautions, not stored)
    if out is not None:
        return written(out, data)
    found = hand_out(data, prepared.kind)
    return found.transpose(axes) if axes else found


def _begun(
    assignment: Assignment, objects: Mapping[str, Any], out: Array | None
) -> tuple[str, Mapping[str, Any]]:
    """Return the operand that is `out` itself, or "", and the operands with it: y += value into
    y."""
    target = assignment.target.tensor
    if assignment.operator is None or out is None or target in objects:
        return "", objects
    return target, {target: out, **objects}


def written(out: Array, data: TensorData) -> Array:
    """Return `out` with the values of a dense result, where it was not written by the kernel."""
    values = on_host(data).values
    if not np.may_share_memory(values, out):
        np.copyto(out, values, casting="unsafe")
    return out


def rounded(data: TensorData, dtype: np.dtype[Any], out: Array | None = None) -> TensorData:
    """Round a result that was computed in float32 to the 16-bit type that it has.

    An `out` of a wider type takes it as it was computed.
    """
    wide = out is not None and not is_half(out.dtype)
    return values_in_type(on_host(data), dtype) if is_half(dtype) and not wide else data


def told_rounding(dtype: np.dtype[Any]) -> str:
    """What explain() says of a result in 16 bits, "" of others."""
    if not is_half(dtype):
        return ""
    return f"rounds    the result to {dtype}, behind the kernels: they read and add up float32\n"


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
    if len(prepared.given) > len(objects):  # an operand is read in two types
        return None
    kernels = compiled_kernels(prepared.kernels, [step.target for step in plan.kernels])
    if kernels is None:
        return None
    kind, dtype = prepared.kind, None if out is None else out.dtype
    assignment, given = prepared.assignment, prepared.given
    half = prepared.dtype.name if is_half(prepared.dtype) else ""
    return Task(assignment, objects, given, plan, kernels, kind, dtype, begin, axes, half)


def remember(
    key: tuple[object, ...],
    task: Task,
    options: CallOptions,
    threads: int,
    cautions: tuple[UserWarning, ...] = (),
    kept: bool = True,
) -> None:
    """The short way for later calls with this key and, where it can be, for later processes.

    kept  whether for later processes too

    Calls that are warned are so each time, and a later process finds what to warn of by itself.
    """
    call, parts = make_call(task, by_place, threads)
    KERNELS.memo.put(key, warned(call, cautions) if cautions else call)
    if kept and not cautions:
        keep_call(key, parts, options.threads)


def warned(call: ShortCall, cautions: tuple[UserWarning, ...]) -> ShortCall:
    """Return a short way that gives warnings where it does not leave the call to the long one."""

    def warn_too(*operands: Any) -> Any:
        result = call(*operands)
        if result is not None:
            issue_warnings(cautions)
        return result

    return warn_too


def told_view(assignment: Assignment) -> str:
    """What explain() says where nothing runs."""
    shown = f"{to_text(assignment.target)} is {to_text(assignment.value)}, modes permuted"
    return f"runs      0 kernels, 0 copies\nresult    {shown}: it shares the operand's arrays"


def planned_text(
    assignment: Assignment,
    objects: Mapping[str, Any],
    options: CallOptions,
    squeezed: Squeezed = (),
) -> str:
    """Plan and compile `assignment`, and say what was planned."""
    from taco_py.report.explanation.plan_report import explain as explain_plan

    options, times = PLAN_CHOICE.options(assignment, objects, options, squeezed)
    prepared, _ = prepare(assignment, objects, options, squeezed)
    steps = prepared.plan.kernels
    kernels = compile_recipes(prepared.plan.recipes)
    copies = copies_made(objects, prepared.given)
    execution = start(prepared, options, None)
    for step, kernel in zip(steps, kernels, strict=True):
        copies += copies_in_order(kernel, step, execution)
    told = explain_plan(
        prepared.plan,
        kernels,
        tuple(dict.fromkeys(copies)),
        execution.threads,
        execution.tensors,
    )
    return times + told_rounding(prepared.dtype) + told_place(objects, options.target) + told


def writable(out: Array | None, prepared: Prepared, options: CallOptions) -> Array | None:
    """Return `out` if a kernel may write into it as it goes, None if the result is to be copied
    there.

    Raises OutputError when it cannot hold the result.
    """
    if out is None:
        return None
    check_out(out, prepared.kind, prepared.shape, prepared.dtype, options.casting)
    return out if _direct(out, prepared) else None


def check_out(
    out: Array, kind: ResultKind, shape: tuple[int, ...], dtype: np.dtype[Any], casting: str
) -> None:
    """Raise OutputError where an array cannot hold a result of this kind, shape and dtype."""
    if not isinstance(out, np.ndarray):
        raise OutputDtypeError(
            f"Expected out= to be a NumPy array, found {type(out).__name__}",
            hint="leave out= away, or pass an array of the result's shape and dtype",
        )
    if kind.kind != "ndarray":
        stored = kind.format
        if stored.is_dense:
            raise OutputError(
                f"Expected no out=, for the result is a Tensor of the format {stored}, found an "
                "array",
                hint=f"leave out= away, or ask for an array by format={'d' * stored.order!r}",
            )
        raise OutputError(
            f"Expected no out=, for the result is sparse ({kind.kind}), found an array",
            hint="leave out= away, or ask for a dense result by format=",
        )
    if out.shape != shape:
        raise OutputError(
            f"Expected out= of shape {shape}, found {out.shape}",
            hint="its dimensions are the sizes of the indices on the left",
        )
    if not np.can_cast(dtype, out.dtype, casting):  # type: ignore[arg-type]
        raise OutputDtypeError(
            f"Expected out= of a dtype that {dtype} can be cast to by the rule "
            f"{casting!r}, found {out.dtype}",
            hint=f"pass an array of dtype {dtype}",
        )
    _check_memory(out)


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
    if prepared.plan.machine.is_gpu:
        return False
    own = computed_dtype(prepared.dtype)
    plain = out.flags.c_contiguous and out.flags.aligned and out.dtype == own
    if not plain or not out.dtype.isnative or type(out) is not np.ndarray:
        return False
    arrays = [a for g in prepared.given.values() for a in arrays_of(g.data)]
    return not any(np.may_share_memory(out, a) for a in arrays)
