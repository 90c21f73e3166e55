"""Buffers of a CUDA device: memory of its pool, or of somebody else, with their last uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codegen.devices.cuda.cuda_array import CudaArray
from codegen.devices.cuda.cuda_streams import CudaStream, Use
from codegen.devices.cuda.device_pool import Block
from codegen.devices.device import Buffer

if TYPE_CHECKING:
    from codegen.devices.cuda.cuda_device import CudaDevice


class UseRecord:
    """The operations that wrote and read some memory last.

    Buffers whose memory overlaps, as those of two views of a tensor, have one record.
    """

    __slots__ = ("reads", "write")

    def __init__(self, write: tuple[Use, ...] = ()) -> None:
        self.write = write
        self.reads: dict[int, Use] = {}

    @property
    def uses(self) -> tuple[Use, ...]:
        """Return the uses that a write has to wait for."""
        return (*self.write, *self.reads.values())

    def add_write(self, use: Use) -> None:
        """Let later uses wait for `use` too."""
        remaining = (other for other in self.write if other.stream is not use.stream)
        self.write = (*remaining, use)


class CudaBuffer(Buffer):
    """Memory of a device, with the operations that wrote and read it last.

    block      of the pool, None for memory of somebody else, which `owner` keeps alive
    read_only  whether nothing may write into it
    shared     whether somebody else had its address, and may use it on streams of theirs
    """

    __slots__ = ("block", "owner", "read_only", "record", "shared")
    array_type = CudaArray
    device: CudaDevice

    def __init__(
        self,
        device: CudaDevice,
        address: int,
        size: int,
        name: str,
        block: Block | None = None,
        owner: object = None,
        read_only: bool = False,
    ) -> None:
        super().__init__(device, address, size, name)
        self.block = block
        self.owner = owner
        self.read_only = read_only
        self.record = UseRecord(() if block is None else block.uses)
        self.shared = False

    @property
    def is_own(self) -> bool:
        return self.owner is None and not self.shared

    @property
    def uses(self) -> tuple[Use, ...]:
        """Return the uses that a write has to wait for."""
        return self.record.uses

    def begin(self, stream: CudaStream, writes: bool) -> None:
        """Let `stream` wait for the earlier uses that its next operation on the buffer
        depends on.
        """
        stream.begin(self.record.uses if writes else self.record.write)

    def end(self, use: Use, writes: bool) -> None:
        """`use` has been begun."""
        if writes:
            self.record.write = (use,)
            self.record.reads.clear()
        else:
            self.record.reads[use.stream.serial] = use

    def overlaps(self, other: CudaBuffer) -> bool:
        """Tell whether some memory is of both."""
        return self.address < other.address + other.size and (
            other.address < self.address + self.size
        )

    def wait(self) -> None:
        """Let the host wait for all uses of the buffer."""
        for stream in {use.stream.serial: use.stream for use in self.uses}.values():
            stream.synchronize()

    def give_back(self) -> None:
        """Return the memory, once, to whom it belongs."""
        if self.block is not None:
            block, self.block = self.block, None
            uses, shared = self.uses, self.shared
            self.device.pool.give_back(Block(block.address, block.size, uses, shared))
        elif self.owner is not None:
            owner, self.owner = self.owner, None
            self.device.keep_until_over(owner, self.uses)

    def __del__(self) -> None:
        if hasattr(self, "shared"):
            self.give_back()
