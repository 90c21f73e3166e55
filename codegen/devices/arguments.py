"""The arguments of a launch, compared with the parameters of the kernel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codegen.devices.device import Argument, Buffer, Device, LaunchError, Pointer, Shape
from codegen.records import dataclass

_KINDS = {"i": 1, "u": 2, "b": 2, "f": 3}
_NAMES = {1: "int", 2: "uint", 3: "float"}


@dataclass(frozen=True, slots=True)
class ParameterType:
    """A parameter: "pointer", "int", "uint" or "float" by `kind` 0 to 3, of `size` bytes."""

    name: str
    kind: int
    size: int

    @property
    def expected(self) -> str:
        """Describe the argument that the parameter takes."""
        if self.kind == 0:
            return "a buffer"
        if self.kind == 2 and self.size == 1:
            return "numpy.uint8 or numpy.bool_"
        return f"numpy.{_NAMES[self.kind]}{8 * self.size}"


def argument_bytes(
    kernel: str,
    shape: Shape,
    parameters: Sequence[ParameterType],
    arguments: Sequence[Argument],
    device: Device,
) -> list[bytes]:
    """Return the bytes of each parameter.

    Raises LaunchError for a wrong number or type of arguments, and buffers that are freed or of
    another device.
    """
    launch = shape.text(kernel)
    if len(arguments) != len(parameters):
        names = ", ".join(parameter.name for parameter in parameters)
        raise LaunchError(
            kernel,
            launch,
            f"Expected {len(parameters)} arguments ({names}), found {len(arguments)}",
        )
    pairs = zip(parameters, arguments, strict=True)
    return [_bytes(kernel, launch, parameter, value, device) for parameter, value in pairs]


def _bytes(
    kernel: str, launch: str, parameter: ParameterType, value: Argument, device: Device
) -> bytes:
    if isinstance(value, Buffer | Pointer) and parameter.kind == 0:
        pointer = value if isinstance(value, Pointer) else Pointer(value)
        _check_buffer(kernel, launch, parameter, pointer, device)
        return (pointer.buffer.address + pointer.offset).to_bytes(8, "little")
    if isinstance(value, np.generic):
        kind, size = _KINDS.get(value.dtype.kind, 0), value.dtype.itemsize
        if kind and (kind, size) == (parameter.kind, parameter.size):
            return value.tobytes()
        type_text = f"numpy.{value.dtype}"
    else:
        type_text = "a buffer" if isinstance(value, Buffer | Pointer) else type(value).__name__
    raise LaunchError(
        kernel,
        launch,
        f"Expected {parameter.expected} for the parameter {parameter.name}, found {type_text}",
        hint="NumPy's types of scalars say which type of CUDA is meant"
        if isinstance(value, int | float)
        else None,
    )


def _check_buffer(
    kernel: str, launch: str, parameter: ParameterType, pointer: Pointer, device: Device
) -> None:
    buffer = pointer.buffer
    if buffer.device is not device:
        raise LaunchError(
            kernel,
            launch,
            f"Expected a buffer of this device for {parameter.name}, found {buffer!r} of another",
            hint="download it there, and upload it here",
        )
    if buffer.is_free:
        raise LaunchError(
            kernel,
            launch,
            f"Expected a buffer that is in use for {parameter.name}, found {buffer!r}",
            hint="free buffers when no launch needs them any more",
        )
    if not 0 <= pointer.offset <= buffer.size:
        raise LaunchError(
            kernel,
            launch,
            f"Expected a place in {buffer.name} for {parameter.name}, found byte {pointer.offset} "
            f"of {buffer.size}",
        )
