"""Elements in a buffer of a CUDA device, as other libraries take and give them.

a = device.adopt(tensor)                 # torch, CuPy, numba, JAX: in place, kept alive, waited for
module.launch("k", 1, 128, 0, [a.pointer, …])
torch.from_dlpack(buffer.array((3, 4), "f4"))          # likewise in place
cupy.asarray(buffer.array((3, 4), "f4"))               # by __cuda_array_interface__
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from codegen.devices.cuda.cuda_streams import CudaStream
from codegen.devices.device import DeviceError, Pointer

if TYPE_CHECKING:
    from codegen.devices.cuda.cuda_buffer import CudaBuffer

KDL_CUDA = 2


class DeviceArray:
    """Elements of `dtype` in `buffer`, the first one `offset` bytes behind its beginning.

    strides  in bytes; those of C order where they are left out
    stream   on which the library that gave it works, None where it does not say
    """

    def __init__(
        self,
        buffer: CudaBuffer,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        strides: Sequence[int] | None = None,
        offset: int = 0,
        stream: CudaStream | None = None,
    ) -> None:
        self.buffer = buffer
        self.shape = shape
        self.dtype = dtype
        self.strides = c_strides(shape, dtype.itemsize) if strides is None else tuple(strides)
        self.offset = offset
        self.stream = stream
        low, high = extent(shape, self.strides, dtype.itemsize)
        if offset + low < 0 or offset + high > buffer.size:
            raise DeviceError(
                f"Expected elements in the {buffer.size} bytes of {buffer.name}, found bytes "
                f"{offset + low} to {offset + high}",
                hint="see the shape, the strides and the type of the elements",
            )

    @property
    def pointer(self) -> Pointer:
        """The first element, as an argument of kernels."""
        return self.buffer.at(self.offset)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie one after the other in C order."""
        usual = c_strides(self.shape, self.dtype.itemsize)
        return self.size == 0 or all(
            count == 1 or stride == want
            for count, stride, want in zip(self.shape, self.strides, usual, strict=True)
        )

    def to_host(self) -> np.ndarray[Any, Any]:
        """The elements, copied."""
        low, high = extent(self.shape, self.strides, self.dtype.itemsize)
        data = np.empty(high - low, np.uint8)
        self.buffer.device.download(self.buffer, data, self.offset + low)
        found: np.ndarray[Any, Any] = np.ndarray(
            self.shape, self.dtype, data, -low if self.size else 0, self.strides
        )
        return np.array(found, order="C")

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Version 3 of the protocol: whoever takes it waits for the stream that it names."""
        address = self._lend()
        stream = None
        if self.buffer.uses:
            on = self.buffer.uses[0].stream
            self.buffer.device.let_wait(on, [self.buffer])
            stream = on.address
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (address, self.buffer.read_only),
            "strides": None if self.is_contiguous else self.strides,
            "version": 3,
            "stream": stream,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return (KDL_CUDA, self.buffer.device.ordinal)

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """A capsule of DLPack; `stream` waits for what was begun on the buffer.

        stream  1 or None is the default stream, -1 waits for nothing
        """
        from codegen.devices.cuda.dlpack import make_capsule

        if copy or dl_device not in (None, self.__dlpack_device__()):
            raise BufferError("Expected to be taken in place on the same device: copy it there")
        versioned = max_version is not None and max_version[0] >= 1
        if self.buffer.read_only and not versioned:
            raise BufferError(f"{self.buffer!r} is read-only, which DLPack before 1.0 cannot say")
        address = self._lend()
        if stream != -1:
            self.buffer.device.let_wait(1 if stream is None else stream, [self.buffer])
        return make_capsule(self, address, self.__dlpack_device__(), versioned)

    def _lend(self) -> int:
        """The address of the first element, for others. Raises DeviceError for a freed buffer."""
        buffer = self.buffer.device.own(self.buffer, 0, 0)
        buffer.device.share(buffer)
        return buffer.address + self.offset if self.size else 0

    def __repr__(self) -> str:
        return f"<array of {self.shape} {self.dtype} in {self.buffer!r}>"


def c_strides(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Bytes between neighbours along each axis, in C order."""
    strides: list[int] = []
    for count in reversed(shape):
        strides.append(itemsize)
        itemsize *= max(count, 1)
    return tuple(reversed(strides))


def extent(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> tuple[int, int]:
    """The bytes that elements take, counted from the first one: (-8, 16)."""
    if 0 in shape:
        return (0, 0)
    ends = [(count - 1) * stride for count, stride in zip(shape, strides, strict=True)]
    return sum(end for end in ends if end < 0), sum(end for end in ends if end > 0) + itemsize
