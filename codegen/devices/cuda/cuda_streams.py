"""Streams of a device, and which of them has to wait for which.

Each operation of a stream has a number. A buffer remembers the numbers of its last uses, and a use
on another stream waits for them on the device; the host waits for nothing:

    s: write x (7)      t: read x   →   s: write x (7), record e      t: wait for e, read x

The event is recorded when it is first needed, behind all that the stream has begun by then, so that
calls on one stream cost none. Streams of others, which may be gone when an event is needed, record
theirs after each operation.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from codegen.devices.device import DeviceError
from codegen.records import dataclass

if TYPE_CHECKING:
    from codegen.devices.cuda.cuda_device import CudaDevice

_NO_TIMING = 2
LEGACY = 1
"""The handle of the default stream, which waits for all blocking ones, as they do for it."""


@dataclass(frozen=True, slots=True, eq=False)
class Use:
    """Operation number `number` of a stream."""

    stream: CudaStream
    number: int

    @property
    def is_over(self) -> bool:
        """Tell whether it has ended, as far as can be told without waiting."""
        return self.stream.has_done(self.number)


class Event:
    """A point of a stream: what was begun before it has ended when `wait` returns.

    With `timing`, `seconds_since` an earlier one can be asked for.
    """

    def __init__(self, device: CudaDevice, timing: bool = False) -> None:
        self._device = device
        box = device.driver.ffi.new("CUevent *")
        device.run("make an event", "cuEventCreate", box, 0 if timing else _NO_TIMING)
        self.handle = box[0]

    def record(self, stream: CudaStream) -> None:
        self._device.run("record an event", "cuEventRecord", self.handle, stream.handle)

    @property
    def is_over(self) -> bool:
        return self._device.is_ready("cuEventQuery", self.handle)

    def wait(self) -> None:
        """Let the host wait for it. Raises DriverError for what went wrong before it."""
        self._device.run("wait for an event", "cuEventSynchronize", self.handle)

    def seconds_since(self, earlier: Event) -> float:
        """Return the seconds between two events that have completed."""
        box = self._device.driver.ffi.new("float *")
        operation = "ask for the time between two events"
        self._device.run(operation, "cuEventElapsedTime", box, earlier.handle, self.handle)
        return float(box[0]) / 1e3

    def __del__(self) -> None:
        if hasattr(self, "handle"):
            self._device.leave("cuEventDestroy_v2", self.handle)


class CudaStream:
    """Operations of a device that run one after the other.

    own    whether it was made here; it is destroyed when nothing refers to it
    owner  what keeps the stream of somebody else alive
    """

    _serials = itertools.count()

    def __init__(self, device: CudaDevice, handle: Any, is_owned: bool) -> None:
        self.device = device
        self.handle = handle
        self.own = is_owned
        self.owner: object = None
        self.serial = next(self._serials)
        self.number = 0
        self._over = 0
        self._event: tuple[int, Event] | None = None
        self._waited: dict[int, int] = {}

    @property
    def address(self) -> int:
        """Return the handle as a number, as the protocols of arrays have it."""
        return int(self.device.driver.ffi.cast("uintptr_t", self.handle))

    def begin(self, uses: Iterable[Use]) -> None:
        """Let later operations on this stream wait for `uses` of other streams."""
        for use in uses:
            other = use.stream
            if other is self or use.number <= self._waited.get(other.serial, 0):
                continue
            if use.number <= other._over:
                continue
            number, event = other.event_behind(use.number)
            self.device.run("wait on a stream", "cuStreamWaitEvent", self.handle, event.handle, 0)
            self._waited[other.serial] = number

    def end(self) -> Use:
        """Return the operation that was begun last."""
        self.number += 1
        if not self.own:
            self.event_behind(self.number)
        return Use(self, self.number)

    def event_behind(self, number: int) -> tuple[int, Event]:
        """Return an event behind operation `number`, and the operation that it is directly
        behind."""
        if self._event is None or self._event[0] < number:
            # Recorded anew, it still is what it was to those that were told to wait for it.
            event = Event(self.device) if self._event is None else self._event[1]
            event.record(self)
            self._event = (self.number, event)
        return self._event

    def has_done(self, number: int) -> bool:
        """Tell whether operation `number` has ended."""
        if number > self._over:
            upto, event = self.event_behind(number)
            if event.is_over:
                self.note_over(upto)
        return number <= self._over

    def synchronize(self) -> None:
        """Let the host wait for all that was begun. Raises LaunchError for what went wrong."""
        number = self.number
        self.device.run("wait for a stream", "cuStreamSynchronize", self.handle)
        self.note_over(number)
        self.device.note_end(self)

    def note_over(self, number: int) -> None:
        """Note that operation `number`, and all earlier ones, have completed."""
        self._over = max(self._over, number)

    def record(self, timing: bool = True) -> Event:
        """Return an event behind all that was begun."""
        event = Event(self.device, timing)
        event.record(self)
        return event

    def __del__(self) -> None:
        if self.own:
            self.device.leave("cuStreamDestroy_v2", self.handle)

    def __repr__(self) -> str:
        return f"<stream {self.address:#x} of {self.device.name}>"


def stream_handle(stream: object) -> int | None:
    """Return the number of somebody's stream: torch's, CuPy's, numba's, a number or
    `__cuda_stream__`."""
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        pair = protocol() if callable(protocol) else protocol
        return int(pair[1])
    if isinstance(stream, int) and not isinstance(stream, bool):
        return stream
    for name in ("cuda_stream", "ptr"):  # torch, CuPy
        address = getattr(stream, name, None)
        if isinstance(address, int):
            return address
    handle = getattr(stream, "handle", None)  # numba
    value = getattr(handle, "value", handle)
    if isinstance(value, int):
        return value
    return 0 if handle is not None and value is None else None


def no_stream(stream: object) -> DeviceError:
    """Return the error to raise for an object that is no stream."""
    return DeviceError(
        f"Expected a stream, found {stream!r} of type {type(stream).__name__}",
        hint="pass device.stream(), a stream of torch, CuPy or numba, or its handle as a number",
    )
