"""A device that runs kernels of CUDA on the CPU and checks each access to memory.

cache = KernelCache()
device = EmulatedDevice(cache, seed=3)          # another seed, another order of threads
record = device.load(text).launch("spmv", 4, 128, 0, [pos, crd, vals, x, y, numpy.int32(n)])

A launch in which something is wrong raises EmulationError, with reports: accesses out of bounds and
to uninitialised or misaligned memory, races, barriers that not all reach, loops without an end. So
does a download of bytes that nobody uploaded or wrote.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from codegen.devices.device import Array, Buffer, Device, DeviceError, Limits, check_place
from codegen.devices.emulated_memory import Checks, EmulatedBuffer
from codegen.devices.emulated_module import EmulatedModule
from codegen.devices.emulation_library import load_library
from codegen.devices.launch_record import Launch
from codegen.devices.reports import EmulationError, Fault, Report
from codegen.runtime.kernel_cache import KernelCache


class EmulatedDevice(Device):
    """A device of one CPU core. `seed` draws the order of blocks, warps and lanes of each launch.

    Launches have ended when `launch` returns. One runs at a time in a process.
    """

    def __init__(
        self,
        cache: KernelCache,
        seed: int = 0,
        checks: bool = True,
        counting: bool = False,
        most_steps: int = 2**28,
        stack: int = 64 * 1024,
        limits: Limits | None = None,
    ) -> None:
        self.limits = Limits() if limits is None else limits
        self.seed = seed
        self.checks = Checks(checks, counting, most_steps, stack)
        self._cache = cache
        self._buffers: weakref.WeakSet[EmulatedBuffer] = weakref.WeakSet()
        self._stacks: Array = np.empty(0, np.uint8)
        self._made = 0
        self._records: list[Launch] | None = None
        self.epoch = 0
        self.renewals = 0

    def allocate(self, size: int, name: str = "") -> EmulatedBuffer:
        if size < 0:
            raise DeviceError(f"Expected a size of 0 bytes or more, found {size}")
        self._made += 1
        try:
            buffer = EmulatedBuffer(self, size, name or f"buffer {self._made}")
        except MemoryError as error:
            raise DeviceError(
                f"Expected {size} bytes for {name or 'a buffer'}, found no such memory free",
                hint="free what is no longer needed",
            ) from error
        self._buffers.add(buffer)
        return buffer

    def upload(self, buffer: Buffer, array: Array, offset: int = 0) -> None:
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        mine = self._check_own(buffer, flat.size, offset)
        mine.data[offset : offset + flat.size] = flat
        mine.valid[offset : offset + flat.size] = 1

    def download(self, buffer: Buffer, array: Array, offset: int = 0) -> None:
        mine = self._check_own(buffer, array.nbytes, offset)
        if not array.flags.c_contiguous:
            raise DeviceError(
                "Expected an array whose elements lie one after the other in C order",
                hint="download into numpy.empty(shape, dtype)",
            )
        end = offset + array.nbytes
        if self.checks.memory and not mine.valid[offset:end].all():
            raise _nothing_there(mine, offset, end)
        array.reshape(-1).view(np.uint8)[:] = mine.data[offset:end]

    def fill(self, buffer: Buffer, byte: int = 0, *, offset: int = 0) -> None:
        mine = self._check_own(buffer, 0, offset)
        mine.data[offset:] = byte
        mine.valid[offset:] = 1

    def copy(self, to: Buffer, source: Buffer, size: int | None = None) -> None:
        count = source.size if size is None else size
        aim, mine = self._check_own(to, count, 0), self._check_own(source, count, 0)
        aim.data[:count] = mine.data[:count]
        aim.valid[:count] = mine.valid[:count]

    def free(self, buffer: Buffer) -> None:
        mine = self._check_own(buffer, 0, 0)
        mine.is_free = True
        mine.cells = None

    def load(self, text: str, options: Sequence[str] = ()) -> EmulatedModule:
        return EmulatedModule(self, text, load_library(self._cache, text, tuple(options)))

    @contextmanager
    def counted_launches(self) -> Iterator[list[Launch]]:
        """Count bytes, sectors and accesses within the context: a list that each launch joins."""
        checks, records = self.checks, self._records
        self.checks = replace(checks, counting=True)
        self._records = []
        try:
            yield self._records
        finally:
            self.checks, self._records = checks, records

    def note(self, launch: Launch) -> None:
        """Add the record of a launch to the list of `counted_launches`."""
        if self._records is not None:
            self._records.append(launch)

    def stacks(self, threads: int) -> Array:
        """Return memory for the stacks of so many threads."""
        size = self.checks.stack * (threads + 1)
        if self._stacks.size < size:
            self._stacks = np.empty(size, np.uint8)
        return self._stacks

    def buffers(self) -> list[EmulatedBuffer]:
        """Return the buffers in use."""
        return [buffer for buffer in self._buffers if not buffer.is_free]

    def renew(self) -> None:
        """Forget who used which memory: the counter of epochs begins again."""
        self.epoch = 0
        self.renewals += 1
        for buffer in self._buffers:
            buffer.cells = None

    def _check_own(self, buffer: Buffer, size: int, offset: int) -> EmulatedBuffer:
        """Return `buffer`, if `size` bytes at `offset` are in it. Raises DeviceError."""
        if not isinstance(buffer, EmulatedBuffer) or buffer.device is not self:
            raise DeviceError(
                f"Expected a buffer of this device, found {buffer!r} of another one",
                hint="download it there, and upload it here",
            )
        check_place(buffer, size, offset)
        return buffer


def _nothing_there(buffer: EmulatedBuffer, offset: int, end: int) -> EmulationError:
    """Return the report of a download of bytes that nobody uploaded or wrote."""
    empty = np.flatnonzero(buffer.valid[offset:end] == 0)
    first = offset + int(empty[0])
    detail = (
        f"download of bytes {offset} to {end} of {buffer.name}, of which {empty.size} are not "
        f"initialised, the first one at byte {first}"
    )
    report = Report(Fault.UNINITIALISED, "", None, None, buffer.name, first, empty.size, detail, "")
    return EmulationError("", f"download of {buffer.name}", (report,))
