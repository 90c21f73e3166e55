"""Kernels that an emulated device has loaded, and their launches."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from codegen.devices.arguments import ParameterType, argument_bytes
from codegen.devices.device import (
    Argument,
    Buffer,
    DeviceError,
    LaunchError,
    Module,
    Pointer,
    Shape,
    Size,
    check_shape,
)
from codegen.devices.emulated_memory import EmulatedBuffer
from codegen.devices.emulation_library import EmulationLibrary
from codegen.devices.fault_report import Names, tell
from codegen.devices.launch_record import AccessPlace, Launch
from codegen.devices.reports import EmulationError
from codegen.records import dataclass

if TYPE_CHECKING:
    from codegen.devices.emulated import EmulatedDevice

_MOST_BUFFERS = 255
_MOST_REPORTS = 32
_PLACES = 4096
_MOST_EPOCHS = 2**31
_ACCESSES = ("read", "write", "atomic")
_RUNNING = threading.Lock()
"""Held by the one launch that runs: what kernels are linked to has its state in one place."""


class _BlockMemory:
    """A shared or constant variable, or the dynamic shared memory, as a buffer."""

    def __init__(self, name: str, address: int, size: int, shared: bool) -> None:
        self.name = name
        self.address = address
        self.size = size
        self.shared = shared
        self.valid = np.zeros(max(size, 1), np.uint8)
        self.cells: Any = None
        self.shift = 0


@dataclass(frozen=True, slots=True)
class _Kernel:
    """A kernel of the library, and the variables that are not of other kernels."""

    name: str
    number: int
    parameters: tuple[ParameterType, ...]
    memory: tuple[_BlockMemory, ...]

    @property
    def shared_bytes(self) -> int:
        """Return the bytes of the kernel's static shared variables."""
        return sum(memory.size for memory in self.memory if memory.shared)


class EmulatedModule(Module):
    """Kernels of one text."""

    def __init__(self, device: EmulatedDevice, text: str, library: EmulationLibrary) -> None:
        self._device = device
        self._library = library
        self._names = Names(tuple(text.split("\n")), library.lines)
        self._kernels = _kernels(library)
        self._dynamic: _BlockMemory | None = None
        self._renewals = device.renewals

    @property
    def kernels(self) -> tuple[str, ...]:
        return tuple(self._kernels)

    def shared_bytes(self, kernel: str) -> int:
        """Return the bytes of the static shared variables of `kernel`."""
        return self._kernels[kernel].shared_bytes

    def launch(
        self,
        kernel: str,
        grid: Size,
        block: Size,
        shared_bytes: int = 0,
        arguments: Sequence[Argument] = (),
        stream: object = None,
    ) -> Launch:
        """Run `kernel`, and return the record of the launch.

        Raises EmulationError for what is wrong, and LaunchError.
        """
        device = self._device
        shape = check_shape(kernel, grid, block, shared_bytes, device.limits)
        entry = self._checked(kernel, shape)
        values = argument_bytes(kernel, shape, entry.parameters, arguments, device)
        with _RUNNING:
            return self._run(entry, shape, values, _buffers_of(arguments))

    def _checked(self, kernel: str, shape: Shape) -> _Kernel:
        """Return the kernel, if it is there and its shared memory is not too large."""
        launch = shape.text(kernel)
        if kernel not in self._kernels:
            raise LaunchError(
                kernel, launch, f"Expected one of {', '.join(self._kernels)}, found {kernel}"
            )
        entry = self._kernels[kernel]
        limits, static = self._device.limits, entry.shared_bytes
        if static > limits.static_shared_memory or (
            static + shape.shared_bytes > limits.shared_memory
        ):
            raise LaunchError(
                kernel,
                launch,
                f"Expected at most {limits.static_shared_memory} bytes of shared variables, and "
                f"{limits.shared_memory} with dynamic memory, found {static} and "
                f"{static + shape.shared_bytes}",
                hint="use smaller tiles, or dynamic shared memory",
            )
        return entry

    # ---------------------------------------------------------------- running

    def _run(
        self,
        kernel: _Kernel,
        shape: Shape,
        values: list[bytes],
        buffers: list[EmulatedBuffer],
    ) -> Launch:
        device, ffi = self._device, self._library.ffi
        if device.epoch > _MOST_EPOCHS:
            device.renew()
        if self._renewals != device.renewals:
            self._forget()
        block_memory = [*kernel.memory, *self._dynamic_memory(shape.shared_bytes)]
        used: list[_BlockMemory | EmulatedBuffer] = [*block_memory, *buffers]
        other_buffers = [b for b in device.buffers() if not any(b is mine for mine in buffers)]
        everything = [*used, *other_buffers][:_MOST_BUFFERS]
        if len(used) > _MOST_BUFFERS:
            raise LaunchError(
                kernel.name,
                shape.text(kernel.name),
                f"Expected at most {_MOST_BUFFERS} buffers and shared variables, found {len(used)}",
            )
        request = ffi.new("struct emulated_launch *")
        rows = ffi.new("struct emulated_buffer[]", max(len(everything), 1))
        for i, memory in enumerate(everything):
            _describe(ffi, rows[i], memory, live=i < len(used))
        request_memory = self._fill(request, kernel.number, shape, values, rows, len(everything))
        start = time.perf_counter()
        status = self._library.lib.emulated_run(request)
        seconds = time.perf_counter() - start
        for i, memory in enumerate(used):
            self._take_cells(memory, rows[i])
        device.epoch = int(request.epoch)
        if status == 2:
            raise DeviceError(
                f"{shape.text(kernel.name)}: Expected memory to follow accesses, found none free",
                hint="use smaller buffers, or a device with checks=False",
            )
        self._raise(kernel.name, shape, request, [memory.name for memory in everything])
        record = self._record(kernel.name, shape, request, request_memory, everything, seconds)
        device.note(record)
        return record

    def _forget(self) -> None:
        """Forget who used which shared memory."""
        self._renewals = self._device.renewals
        self._dynamic = None
        for kernel in self._kernels.values():
            for memory in kernel.memory:
                memory.cells = None

    def _fill(
        self,
        request: Any,
        number: int,
        shape: Shape,
        values: list[bytes],
        rows: Any,
        count: int,
    ) -> dict[str, Any]:
        """Write the launch into `request`, and return the memory that must outlive the call."""
        device, ffi = self._device, self._library.ffi
        checks = device.checks
        request_memory: dict[str, Any] = {
            "values": [ffi.new("char[]", value) for value in values],
            "reports": ffi.new("struct emulated_report[]", _MOST_REPORTS),
            "places": ffi.new("struct emulated_place[]", _PLACES if checks.counting else 1),
            "accesses": None,
            "stacks": device.stacks(shape.threads),
        }
        request_memory["arguments"] = ffi.new("void *[]", [*request_memory["values"], ffi.NULL])
        request.grid, request.block = shape.grid, shape.block
        request.kernel, request.dynamic_bytes = number, shape.shared_bytes
        request.epoch, request.checks, request.counting = (
            device.epoch,
            checks.memory,
            checks.counting,
        )
        request.seed_low, request.seed_high = (
            device.seed & 0xFFFFFFFF,
            device.seed >> 32 & 0xFFFFFFFF,
        )
        request.most_steps = checks.most_steps
        request.arguments = request_memory["arguments"]
        request.buffers, request.buffer_count = rows, count
        request.stacks = ffi.cast("uint8_t *", request_memory["stacks"].ctypes.data)
        request.stack_size = checks.stack
        request.reports, request.report_capacity = request_memory["reports"], _MOST_REPORTS
        request.places = request_memory["places"]
        request.place_capacity = _PLACES if checks.counting else 0
        if checks.counting:
            request_memory["accesses"] = np.zeros(shape.blocks * shape.threads, np.uint32)
            request.accesses = ffi.cast("uint32_t *", request_memory["accesses"].ctypes.data)
        return request_memory

    def _dynamic_memory(self, size: int) -> list[_BlockMemory]:
        if size == 0:
            return []
        if self._dynamic is None or self._dynamic.size != size:
            address = int(self._library.lib.emulated_dynamic_base())
            self._dynamic = _BlockMemory("dynamic shared memory", address, size, True)
        return [self._dynamic]

    def _take_cells(self, memory: _BlockMemory | EmulatedBuffer, row: Any) -> None:
        """Keep the cells that the launch allocated for `memory`, and free the replaced ones."""
        ffi = self._library.ffi
        memory.shift = int(row.shift)
        if row.cells == ffi.NULL or (memory.cells is not None and memory.cells == row.cells):
            return
        if memory.cells is not None:
            ffi.gc(memory.cells, None)  # the launch freed them
        memory.cells = ffi.gc(row.cells, self._library.lib.free)

    # ---------------------------------------------------------------- results

    def _raise(self, kernel: str, shape: Shape, request: Any, names: list[str]) -> None:
        rows = [request.reports[i] for i in range(request.report_count)]
        if not rows:
            return
        reports = tuple(
            tell(kernel, shape, row, names, self._names, self._text(row.array)) for row in rows
        )
        raise EmulationError(kernel, shape.text(kernel), reports)

    def _text(self, address: Any) -> str:
        ffi = self._library.ffi
        return "" if address == ffi.NULL else ffi.string(address).decode(errors="replace")

    def _record(
        self,
        kernel: str,
        shape: Shape,
        request: Any,
        request_memory: dict[str, Any],
        buffers: Sequence[_BlockMemory | EmulatedBuffer],
        seconds: float,
    ) -> Launch:
        places = [
            AccessPlace(
                self._names.line(row.pc),
                _ACCESSES[row.kind],
                buffers[row.buffer].name,
                int(row.accesses),
                int(row.bytes),
                int(row.requests),
                int(row.sectors),
                int(row.ideal_sectors),
            )
            for row in (request.places[i] for i in range(request.place_capacity))
            if row.pc
        ]
        places.sort(key=lambda place: (place.line, place.kind, place.buffer))
        return Launch(
            kernel,
            shape,
            self._device.seed,
            seconds,
            int(request.barriers),
            int(request.warp_operations),
            int(request.bytes_read),
            int(request.bytes_written),
            int(request.atomics),
            request_memory["accesses"],
            tuple(places),
        )


def _kernels(library: EmulationLibrary) -> dict[str, _Kernel]:
    lib, ffi = library.lib, library.ffi
    memory = [
        (v.line, _BlockMemory(v.name, library.base + v.address, v.size, shared))
        for variables, shared in ((library.shared, True), (library.constant, False))
        for v in variables
    ]
    kernels = {}
    for number in range(lib.emulated_kernel_count()):
        row = lib.emulated_kernel_at(number)
        name = ffi.string(row.name).decode()
        parameters = tuple(
            ParameterType(library.heads[name].parameters[i][0], row.classes[i], row.sizes[i])
            for i in range(row.parameters)
        )
        other_lines = [head.lines for head in library.heads.values() if head.name != name]
        mine = tuple(
            variable
            for line, variable in memory
            if not any(first <= line <= last for first, last in other_lines)
        )
        kernels[name] = _Kernel(name, number, parameters, mine)
    return kernels


def _describe(ffi: Any, row: Any, memory: _BlockMemory | EmulatedBuffer, live: bool) -> None:
    row.base, row.size = memory.address, memory.size
    row.valid = ffi.cast("uint8_t *", memory.valid.ctypes.data)
    row.cells = ffi.NULL if memory.cells is None else memory.cells
    row.shift, row.live = memory.shift, live
    if isinstance(memory, _BlockMemory):
        row.shared, row.constant = memory.shared, not memory.shared


def _buffers_of(arguments: Sequence[Argument]) -> list[EmulatedBuffer]:
    """Return the buffers among `arguments`, each once."""
    buffers: list[EmulatedBuffer] = []
    for value in arguments:
        buffer: Buffer | None = value.buffer if isinstance(value, Pointer) else None
        buffer = value if isinstance(value, Buffer) else buffer
        if isinstance(buffer, EmulatedBuffer) and not any(buffer is other for other in buffers):
            buffers.append(buffer)
    return buffers
