"""What a device is to those that launch kernels: memory, modules of kernels, launches.

device = EmulatedDevice(cache)
x = device.allocate(4096, "x")
device.upload(x, numpy.arange(1024, dtype=numpy.float32))
module = device.load(text)
module.launch("scale", grid=4, block=256, arguments=[x, numpy.float32(2), numpy.int32(1024)])

Memory is the device's own: nothing is shared with the host, and nothing moves but by `upload` and
`download`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from codegen.machine.gpu import NOMINAL_GPU
from codegen.records import dataclass

if TYPE_CHECKING:
    from codegen.devices.device_array import DeviceArray

Array = NDArray[Any]
Size = int | tuple[int, ...]
"""Blocks of a grid or threads of a block: along x, or x and y, or x, y and z."""


class DeviceError(RuntimeError):
    """Something a device refuses. `hint` is the remedy, where there is one."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        self.message = message
        self.hint = hint
        super().__init__(message if hint is None else f"{message}\nhint: {hint}")


class LaunchError(DeviceError):
    """A launch that is refused, or that went wrong: `kernel` and `launch` say which."""

    def __init__(self, kernel: str, launch: str, message: str, hint: str | None = None) -> None:
        self.kernel = kernel
        self.launch = launch
        super().__init__(f"{launch}: {message}", hint)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one launch may ask for; by default, of the nominal GPU.

    threads        of a block, in all; along each axis: `block`
    grid           blocks along each axis
    shared_memory  bytes of a block
    warp           lanes of a warp
    """

    threads: int = NOMINAL_GPU.most_block_threads
    block: tuple[int, int, int] = (1024, 1024, 64)
    grid: tuple[int, int, int] = (2**31 - 1, 65535, 65535)
    static_shared_memory: int = NOMINAL_GPU.block_shared_bytes
    shared_memory: int = NOMINAL_GPU.requested_shared_bytes
    warp: int = NOMINAL_GPU.warp_threads


class Buffer:
    """Memory of a device: `size` bytes at `address`, under a name that errors tell.

    Usable until `free`, or until nothing refers to it.
    """

    __slots__ = ("__weakref__", "address", "device", "is_free", "name", "size")
    array_type: ClassVar[type[DeviceArray]]
    """What the elements of such a buffer are (`device_array`)."""

    def __init__(self, device: Device, address: int, size: int, name: str) -> None:
        self.device = device
        self.address = address
        self.size = size
        self.name = name
        self.is_free = False

    def at(self, offset: int) -> Pointer:
        """Return the place `offset` bytes behind the beginning, as an argument."""
        return Pointer(self, offset)

    @property
    def is_own(self) -> bool:
        """Tell whether the device has allocated it, and nobody else knows the memory."""
        return True

    def array(
        self,
        shape: Sequence[int],
        dtype: np.dtype[Any] | type | str,
        strides: Sequence[int] | None = None,
        offset: int = 0,
        constant: bool = False,
        mirror: Array | None = None,
    ) -> DeviceArray:
        """Return the buffer as elements, as DeviceArray has them; strides are in bytes."""
        return self.array_type(self, shape, np.dtype(dtype), strides, offset, constant, mirror)

    def free(self) -> None:
        """Give the memory back to the device."""
        self.device.free(self)

    def __repr__(self) -> str:
        return f"<buffer {self.name}, {self.size} bytes{', freed' if self.is_free else ''}>"


@dataclass(frozen=True, slots=True)
class Pointer:
    """A place in a buffer, `offset` bytes behind its beginning."""

    buffer: Buffer
    offset: int = 0


Argument = Buffer | Pointer | np.generic
"""Pointers, and numbers whose NumPy type is that of the parameter."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A grid of blocks of threads, with the bytes of dynamic shared memory of each block."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int = 0

    @property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def threads(self) -> int:
        """Return the number of threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]

    def text(self, kernel: str) -> str:
        """Return `kernel<<<(4, 1, 1), (256, 1, 1), 0>>>`"""
        return f"{kernel}<<<{self.grid}, {self.block}, {self.shared_bytes}>>>"


class Module(ABC):
    """Kernels of one text, loaded."""

    @property
    @abstractmethod
    def kernels(self) -> tuple[str, ...]:
        """Return the names of the kernels, in the order of the text."""

    @abstractmethod
    def launch(
        self,
        kernel: str,
        grid: Size,
        block: Size,
        shared_bytes: int = 0,
        arguments: Sequence[Argument] = (),
        stream: object = None,
    ) -> object:
        """Start `kernel`. Raises LaunchError, with the kernel, the launch and the remedy."""


class Device(ABC):
    """A device that kernels run on."""

    limits: Limits

    @abstractmethod
    def allocate(self, size: int, name: str = "") -> Buffer:
        """Return memory of `size` bytes, of which nothing is initialised. Raises DeviceError."""

    @abstractmethod
    def upload(self, buffer: Buffer, array: Array, offset: int = 0) -> None:
        """Copy the elements of `array`, in C order, to `offset` bytes behind the beginning."""

    @abstractmethod
    def download(self, buffer: Buffer, array: Array, offset: int = 0) -> None:
        """Copy from `offset` bytes behind the beginning of `buffer` until `array` is full."""

    @abstractmethod
    def fill(self, buffer: Buffer, byte: int = 0, *, offset: int = 0) -> None:
        """Set each byte of `buffer` from `offset` on, without waiting for it."""

    @abstractmethod
    def copy(self, to: Buffer, source: Buffer, size: int | None = None) -> None:
        """Copy the first `size` bytes of `source`, or all, to the beginning of `to`, without
        waiting for it."""

    @abstractmethod
    def free(self, buffer: Buffer) -> None:
        """Give the memory of `buffer` back; it is an error to use it afterwards."""

    @abstractmethod
    def load(self, text: str, options: Sequence[str] = ()) -> Module:
        """Compile the kernels of `text`, with more `options` of the compiler, and load them."""

    def synchronize(self) -> None:  # noqa: B027  nothing is left to wait for where launches wait
        """Wait for all started operations."""

    def clear_memory(self) -> None:  # noqa: B027  nothing is kept where memory is not pooled
        """Give back the memory that is kept for new buffers."""


def check_place(buffer: Buffer, size: int, offset: int) -> None:
    """Raise DeviceError unless `size` bytes at `offset` are in a buffer that is in use."""
    if buffer.is_free:
        raise DeviceError(
            f"Expected a buffer that is in use, found {buffer!r}",
            hint="free buffers when nothing needs them any more",
        )
    if offset < 0 or offset + size > buffer.size:
        raise DeviceError(
            f"Expected bytes 0 to {buffer.size} of buffer {buffer.name}, found {offset} to "
            f"{offset + size}",
            hint="allocate as many bytes as the array has",
        )


def check_shape(kernel: str, grid: Size, block: Size, shared_bytes: int, limits: Limits) -> Shape:
    """Return the shape of a launch. Raises LaunchError for one beyond the limits, which it
    names."""
    shape = Shape(_three(grid), _three(block), shared_bytes)
    launch = shape.text(kernel)
    for what, sizes, most in (
        ("grid", shape.grid, limits.grid),
        ("block", shape.block, limits.block),
    ):
        for axis, size, limit in zip("xyz", sizes, most, strict=True):
            if not 1 <= size <= limit:
                raise LaunchError(
                    kernel,
                    launch,
                    f"Expected a {what} of 1 to {limit} along {axis}, found {size}",
                    hint="launch nothing where there is nothing to do" if size == 0 else None,
                )
    if shape.threads > limits.threads:
        raise LaunchError(
            kernel,
            launch,
            f"Expected at most {limits.threads} threads a block, found {shape.threads}",
            hint="use smaller blocks and more of them",
        )
    if not 0 <= shared_bytes <= limits.shared_memory:
        raise LaunchError(
            kernel,
            launch,
            f"Expected at most {limits.shared_memory} bytes of shared memory, found {shared_bytes}",
            hint="use smaller tiles",
        )
    return shape


def _three(size: Size) -> tuple[int, int, int]:
    x, y, z = (*((size,) if isinstance(size, int) else size), 1, 1)[:3]
    return int(x), int(y), int(z)
