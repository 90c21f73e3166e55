"""Where a call computes: on the device that its operands are on, or where `target=` says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from taco_py.arguments.device_tensor import DeviceTensor, targets_of
from taco_py.data.interop.foreign import kind_of
from taco_py.data.interop.scipy_arrays import is_scipy_sparse
from taco_py.data.storage.borrow import require_dtype
from taco_py.data.tensors.tensor import Tensor
from taco_py.language.diagnostics.errors import DeviceError, OperandTypeError

GPU = "cuda"
"""The device of operands that other libraries have on a GPU."""


def placed(
    objects: Mapping[str, Any], target: str | None, masks: Sequence[Any] = ()
) -> tuple[dict[str, Any], str]:
    """Return the operands on the device where the call computes, and the name of its target.

    target  what the user asks for, None where nothing
    masks   which have to be there too

    Raises DeviceError for operands on several devices, or on another one than `target`.
    """
    operands = {name: adopted(obj, target or GPU) for name, obj in objects.items()}
    all_arrays = {**operands, **dict(zip(("the mask",), masks, strict=False))}
    places = targets_of(all_arrays.values())
    if len(places) > 1 or (places and target not in (None, *places)):
        raise _devices_error(all_arrays, target)
    for obj in all_arrays.values():
        if isinstance(obj, DeviceTensor):
            obj.require_memory()
    return operands, target or (places[0] if places else "c")


def placed_operands(
    operands: tuple[Any, ...], target: str | None, masks: Sequence[Any] = ()
) -> tuple[tuple[Any, ...], str]:
    """Return `placed` of operands without names, subscripts among them."""
    first = 1 if operands and isinstance(operands[0], str) else 0
    objects = {f"operand {place - first}": obj for place, obj in enumerate(operands)}
    placed_by_name, target = placed(objects, target, masks)
    return tuple(placed_by_name.values()), target


def adopted(obj: Any, target: str) -> Any:
    """Return the tensor that another library has in the memory of a GPU, in place; all else as it
    is.

    Raises DeviceError for one on another GPU than `target`.
    """
    usual = (DeviceTensor, np.ndarray, np.generic, Tensor, int, float, complex, str, list, tuple)
    if isinstance(obj, usual) or is_scipy_sparse(obj):
        return obj
    if not (hasattr(obj, "__dlpack_device__") or hasattr(obj, "__cuda_array_interface__")):
        return obj
    from codegen.devices.cuda.adoption import is_on_device
    from taco_py.compiler.devices import gpu, refusals
    from taco_py.data.interop.numpy_arrays import dense_of

    if not is_on_device(obj):
        return obj
    with refusals():
        array: Any = gpu(GPU).adopt(obj)
    _require_readable(array, obj)
    return DeviceTensor(dense_of(array), "ndarray", GPU)


def _require_readable(array: Any, obj: object) -> None:
    """Raise OperandTypeError unless kernels can read another library's array in place."""
    kind = kind_of(obj)
    require_dtype(array.dtype, f"an array of {kind}")
    size = array.dtype.itemsize
    gaps = any(stride % size for stride in array.strides)
    if array.size and (gaps or (array.buffer.address + array.offset) % size):
        raise OperandTypeError(
            f"Expected elements of {size} bytes at multiples of {size} for {array.dtype}, found "
            f"{kind} with others",
            hint="pass a copy of it",
        )


def _devices_error(objects: Mapping[str, Any], target: str | None) -> DeviceError:
    """Return the error of operands that are not where the call computes."""
    where = [
        f"{name} on {obj.target}" for name, obj in objects.items() if isinstance(obj, DeviceTensor)
    ]
    place = "one device" if target is None else f"target={target!r}"
    return DeviceError(
        f"Expected all operands on the host or on {place}, found {', '.join(where)}",
        hint="bring others to the host by .to_host()"
        if target in (None, "c")
        else f"move them: tp.device(A, target={target!r})",
    )
