"""Elements in a buffer of a CUDA device, as other libraries take and give them.

a = device.adopt(tensor)                 # torch, CuPy, numba, JAX: in place, kept alive, waited for
module.launch("k", 1, 128, 0, [a.pointer, …])
torch.from_dlpack(buffer.array((3, 4), "f4"))          # likewise in place
cupy.asarray(buffer.array((3, 4), "f4"))               # by __cuda_array_interface__
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codegen.devices.cuda.cuda_streams import CudaStream
from codegen.devices.device_array import DeviceArray

if TYPE_CHECKING:
    from codegen.devices.cuda.cuda_buffer import CudaBuffer

KDL_CUDA = 2


class CudaArray(DeviceArray):
    """An array of a GPU, which others may take in place.

    stream  on which the library that gave it works, None where it does not say
    """

    __slots__ = ("stream",)

    buffer: CudaBuffer

    def __init__(self, *facts: Any, **more: Any) -> None:
        super().__init__(*facts, **more)
        self.stream: CudaStream | None = None

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Return version 3 of the protocol, whose stream the consumer waits for."""
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
        """Return a capsule of DLPack; `stream` waits for what was begun on the buffer.

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
        """Return the address of the first element, for others. Raises DeviceError for a freed
        buffer."""
        buffer = self.buffer.device.check_own(self.buffer, 0, 0)
        buffer.device.share(buffer)
        return buffer.address + self.offset if self.size else 0
