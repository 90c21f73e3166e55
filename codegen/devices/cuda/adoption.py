"""Arrays of other libraries on a device, taken in place.

    __dlpack__                  the library makes the device's stream wait for its own
    __cuda_array_interface__    the stream that it names is waited for; none is named by torch

The first is preferred: it says the stream, and the memory's device.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from codegen.devices.cuda.cuda_array import KDL_CUDA, CudaArray
from codegen.devices.cuda.cuda_buffer import CudaBuffer
from codegen.devices.cuda.cuda_streams import CudaStream
from codegen.devices.device import DeviceError
from codegen.devices.device_array import c_strides, extent
from codegen.records import dataclass

if TYPE_CHECKING:
    from codegen.devices.cuda.cuda_device import CudaDevice

_MANAGED = 13
_CONTEXT, _DEVICE_ORDINAL = 1, 9


@dataclass(frozen=True, slots=True, eq=False)
class _Foreign:
    """Elements at `address` that somebody else owns."""

    address: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    strides: tuple[int, ...]
    read_only: bool
    owner: object


def is_on_device(obj: object) -> bool:
    """Tell whether `obj` offers memory of a CUDA device."""
    if hasattr(type(obj), "__dlpack_device__"):
        return bool(obj.__dlpack_device__()[0] in (KDL_CUDA, _MANAGED))  # type: ignore[attr-defined]
    return hasattr(obj, "__cuda_array_interface__")


def device_number(obj: Any) -> int | None:
    """Return the number of the device that has the memory of `obj`, None where it does not say."""
    if isinstance(obj, CudaArray):
        return obj.buffer.device.ordinal
    if hasattr(type(obj), "__dlpack_device__"):
        kind, number = obj.__dlpack_device__()
        return int(number) if kind == KDL_CUDA else None
    return None


def adopt(device: CudaDevice, obj: Any, name: str) -> CudaArray:
    """Return `obj` in place on `device`. Raises DeviceError for what is on no device, or another
    one."""
    if isinstance(obj, CudaArray):
        device.check_own(obj.buffer, 0, 0)
        return obj
    stream = current_stream(device, obj)
    on = device.stream_of(stream)
    if hasattr(obj, "__dlpack__"):
        foreign = _from_dlpack(device, obj, on)
    elif hasattr(obj, "__cuda_array_interface__"):
        foreign, stream = _from_interface(device, obj, stream)
        on = device.stream_of(stream)
    else:
        raise DeviceError(
            f"Expected an array on a device, found {type(obj).__name__}",
            hint="upload it, or pass an array with __dlpack__ or __cuda_array_interface__",
        )
    low, high = extent(foreign.shape, foreign.strides, foreign.dtype.itemsize)
    if high > low:
        _check_place(device, foreign.address, obj)
    buffer = CudaBuffer(
        device,
        foreign.address + low,
        high - low,
        name or f"{type(obj).__module__.partition('.')[0]} array",
        owner=foreign.owner,
        read_only=foreign.read_only,
    )
    with device.lock:
        device.share(buffer)
        buffer.record.add_write(on.end())  # other streams wait for what this one waited for
    array = CudaArray(buffer, foreign.shape, foreign.dtype, foreign.strides, -low)
    array.stream = None if stream is None else on
    return array


def current_stream(device: CudaDevice, obj: object) -> CudaStream | None:
    """Return the stream on which the library of `obj` works now, where it can be asked."""
    library = type(obj).__module__.partition(".")[0]
    module: Any = sys.modules.get(library)
    if library == "torch":
        return device.stream_of(module.cuda.current_stream(device.ordinal))
    if library == "cupy":
        return device.stream_of(module.cuda.get_current_stream())
    return None


def _from_dlpack(device: CudaDevice, obj: Any, on: CudaStream) -> _Foreign:
    from codegen.devices.cuda.dlpack import take_capsule

    kind, number = obj.__dlpack_device__()
    if kind not in (KDL_CUDA, _MANAGED):
        raise DeviceError(
            f"Expected an array on a device, found {type(obj).__name__} in the host's memory",
            hint="upload it",
        )
    if kind == KDL_CUDA and number != device.ordinal:
        raise _elsewhere(device, obj, number)
    try:
        try:
            capsule = obj.__dlpack__(stream=on.address, max_version=(1, 0))
        except TypeError:  # before DLPack 1.0
            capsule = obj.__dlpack__(stream=on.address)
    except (BufferError, RuntimeError) as error:
        raise DeviceError(
            f"Expected {type(obj).__name__} to be taken in place, found: {error}",
            hint="pass tensor.detach() where it takes part in automatic differentiation",
        ) from error
    tensor = take_capsule(capsule)
    strides = tensor.strides or c_strides(tensor.shape, tensor.dtype.itemsize)
    return _Foreign(
        tensor.address, tensor.shape, tensor.dtype, strides, tensor.read_only, (obj, tensor.owner)
    )


def _from_interface(
    device: CudaDevice, obj: Any, stream: CudaStream | None
) -> tuple[_Foreign, CudaStream | None]:
    facts = obj.__cuda_array_interface__
    if facts.get("mask") is not None:
        raise DeviceError(
            f"Expected an array without a mask, found {type(obj).__name__} with one",
            hint="fill what is masked",
        )
    address, read_only = facts["data"]
    dtype = np.dtype(facts["typestr"])
    shape = tuple(map(int, facts["shape"]))
    steps = facts.get("strides")
    strides = c_strides(shape, dtype.itemsize) if steps is None else tuple(map(int, steps))
    handle = facts.get("stream")
    if handle is not None:
        stream = device.stream_of(int(handle))
    return _Foreign(int(address or 0), shape, dtype, strides, bool(read_only), obj), stream


def _check_place(device: CudaDevice, address: int, obj: object) -> None:
    """Raise DeviceError unless `address` is memory of `device`."""
    ffi = device.driver.ffi
    number, context = ffi.new("int *"), ffi.new("CUcontext *")
    if device.call("cuPointerGetAttribute", number, _DEVICE_ORDINAL, address):
        raise DeviceError(
            f"Expected memory of {device.name}, found an address of {type(obj).__name__} that the "
            "driver does not have",
            hint="upload it",
        )
    if number[0] != device.ordinal:
        raise _elsewhere(device, obj, number[0])
    code = device.call("cuPointerGetAttribute", context, _CONTEXT, address)
    if not code and context[0] not in (ffi.NULL, device.context):
        raise DeviceError(
            f"Expected memory of the primary context of {device.name}, found {type(obj).__name__} "
            "of another context",
            hint="allocate it after cuDevicePrimaryCtxRetain, as torch, CuPy and JAX do",
        )


def _elsewhere(device: CudaDevice, obj: object, number: int) -> DeviceError:
    return DeviceError(
        f"Expected an array on {device.name}, found {type(obj).__name__} on cuda:{number}",
        hint="move one of them: all operands of a call are on one device",
    )
