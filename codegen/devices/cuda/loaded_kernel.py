"""A kernel that the driver has loaded, and where the arguments of its launches are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from codegen.devices.arguments import ParameterType, argument_bytes
from codegen.devices.cuda.cuda_buffer import CudaBuffer
from codegen.devices.cuda.parameter_types import KernelParameters
from codegen.devices.device import Argument, Device, LaunchError, Pointer, Shape
from codegen.records import dataclass

_LETTERS = {1: "i", 2: "u", 3: "f"}
Value = int | bytes
"""An address, or the bytes of a number."""


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """What the driver says of a kernel that is loaded.

    threads       of a block, at most, by the registers that the kernel needs
    registers     of a thread
    shared_bytes  of the variables of a block whose size the text tells
    local_bytes   of a thread's own memory: arrays, and registers that were spilled
    """

    threads: int
    registers: int
    shared_bytes: int
    local_bytes: int


class LoadedKernel:
    """`handle` is the driver's, `dynamic_bytes` the most shared memory that it was told of."""

    def __init__(
        self, ffi: Any, name: str, handle: Any, parameters: KernelParameters, facts: KernelFacts
    ) -> None:
        self.name = name
        self.handle = handle
        self.facts = facts
        self.dynamic_bytes = 0
        self._parameters = parameters
        count = len(parameters.types)
        self._slots = ffi.new("uint64_t[]", count + 1)
        self._bytes = ffi.buffer(self._slots)
        self.pointers = ffi.new("void *[]", [self._slots + i for i in range(count + 1)])
        dtypes = (_dtype(kind) for kind in parameters.types)
        self._wanted = tuple(zip(dtypes, parameters.writes, strict=True))

    def bind(
        self, shape: Shape, arguments: Sequence[Argument], device: Device
    ) -> tuple[list[Value], dict[CudaBuffer, bool]]:
        """Return the values of the parameters, and for each buffer whether the kernel writes it.

        Raises LaunchError for arguments that are not those of the parameters.
        """
        values: list[Value] = []
        buffers: dict[CudaBuffer, bool] = {}
        if len(arguments) != len(self._wanted):
            return self._bind_carefully(shape, arguments, device)
        for argument, (dtype, writes) in zip(arguments, self._wanted, strict=True):
            if dtype is not None:
                if not isinstance(argument, np.generic) or argument.dtype != dtype:
                    return self._bind_carefully(shape, arguments, device)
                values.append(argument.tobytes())
                continue
            buffer = argument.buffer if isinstance(argument, Pointer) else argument
            offset = argument.offset if isinstance(argument, Pointer) else 0
            if not isinstance(buffer, CudaBuffer) or not _may_use(buffer, offset, writes, device):
                return self._bind_carefully(shape, arguments, device)
            values.append(buffer.address + offset)
            buffers[buffer] = writes or buffers.get(buffer, False)
        return values, buffers

    def write(self, values: Sequence[Value]) -> None:
        """Put the values where `pointers` point to; the launch copies them."""
        slots, data = self._slots, self._bytes
        for place, value in enumerate(values):
            if isinstance(value, int):
                slots[place] = value
            else:
                data[8 * place : 8 * place + len(value)] = value

    def _bind_carefully(
        self, shape: Shape, arguments: Sequence[Argument], device: Device
    ) -> tuple[list[Value], dict[CudaBuffer, bool]]:
        """Return the same values for rare arguments, with precise errors for wrong ones."""
        types = self._parameters.types
        values = argument_bytes(self.name, shape, types, arguments, device)
        buffers: dict[CudaBuffer, bool] = {}
        for argument, kind, writes in zip(arguments, types, self._parameters.writes, strict=True):
            buffer = argument.buffer if isinstance(argument, Pointer) else argument
            if not isinstance(buffer, CudaBuffer):
                continue
            if writes and buffer.read_only:
                raise LaunchError(
                    self.name,
                    shape.text(self.name),
                    f"Expected a buffer that can be written for {kind.name}, found {buffer!r}, "
                    "which its owner has made read-only",
                    hint="copy it into a buffer of the device",
                )
            buffers[buffer] = writes or buffers.get(buffer, False)
        return list(values), buffers


def _may_use(buffer: CudaBuffer, offset: int, writes: bool, device: Device) -> bool:
    return (
        buffer.device is device
        and not buffer.is_free
        and not (writes and buffer.read_only)
        and 0 <= offset <= buffer.size
    )


def _dtype(kind: ParameterType) -> np.dtype[Any] | None:
    """Return the type of the numbers for a parameter, None for a pointer."""
    return np.dtype(f"{_LETTERS[kind.kind]}{kind.size}") if kind.kind else None
