"""Calls over tensors of a device: results stay there, and later calls of their kind are short.

    dy = tp.einsum("ij,j->i", dA, dx)      planned; the plan is remembered for tensors as these
    dz = tp.einsum("ij,j->i", dA, dy)      its kernels are launched at once

What is remembered is for tensors of one signature, which has their exact sizes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from taco_py.arguments.device_tensor import DeviceTensor, examined, uploaded
from taco_py.arguments.operands import Given, is_number
from taco_py.arguments.options import CallOptions
from taco_py.arguments.results import hand_out
from taco_py.calls.call.prepare import Prepared, start
from taco_py.data.interop.numpy_arrays import dense_of
from taco_py.data.interop.scipy_arrays import is_scipy_sparse
from taco_py.data.kernels import KERNELS
from taco_py.data.storage.check import check
from taco_py.data.storage.tensor_data import TensorData, stores_all
from taco_py.data.tensors.tensor import Tensor, as_data
from taco_py.language.diagnostics.cautions import issue_warnings
from taco_py.planner.ir.nodes import Operand
from taco_py.running.execute.run import run
from taco_py.running.replay.find import ShortCall


def to_device(obj: Any, target: str) -> DeviceTensor:
    """Return a tensor of the host in the memory of a device. Raises OperandTypeError,
    DeviceError."""
    data = as_data(obj)
    check(data)
    data = examined(data)
    return DeviceTensor(uploaded(data, target), kind_of(obj), target)


def kind_of(obj: Any) -> str:
    """What an object is on the host: "ndarray", "tensor" or the name of scipy's class."""
    if isinstance(obj, Tensor):
        return "tensor"
    if is_scipy_sparse(obj):
        name, form = type(obj).__name__, as_data(obj).format
        kept = name[:3] in ("csr", "csc", "coo")
        return name if kept else f"{'coo' if form.is_coo else 'csr'}{name[3:]}"
    dense = is_number(obj) or as_data(obj).format.is_dense
    return "ndarray" if dense else "tensor"


def stay(data: TensorData, prepared: Prepared, axes: tuple[int, ...], place: str) -> Any:
    """Return the result as a tensor of the device that operands are on.

    axes  of the result in the order in which they are wanted, () for that of the plan
    """
    turned = dense_of(data.values.transpose(axes)) if axes else data
    return hand_out(turned, prepared.kind, place)


def told_place(objects: Mapping[str, Any], target: str) -> str:
    """What explain() says of where operands are and where the result stays, "" of the CPU."""
    if target == "c":
        return ""
    there = [name for name, obj in objects.items() if isinstance(obj, DeviceTensor)]
    over = [name for name in objects if name not in there]
    if not there:
        return f"device    operands go over to {target} in each call, and the result comes back\n"
    others = f"; {', '.join(over)} over there in each call" if over else ""
    return f"device    {', '.join(there)} on {target}{others}; the result stays there\n"


def remember_on_device(
    key: tuple[object, ...],
    prepared: Prepared,
    objects: Mapping[str, Any],
    options: CallOptions,
    axes: tuple[int, ...],
    cautions: tuple[UserWarning, ...],
) -> None:
    """Keep what calls like the one that was prepared do, where they read all operands in place."""
    given = prepared.given
    if prepared.checked.copied or list(given) != list(objects):
        return
    for name, obj in objects.items():
        if not isinstance(obj, DeviceTensor) or given[name].data is not stores_all(obj.data):
            return
    facts = {name: replace(each.operand, entries=None) for name, each in given.items()}
    alone = prepared.over({})  # which keeps no array of the operands
    KERNELS.memo.put(key, _short_call(alone, facts, options, axes, cautions))


def _short_call(
    prepared: Prepared,
    facts: Mapping[str, Operand],
    options: CallOptions,
    axes: tuple[int, ...],
    cautions: tuple[UserWarning, ...],
) -> ShortCall:
    """Return a function of tensors of one signature, in the order of the call's operands."""

    def call(*operands: DeviceTensor) -> Any:
        issue_warnings(cautions)
        given = {
            name: Given(obj, stores_all(obj.data), own)
            for (name, own), obj in zip(facts.items(), operands, strict=True)
        }
        execution = start(prepared.over(given), options, None)
        return stay(run(prepared.plan, execution), prepared, axes, operands[0].target)

    return call
