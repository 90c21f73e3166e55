"""`device`: operands in the memory of a GPU, where calls over them compute."""

from __future__ import annotations

from typing import Any

from taco_py.arguments.device_tensor import DeviceTensor
from taco_py.arguments.option_checks import check_target
from taco_py.calls.call.devices.on_device import to_device
from taco_py.calls.call.devices.placed import adopted
from taco_py.language.diagnostics.errors import OperandTypeError


def device(obj: Any, target: str = "cuda") -> DeviceTensor:
    """Copy a tensor to the memory of a GPU, where calls over it compute and leave their results.

    >>> dA = tp.device(sp.csr_array([[1.0, 0.0], [2.0, 3.0]]), target="cuda-emulated")
    >>> tp.einsum("ij,jk->ik", dA, dA).to_host().toarray()
    array([[1., 0.],
           [8., 9.]])

    obj     a Tensor, scipy.sparse array, NumPy array, number or list; an array that another library
            has on the GPU already is taken in place
    target  "cuda", or "cuda-emulated" for kernels that run on the CPU

    What is known of a sparse tensor's coordinates is looked at once. Raises OperandTypeError, and
    DeviceError where there is no such device.
    """
    if check_target(target) == "c":
        raise OperandTypeError(
            "Expected the name of a GPU for target, found 'c', whose operands stay where they are",
            hint='target="cuda-emulated" needs no GPU',
        )
    if isinstance(obj, DeviceTensor):
        if obj.target == target:
            return obj
        return device(obj.to_host(), target)
    tensor = adopted(obj, target)
    if isinstance(tensor, DeviceTensor):
        return tensor
    return to_device(obj, target)
