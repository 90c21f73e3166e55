"""Calls over tensors of a device: results stay there, and later calls of their kind are short.

    dy = tp.einsum("ij,j->i", dA, dx)      planned; the plan is remembered for tensors as these
    dz = tp.einsum("ij,j->i", dA, dy)      its kernels are launched at once

What is remembered is for tensors of one signature, which has their exact sizes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taco_py.arguments.device_tensor import DeviceTensor, examined, uploaded
from taco_py.arguments.operands import is_number
from taco_py.data.interop.scipy_arrays import is_scipy_sparse
from taco_py.data.storage.check import check
from taco_py.data.tensors.tensor import Tensor, as_data


def to_device(obj: Any, target: str) -> DeviceTensor:
    """Return a tensor of the host in the memory of a device. Raises OperandTypeError,
    DeviceError."""
    data = as_data(obj)
    check(data)
    data = examined(data)
    return DeviceTensor(uploaded(data, target), kind_of(obj), target)


def kind_of(obj: Any) -> str:
    """Return an object's kind on the host: "ndarray", "tensor" or the name of SciPy's class."""
    if isinstance(obj, Tensor):
        return "tensor"
    if is_scipy_sparse(obj):
        name, form = type(obj).__name__, as_data(obj).format
        is_direct = name[:3] in ("csr", "csc", "coo")
        return name if is_direct else f"{'coo' if form.is_coo else 'csr'}{name[3:]}"
    dense = is_number(obj) or as_data(obj).format.is_dense
    return "ndarray" if dense else "tensor"


def describe_place(objects: Mapping[str, Any], target: str) -> str:
    """Describe the devices of operands and of the result, for explain(); "" for the CPU."""
    if target == "c":
        return ""
    resident = [name for name, obj in objects.items() if isinstance(obj, DeviceTensor)]
    over = [name for name in objects if name not in resident]
    if not resident:
        return f"device    operands go over to {target} in each call, and the result comes back\n"
    transfers = f"; {', '.join(over)} over there in each call" if over else ""
    return f"device    {', '.join(resident)} on {target}{transfers}; the result stays there\n"
