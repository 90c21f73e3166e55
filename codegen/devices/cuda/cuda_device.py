"""A GPU, through the driver of CUDA.

device = CudaDevice(cache)                       # the first; opened when it is first needed
x = device.allocate(4096, "x")
device.upload(x, numpy.arange(1024, dtype=numpy.float32))
module = device.load(text)                       # compiled by nvcc or NVRTC unless it is kept
module.launch("scale", 4, 256, 0, [x, numpy.float32(2), numpy.int32(1024)])
device.download(x, result)                       # waits

Launches, uploads and fills are begun on a stream and not waited for. The device's own stream is a
blocking one: kernels that others start on the default stream come before or after, in the order of
the calls. What goes wrong in a kernel is therefore told by a later call, with the launches that may
have done it; `blocking=True` waits for each launch, and tells which.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from codegen.devices.cuda.adoption import adopt
from codegen.devices.cuda.binaries import CudaBinaries
from codegen.devices.cuda.cuda_array import CudaArray
from codegen.devices.cuda.cuda_buffer import CudaBuffer, UseRecord
from codegen.devices.cuda.cuda_module import CudaLaunch, CudaModule
from codegen.devices.cuda.cuda_streams import (
    LEGACY,
    CudaStream,
    Use,
    no_stream,
    stream_handle,
)
from codegen.devices.cuda.device_facts import DeviceFacts, device_facts
from codegen.devices.cuda.device_pool import Block, DevicePool
from codegen.devices.cuda.driver_errors import (
    OUT_OF_MEMORY,
    DeviceLostError,
    DeviceMemoryError,
    DriverError,
)
from codegen.devices.cuda.driver_library import Driver, driver_path
from codegen.devices.device import (
    Array,
    Buffer,
    Device,
    DeviceError,
    LaunchError,
    Limits,
    check_place,
)
from codegen.runtime.kernel_cache import KernelCache
from codegen.toolchain.cuda.cuda_compilers import CudaCompiler
from codegen.toolchain.processor import digest

_MOST_LAUNCHES = 16
_MOST_MODULES = 256


class CudaDevice(Device):
    """GPU number `ordinal` of those that the driver lists.

    compiler  what compiles kernels: by default nvcc, else NVRTC, found when it is first needed
    driver    by default that of the system, or the one that $TACO_PY_CUDA_DRIVER names
    kept      bytes of freed memory that are kept at most for new buffers; by default an eighth of
              the device's
    blocking  whether each launch is waited for
    """

    def __init__(
        self,
        cache: KernelCache,
        ordinal: int = 0,
        compiler: CudaCompiler | None = None,
        driver: Driver | None = None,
        pool_limit: int | None = None,
        blocking: bool = False,
    ) -> None:
        self.ordinal = ordinal
        self.name = f"cuda:{ordinal}"
        self.blocking = blocking
        self.driver = Driver(driver_path()) if driver is None else driver
        self.lock = threading.RLock()
        self.binaries = CudaBinaries(cache, compiler)
        self.pool = DevicePool(self._new_memory, self._release, self.synchronize)
        self._kept = pool_limit
        self.lost = ""
        self.context: Any = None
        self._popped: Any = None
        self._handle = 0
        self._facts: DeviceFacts | None = None
        self._stream: CudaStream | None = None
        self._shared: weakref.WeakSet[CudaBuffer] = weakref.WeakSet()
        self._all_streams: weakref.WeakSet[CudaStream] = weakref.WeakSet()
        self._streams: dict[int, CudaStream] = {}
        self._modules: dict[str, CudaModule] = {}
        self._launches: deque[CudaLaunch] = deque(maxlen=_MOST_LAUNCHES)
        self._left: deque[tuple[str, Any]] = deque()
        self._owners: deque[tuple[object, tuple[Use, ...]]] = deque()
        self._names = 0

    # ---------------------------------------------------------------- memory

    def allocate(self, size: int, name: str = "", stream: object = None) -> CudaBuffer:
        """Return memory of the pool. Raises DeviceMemoryError, after the pool was emptied."""
        if size < 0:
            raise DeviceError(f"Expected a size of 0 bytes or more, found {size}")
        self.open()
        with self.lock:
            self._names += 1
            name = name or f"buffer {self._names}"
            self.tidy()
            block = self.pool.take(size, self.stream_of(stream))
            if block is None:
                free, total = self.memory()
                raise DeviceMemoryError(name, size, free, total, self.pool.taken)
            return CudaBuffer(self, block.address, size, name, block)

    def upload(self, buffer: Buffer, array: Array, offset: int = 0, stream: object = None) -> None:
        """Copy `array`, which may change as soon as this returns."""
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        mine = self.check_own(buffer, flat.size, offset, writes=True)
        if flat.size:
            source = self.driver.ffi.from_buffer(flat)
            with self.operation(stream, {mine: True}) as on:
                arguments = (mine.address + offset, source, flat.size, on.handle)
                self.run(f"upload {mine.name}", "cuMemcpyHtoDAsync_v2", *arguments)
            on.synchronize()

    def download(
        self, buffer: Buffer, array: Array, offset: int = 0, stream: object = None
    ) -> None:
        mine = self.check_own(buffer, array.nbytes, offset)
        if not array.flags.c_contiguous or not array.flags.writeable:
            raise DeviceError(
                "Expected an array that can be written and whose elements lie one after the other "
                "in C order",
                hint="download into numpy.empty(shape, dtype)",
            )
        if array.nbytes:
            aim = self.driver.ffi.from_buffer(array.reshape(-1).view(np.uint8))
            with self.operation(stream, {mine: False}) as on:
                arguments = (aim, mine.address + offset, array.nbytes, on.handle)
                self.run(f"download {mine.name}", "cuMemcpyDtoHAsync_v2", *arguments)
            on.synchronize()

    def fill(
        self, buffer: Buffer, byte: int = 0, stream: object = None, *, offset: int = 0
    ) -> None:
        mine = self.check_own(buffer, 0, offset, writes=True)
        if mine.size > offset:
            with self.operation(stream, {mine: True}) as on:
                arguments = (mine.address + offset, byte & 0xFF, mine.size - offset, on.handle)
                self.run(f"fill {mine.name}", "cuMemsetD8Async", *arguments)

    def copy(
        self, to: Buffer, source: Buffer, size: int | None = None, stream: object = None
    ) -> None:
        count = source.size if size is None else size
        aim, mine = self.check_own(to, count, 0, writes=True), self.check_own(source, count, 0)
        if count and aim is not mine:
            with self.operation(stream, {aim: True, mine: False}) as on:
                arguments = (aim.address, mine.address, count, on.handle)
                self.run(f"copy {mine.name}", "cuMemcpyDtoDAsync_v2", *arguments)

    def free(self, buffer: Buffer) -> None:
        mine = self.check_own(buffer, 0, 0)
        mine.is_free = True
        if not mine.shared:  # others may have it still, and keep it alive
            mine.give_back()

    def adopt(self, obj: object, name: str = "") -> CudaArray:
        """Return an array of torch, CuPy, numba or JAX on this device, in place.

        It is kept alive as long as the buffer or something that was begun on it; what comes next
        on the buffer waits for the stream of its library. Raises DeviceError.
        """
        self.open()
        with self.lock:
            self.tidy()
            return adopt(self, obj, name)

    def keep_memory(self, size: int | None) -> None:
        """Keep at most `size` bytes of freed memory, None for an eighth of the device's."""
        with self.lock:
            self._kept = size
            if self.context is not None:
                self.pool.limit = self.memory()[1] // 8 if size is None else size
                self.tidy()
                self.pool.sort()

    def clear_memory(self) -> None:
        """Return pooled memory to the driver."""
        with self.lock:
            if self.context is not None:
                self.tidy()
                self.pool.clear()

    def memory(self) -> tuple[int, int]:
        """Return bytes of the device that are free, and all of them."""
        box = self.driver.ffi.new("size_t[2]")
        self.run("ask for free memory", "cuMemGetInfo_v2", box, box + 1)
        return int(box[0]), int(box[1])

    # ---------------------------------------------------------------- kernels

    def load(self, text: str, options: Sequence[str] = ()) -> CudaModule:
        key = digest(text, *options)
        self.open()
        module = self._modules.get(key)
        if module is not None:
            return module
        binary = self.binaries.get(text, self.facts.architecture, tuple(options))
        with self.lock:
            if key not in self._modules:
                module = CudaModule(self, text, binary)
                if len(self._modules) >= _MOST_MODULES:
                    del self._modules[next(iter(self._modules))]
                self._modules[key] = module
            return self._modules[key]

    def require_compiler(self) -> None:
        """Raise NoCompilerError where nothing can compile kernels."""
        self.binaries.compiler  # noqa: B018  found, or an error

    @property
    def limits(self) -> Limits:  # type: ignore[override]
        return self.facts.limits

    @property
    def facts(self) -> DeviceFacts:
        """Return the driver's facts about the device. Raises NoDriverError and DriverError."""
        if self._facts is None:
            self.open()
            self._facts = device_facts(self.driver, self._handle)
        return self._facts

    # ---------------------------------------------------------------- streams

    def stream(self) -> CudaStream:
        """Return a new stream, beside that of the device."""
        box = self.driver.ffi.new("CUstream *")
        self.run("make a stream", "cuStreamCreate", box, 0)
        return self._new_stream(box[0], is_owned=True)

    def stream_of(self, stream: object) -> CudaStream:
        """Return the stream that is meant: None is the device's, others are those of other
        libraries.

        Raises DeviceError for what is no stream, or one of another device.
        """
        if stream is None:
            if self._stream is None:
                self._stream = self.stream()
            return self._stream
        if isinstance(stream, CudaStream):
            if stream.device is not self:
                raise DeviceError(f"Expected a stream of {self.name}, found {stream!r}")
            return stream
        handle = stream_handle(stream)
        if handle is None:
            raise no_stream(stream)
        return self._foreign_stream(handle or LEGACY, stream)

    def _new_stream(self, handle: Any, is_owned: bool) -> CudaStream:
        stream = CudaStream(self, handle, is_owned)
        with self.lock:
            self._all_streams.add(stream)
        return stream

    def _foreign_stream(self, handle: int, owner: object) -> CudaStream:
        foreign = self._streams.get(handle)
        if foreign is None:
            if self._stream is not None and self._stream.address == handle:
                return self._stream
            cast = self.driver.ffi.cast("CUstream", handle)
            foreign = self._streams[handle] = self._new_stream(cast, is_owned=False)
        foreign.owner = None if isinstance(owner, int) else owner
        return foreign

    def share(self, buffer: CudaBuffer) -> None:
        """Note that others know the memory of `buffer`: all views of it share one record
        of uses.
        """
        with self.lock:
            buffer.shared = True
            same = [other for other in self._shared if other.overlaps(buffer)]
            records = {id(other.record): other.record for other in (*same, buffer)}
            if len(records) > 1:
                uses = tuple(use for record in records.values() for use in record.uses)
                record = UseRecord(uses)
                for other in (*same, buffer):
                    other.record = record
            self._shared.add(buffer)

    def let_wait(self, stream: object, buffers: Sequence[CudaBuffer]) -> None:
        """Let later operations on `stream` wait for the pending uses of `buffers`."""
        with self.lock:
            on = self.stream_of(stream)
            for buffer in buffers:
                on.begin(buffer.uses)

    def synchronize(self) -> None:
        """Wait for all operations. Raises LaunchError for what went wrong in a kernel."""
        if self.context is not None:
            with self.lock:
                numbers = [(stream, stream.number) for stream in self._all_streams]
            self.run("wait for the device", "cuCtxSynchronize")
            with self.lock:
                for stream, number in numbers:
                    stream.note_over(number)
                self._launches.clear()
                self.tidy()

    # ---------------------------------------------------------------- the driver

    def open(self) -> None:
        """Take the device into use. Raises NoDriverError, DriverError or DeviceLostError."""
        if self.lost:
            raise self._lost_error()
        driver = self.driver
        driver.lib  # noqa: B018  refuses a process that was forked
        if self.context is not None:
            return
        with self.lock:
            if self.context is not None:  # another thread was here before
                return
            count, handle = driver.ffi.new("int *"), driver.ffi.new("CUdevice *")
            driver.run("count devices", "cuDeviceGetCount", count)
            if not 0 <= self.ordinal < count[0]:
                some = f"a device number below {count[0]}, found {self.name}"
                raise DeviceError(
                    f"Expected {some if count[0] else 'a device, found none'}",
                    hint="see nvidia-smi, and CUDA_VISIBLE_DEVICES",
                )
            driver.run("open the device", "cuDeviceGet", handle, self.ordinal)
            box = driver.ffi.new("CUcontext *")
            driver.run("open the device", "cuDevicePrimaryCtxRetain", box, handle[0])
            self._popped = driver.ffi.new("CUcontext *")
            self._handle, self.context = handle[0], box[0]
            self.keep_memory(self._kept)

    def run(self, operation: str, function: str, *arguments: Any) -> None:
        """Call a function of the driver for this device. Raises DriverError or LaunchError."""
        code = self.call(function, *arguments)
        if code:
            raise self._tell(self.driver.error(operation, code))

    def is_ready(self, function: str, handle: Any) -> bool:
        """Tell whether `function` reports `handle` as complete."""
        return self.call(function, handle) == 0

    def call(self, function: str, *arguments: Any) -> int:
        """Return the number that a function of the driver gives, with this device as the current
        one."""
        self.open()
        lib = self.driver.lib
        code = lib.cuCtxPushCurrent_v2(self.context)
        if code:
            raise self._tell(self.driver.error("use the device", code))
        try:
            return int(getattr(lib, function)(*arguments))
        finally:
            lib.cuCtxPopCurrent_v2(self._popped)

    @contextmanager
    def operation(self, stream: object, buffers: dict[CudaBuffer, bool]) -> Iterator[CudaStream]:
        """Start an operation that reads or writes `buffers`, after their pending uses."""
        with self.lock:
            on = self.stream_of(stream)
            for buffer, writes in buffers.items():
                buffer.begin(on, writes)
            yield on
            use = on.end()
            for buffer, writes in buffers.items():
                buffer.end(use, writes)

    def note_launch(self, launch: CudaLaunch) -> None:
        """Record a launch, since it may fail later."""
        self._launches.append(launch)

    def note_end(self, stream: CudaStream) -> None:
        """Note that all launches on `stream` have succeeded."""
        with self.lock:
            pending = [launch for launch in self._launches if launch.stream is not stream]
            self._launches.clear()
            self._launches.extend(pending)

    def check_own(self, buffer: Buffer, size: int, offset: int, writes: bool = False) -> CudaBuffer:
        """Return `buffer`, if `size` bytes at `offset` are in it. Raises DeviceError."""
        if not isinstance(buffer, CudaBuffer) or buffer.device is not self:
            raise DeviceError(
                f"Expected a buffer of {self.name}, found {buffer!r} of another device",
                hint="download it there, and upload it here",
            )
        check_place(buffer, size, offset)
        if writes and buffer.read_only:
            raise DeviceError(
                f"Expected a buffer that can be written, found {buffer!r}, which its owner has "
                "made read-only",
                hint="copy it into a buffer of the device",
            )
        return buffer

    # ---------------------------------------------------------------- what is over

    def leave(self, function: str, handle: Any) -> None:
        """Let `function` end `handle` when the device is next used."""
        self._left.append((function, handle))

    def keep_until_over(self, owner: object, uses: tuple[Use, ...]) -> None:
        """Keep `owner` alive until `uses` of its memory have ended."""
        self._owners.append((owner, uses))

    def tidy(self) -> None:
        """Release unused handles, and owners whose memory is no longer in use."""
        while self._left:
            function, handle = self._left.popleft()
            if function == "cuModuleUnload":  # no kernel of it may still run
                self.run("wait for the device", "cuCtxSynchronize")
            self.run("give something back", function, handle)
        for _ in range(len(self._owners)):
            owner, uses = self._owners.popleft()
            if not all(use.is_over for use in uses):
                self._owners.append((owner, uses))

    def _new_memory(self, size: int) -> int | None:
        box = self.driver.ffi.new("CUdeviceptr *")
        try:
            self.run("allocate memory", "cuMemAlloc_v2", box, size)
        except DriverError as error:
            if error.code == OUT_OF_MEMORY:
                return None
            raise
        return int(box[0])

    def _release(self, blocks: list[Block]) -> None:
        if not all(use.is_over for block in blocks for use in block.uses):
            self.synchronize()
        for block in blocks:
            self.run("free memory", "cuMemFree_v2", block.address)

    # ---------------------------------------------------------------- what went wrong

    def _tell(self, error: DriverError) -> DeviceError:
        """Return `error` as it is raised: a sticky one is of one of the launches, and ends the
        device."""
        if not error.is_sticky:
            return error
        launches = [launch.shape.text(launch.kernel) for launch in self._launches]
        kernels = {launch.kernel for launch in self._launches}
        self.lost = f"{error.name} after {_one_of(launches)}"
        if not launches:
            return error
        some = (
            f"{error.name} in this launch"
            if len(launches) == 1
            else (f"{error.name} in one of the launches since the last wait: {', '.join(launches)}")
        )
        failure = LaunchError(
            kernels.pop() if len(kernels) == 1 else "",
            launches[-1],
            f"Expected the kernel to end, found {some}; nothing more can run on {self.name} in "
            "this process",
            error.hint,
        )
        failure.__cause__ = error
        return failure

    def _lost_error(self) -> DeviceLostError:
        return DeviceLostError(
            f"Expected a device that works, found {self.name} lost by {self.lost}",
            hint="start a new process: the driver answers nothing else in this one",
        )


def _one_of(launches: Sequence[str]) -> str:
    if not launches:
        return "an operation of another library"
    return launches[0] if len(launches) == 1 else f"one of {', '.join(launches)}"
