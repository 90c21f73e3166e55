"""What Python functions of hosts (emit.host_python) call: a device's memory, and launches.

host = Host(device, module)
y = host.array(numpy.zeros(n)); x = host.array(x)
host.launch("evaluate_1", n, 256, (y, x, host.number(n, "int64")))
host.device.download(y.buffer, result)
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import numpy as np

from codegen.devices.device import Argument, Array, Buffer, Device, Module, Pointer
from codegen.devices.device_array import DeviceArray

MOST_BLOCKS = 1 << 16
"""Blocks of a grid: threads of larger grids have several iterations each."""


class GrowingArray:
    """An array of a device that the host makes longer; `length` of its elements are a result."""

    __slots__ = ("array", "dtype", "length")

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self.array: DeviceArray | None = None
        self.length = 0

    @property
    def room(self) -> int:
        """Return the elements that there is memory for."""
        return 0 if self.array is None else self.array.size

    @property
    def pointer(self) -> Pointer:
        """Return the first element. Raises ValueError where there is no memory."""
        if self.array is None:
            raise ValueError("Expected an array that has elements, found one without room")
        return self.array.pointer

    def element(self, index: int) -> Any:
        """Return one element, as a Python number."""
        if self.array is None:
            raise ValueError("Expected an array that has elements, found one without room")
        return self.array.element(index)


def _argument(value: Any) -> Argument:
    """Return the kernel argument of a value: the address of an array, or a number."""
    argument: Argument = getattr(value, "pointer", value)
    return argument


def memory_of(array: Array) -> tuple[Array, int]:
    """Return the memory of an array as one row of elements, and the position of its first element.

    Gaps between its elements are part of the memory, as of x[::2].
    """
    size = array.itemsize
    if array.flags.c_contiguous or not array.size:
        return array.reshape(-1), 0
    if any(stride % size for stride in array.strides):
        raise ValueError(f"Expected strides that are multiples of {size}, found {array.strides}")
    ends = [(n - 1) * stride // size for n, stride in zip(array.shape, array.strides, strict=True)]
    before = -sum(min(0, end) for end in ends)
    length = before + sum(max(0, end) for end in ends) + 1
    lowest = array[tuple(slice(-1, None) if end < 0 else slice(0, 1) for end in ends)]
    row = np.lib.stride_tricks.as_strided(lowest, (length,), (size,), writeable=False)
    return row, before


class Host:
    """The host's side of kernels on one device."""

    def __init__(self, device: Device, module: Module | None) -> None:
        self.device = device
        self._module = module

    def array(self, array: Array, name: str = "", constant: bool = True) -> DeviceArray:
        """Return an array of the host on the device; `constant` promises that no kernel changes
        it."""
        row, first = memory_of(array)
        buffer = self._memory(row.nbytes, name)
        if row.size:
            self.device.upload(buffer, row)
        offset, mirror = first * row.itemsize, array if constant else None
        return buffer.array(array.shape, row.dtype, array.strides, offset, constant, mirror)

    def _memory(self, size: int, name: str = "") -> Buffer:
        """Return memory of whole words: a byte is updated in the word of four bytes that it is part
        of.

        The bytes behind the last element are zero: no update of it reads what nobody wrote.
        """
        rest = -size % 4
        buffer = self.device.allocate(size + rest, name)
        if rest:
            self.device.fill(buffer, 0, offset=size)
        return buffer

    def allocate(self, size: int, dtype: str, zero: bool) -> DeviceArray:
        """Return a new array, all zero or not initialised."""
        kind = np.dtype("uint16" if dtype == "bfloat16" else dtype)
        buffer = self._memory(max(0, size) * kind.itemsize)
        if zero:
            self.device.fill(buffer, 0)
        return buffer.array((max(0, size),), kind)

    def reserve(self, array: GrowingArray, size: int) -> None:
        """Reserve room for `size` elements in total, with the present elements preserved.

        Raises MemoryError where the device has no such room.
        """
        if array.array is not None and size <= array.room:
            return
        larger = self.allocate(size, array.dtype.name, False)
        if array.array is not None and array.room:
            self.device.copy(larger.buffer, array.array.buffer, array.array.nbytes)
        array.array = larger

    def set_length(self, array: GrowingArray, size: int, limit: int | None) -> None:
        """Say how many elements an array has. Raises OverflowError beyond the limit."""
        if limit is not None and size > limit:
            raise OverflowError(f"Expected at most {limit} elements, found {size}")
        array.length = size

    def grown(self, array: GrowingArray) -> DeviceArray:
        """Return the elements of an array that grows no more."""
        elements = self.allocate(0, array.dtype.name, False) if array.array is None else array.array
        return elements.buffer.array((array.length,), array.dtype, constant=True)

    def element(self, array: DeviceArray | GrowingArray, index: int) -> Any:
        """Return one element, as a Python number."""
        return array.element(index)

    def search(self, array: DeviceArray | GrowingArray, start: int, stop: int, value: int) -> int:
        """Return the first place in `array[start:stop]` with at least a value, else `stop`."""
        places = range(start, stop)
        return start + bisect_left(places, value, key=lambda place: self.element(array, place))

    def expect(self, condition: bool) -> None:
        """Raise ValueError, as functions of C do, unless a condition of the function holds."""
        if not condition:
            raise ValueError("what the function relies on does not hold")

    def number(self, value: Any, dtype: str) -> np.generic:
        """Return a scalar argument of a kernel."""
        number: np.generic = np.dtype(dtype).type(value)
        return number

    def launch(self, kernel: str, threads: int, block: int, arguments: Sequence[Any]) -> None:
        """Run a kernel by so many threads, nothing where there are none."""
        if threads <= 0 or self._module is None:
            return
        grid = min(-(-threads // block), MOST_BLOCKS)
        kernel_arguments = [_argument(value) for value in arguments]
        self._module.launch(kernel, grid, min(block, self._round(threads)), 0, kernel_arguments)

    def _round(self, threads: int) -> int:
        """Round the thread count up to full warps."""
        warp = self.device.limits.warp
        return -(-threads // warp) * warp
