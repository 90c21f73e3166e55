"""Buffers of the emulated device, with what is known of each of their bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from codegen.devices.device import Buffer, Device
from codegen.devices.device_array import DeviceArray
from codegen.records import dataclass

_ZONE = 64 * 1024  # bytes around a buffer that no other has
_POISON = 0xAB


class EmulatedBuffer(Buffer):
    """A buffer with what is known of each of its bytes."""

    __slots__ = ("cells", "data", "memory", "shift", "valid")
    array_type = DeviceArray

    def __init__(self, device: Device, size: int, name: str) -> None:
        self.memory = np.empty(size + 2 * _ZONE + 256, np.uint8)
        start = -(self.memory.ctypes.data + _ZONE) % 256 + _ZONE
        self.data = self.memory[start : start + size]
        self.data.fill(_POISON)
        self.valid = np.zeros(size, np.uint8)
        self.cells: Any = None
        self.shift = 0
        super().__init__(device, self.memory.ctypes.data + start, size, name)


@dataclass(frozen=True, slots=True)
class Checks:
    """What an emulated device does besides running.

    memory      whether it looks for races and uninitialised memory; bounds are always checked
    counting    whether launches count bytes, sectors and accesses
    most_steps  of a thread: straight pieces of code and accesses, after which it has no end
    stack       bytes of a thread's own memory
    """

    memory: bool = True
    counting: bool = False
    most_steps: int = 2**28
    stack: int = 64 * 1024
