"""Fast paths remembered: what calls like one that was made before do, without checks and plans."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from codegen.records import dataclass
from taco_py.arguments.device_tensor import DeviceTensor
from taco_py.arguments.operands import BoundOperand
from taco_py.calls.call.computation import Computation
from taco_py.calls.call.outputs import hand_out_results, run_outputs
from taco_py.calls.call.prepare import Prepared, start
from taco_py.data.kernels import KERNELS
from taco_py.data.storage.tensor_data import Array, stores_all
from taco_py.language.diagnostics.cautions import issue_warnings
from taco_py.language.notation.half_types import is_half
from taco_py.planner.ir.nodes import Operand
from taco_py.running.execute.run import Execution
from taco_py.running.replay.call_text import by_place
from taco_py.running.replay.find import ShortCall, no_short_way
from taco_py.running.replay.make_call import compiled_kernels, keep_call, make_call
from taco_py.running.replay.state import ResultSpec, Task


def task_of(
    prepared: Prepared,
    objects: Mapping[str, Any],
    outs: Mapping[str, Array] | None = None,
    accumulators: Collection[str] = (),
    axes: tuple[int, ...] = (),
    alone: bool = True,
) -> Task | None:
    """Return the task of calls like the prepared one; None where operands were converted.

    outs          the arrays for results, by the names of the text
    accumulators  the operands that are these arrays
    axes          of the one result in the order in which they are wanted
    alone         whether the one result is returned by itself, not in a tuple
    """
    plan, outs = prepared.plan, outs or {}
    if not prepared.checked.reads_as_passed:
        return None
    kernels = compiled_kernels(prepared.kernels, [step.target for step in plan.kernels])
    if kernels is None:
        return None
    names = {name: "out" if alone else f"out_{place}" for place, name in enumerate(outs)}
    single, results = prepared.checked.is_single, []
    for name, target in prepared.outputs.items():
        dtype = prepared.dtype_of(target)
        results.append(
            ResultSpec(
                target,
                plan.steps[-1].target if single else target,
                prepared.kinds[target],
                (names[name], outs[name].dtype) if name in outs else None,
                dtype.name if is_half(dtype) else "",
                axes,
            )
        )
    statements = prepared.checked.elaborated.source_assignments
    in_place = {name: names[name] for name in accumulators}
    return Task(
        statements, objects, prepared.operands, plan, kernels, tuple(results), alone, in_place
    )


def remember(
    key: tuple[object, ...],
    computation: Computation,
    prepared: Prepared,
    execution: Execution,
    in_place: Collection[str],
    stored: bool,
) -> None:
    """Remember the fast path for later calls with this key and, where it can be, for later
    processes.

    in_place  the operands that are arrays for results
    stored    whether for later processes too

    Calls that are warned are so each time, and a later process finds what to warn of by itself.
    """
    if KERNELS.memo.get(key) not in (None, no_short_way) or prepared.checked.copied:
        return
    requested, cautions = computation.requested, computation.cautions
    task = task_of(
        prepared, computation.objects, requested.outs, in_place, computation.axes, requested.alone
    )
    if task is None:
        return
    call, parts = make_call(task, by_place, execution.threads)
    KERNELS.memo.put(key, _warned(call, cautions) if cautions else call)
    if stored and not cautions:
        keep_call(key, parts, computation.options.threads)


def _warned(call: ShortCall, cautions: tuple[UserWarning, ...]) -> ShortCall:
    """Return a fast path that gives warnings where it does not leave the call to the long one."""

    def warn_too(*operands: Any) -> Any:
        result = call(*operands)
        if result is not None:
            issue_warnings(cautions)
        return result

    return warn_too


# ---------------------------------------------------------------- tensors of a device


def remember_on_device(
    key: tuple[object, ...], computation: Computation, prepared: Prepared
) -> None:
    """Remember the fast path of calls like the prepared one, where all operands are read in place.

    The plan is for tensors of one signature, which has their exact sizes; its kernels are launched
    at once.
    """
    operands, objects = prepared.operands, computation.objects
    if prepared.checked.copied or list(operands) != list(objects):
        return
    for name, obj in objects.items():
        if not isinstance(obj, DeviceTensor) or operands[name].data is not stores_all(obj.data):
            return
    if any(is_half(prepared.dtype_of(target)) for target in prepared.outputs.values()):
        return
    facts = {name: replace(bound.operand, entries=None) for name, bound in operands.items()}
    call = _DeviceCall(replace(computation, objects={}), prepared.over({}), facts)
    KERNELS.memo.put(key, call)


@dataclass(frozen=True, slots=True, eq=False)
class _DeviceCall:
    """Calls of tensors of one signature, in the order of the call's operands.

    computation, prepared  without operands, so that no array is held
    """

    computation: Computation
    prepared: Prepared
    facts: Mapping[str, Operand]

    def __call__(self, *operands: DeviceTensor) -> Any:
        computation = self.computation
        issue_warnings(computation.cautions)
        bound_operands = {
            name: BoundOperand(obj, stores_all(obj.data), operand)
            for (name, operand), obj in zip(self.facts.items(), operands, strict=True)
        }
        prepared = self.prepared.over(bound_operands)
        results = run_outputs(prepared, start(prepared, computation.options, None), {})
        target = operands[0].target
        return hand_out_results(
            results, self.prepared, computation.requested, computation.axes, target
        )
