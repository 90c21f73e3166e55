"""Operations on several streams give what they give one after the other.

The driver of these tests runs each stream as late as it may, so a wait that is missing is seen.
"""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codegen.devices.cuda.cuda_device import CudaDevice
from codegen.devices.cuda.cuda_streams import CudaStream, stream_handle
from codegen.devices.device import DeviceError
from tests.devices.fake_driver import ADD, SCALE, FakeDriver, with_add, with_scale
from tests.devices.test_driver import get, put

SIZE, STREAMS, BUFFERS = 8, 4, 4
_PLACE = st.integers(0, BUFFERS - 1)
_STEP = st.one_of(
    st.tuples(st.just("scale"), _PLACE, st.integers(-2, 3)),
    st.tuples(st.just("add"), _PLACE, _PLACE, _PLACE),
    st.tuples(st.just("fill"), _PLACE),
    st.tuples(st.just("copy"), _PLACE, _PLACE),
    st.tuples(st.just("upload"), _PLACE, st.integers(0, 9)),
    st.tuples(st.just("replace"), _PLACE),
    st.tuples(st.just("download"), _PLACE),
    st.tuples(st.just("clear")),
)
PROGRAM = st.lists(st.tuples(st.integers(0, STREAMS - 1), _STEP), min_size=1, max_size=25)


class Machine:
    """A device with buffers, beside arrays that hold what the buffers should."""

    def __init__(self, device: CudaDevice, other: object) -> None:
        self.device = device
        self.scale, self.add = self.device.load(SCALE), self.device.load(ADD)
        self.streams: list[Any] = [None, self.device.stream(), self.device.stream(), other]
        self.buffers = [put(self.device, np.full(SIZE, i + 1, "f4")) for i in range(BUFFERS)]
        self.arrays = [np.full(SIZE, i + 1, "f4") for i in range(BUFFERS)]

    def run(self, stream: Any, step: tuple[Any, ...]) -> None:
        device, buffers, arrays, n = self.device, self.buffers, self.arrays, np.int32(SIZE)
        match step:
            case ("scale", i, by):
                self.scale.launch("scale", 1, 32, 0, [buffers[i], np.float32(by), n], stream)
                arrays[i] *= np.float32(by)
            case ("add", i, j, k):
                arguments = [buffers[i], buffers[j], buffers[k], n]
                self.add.launch("add", 1, 32, 0, arguments, stream)
                arrays[k] = arrays[i] + arrays[j]
            case ("fill", i):
                device.fill(buffers[i], 0, stream)
                arrays[i][:] = 0
            case ("copy", i, j):
                device.copy(buffers[i], buffers[j], stream=stream)
                arrays[i][:] = arrays[j]
            case ("upload", i, value):
                arrays[i][:] = value
                device.upload(buffers[i], arrays[i], stream=stream)
            case ("replace", i):  # the memory comes back, while it may still be used
                buffers[i].free()
                buffers[i] = device.allocate(4 * SIZE, stream=stream)
                device.copy(buffers[i], buffers[0 if i else 1], stream=stream)
                arrays[i][:] = arrays[0 if i else 1]
            case ("download", i):
                got = np.empty(SIZE, "f4")
                device.download(buffers[i], got, stream=stream)
                np.testing.assert_array_equal(got, arrays[i])
            case ("clear",):
                device.clear_memory()


def _machine(fake: FakeDriver) -> Machine:
    with_scale(fake)
    with_add(fake)
    return Machine(fake.device(), 7)  # a stream that is known by its handle alone


def run_program(machine: Machine, program: list[tuple[int, tuple[Any, ...]]]) -> None:
    """Run it, and compare what is in each buffer at the end."""
    with np.errstate(over="ignore", invalid="ignore"):
        for stream, step in program:
            machine.run(machine.streams[stream], step)
        for number in range(BUFFERS):
            machine.run(None, ("download", number))


def _run(fake: FakeDriver, program: list[tuple[int, tuple[Any, ...]]]) -> None:
    fake.lib.fake_reset()
    run_program(_machine(fake), program)
    assert fake.lib.fake_context_depth() == 0


_QUIET = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow)


@settings(max_examples=60, deadline=None, suppress_health_check=_QUIET)
@given(program=PROGRAM)
def test_streams_in_any_order(program: list[tuple[int, tuple[Any, ...]]], fake: FakeDriver) -> None:
    _run(fake, program)


@pytest.mark.parametrize("lost", ["all waits", "waits of writes for reads", "waits of new buffers"])
def test_waits_that_are_missing_would_be_seen(
    lost: str, fake: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    from codegen.devices.cuda import cuda_buffer

    if lost == "all waits":
        monkeypatch.setattr(CudaStream, "begin", lambda self, uses: None)
    elif lost == "waits of writes for reads":
        monkeypatch.setattr(cuda_buffer.UseRecord, "uses", property(lambda self: self.write))
    else:
        inner = cuda_buffer.CudaBuffer.__init__

        def without(self: Any, *arguments: Any, **named: Any) -> None:
            inner(self, *arguments, **named)
            self.record.write = ()

        monkeypatch.setattr(cuda_buffer.CudaBuffer, "__init__", without)
    programs = {
        "all waits": [(1, ("scale", 1, 2)), (2, ("copy", 0, 1))],
        "waits of writes for reads": [(1, ("add", 2, 2, 3)), (2, ("scale", 2, 3))],
        "waits of new buffers": [
            (1, ("scale", 3, 3)),
            (2, ("replace", 3)),
            (2, ("download", 3)),
            (1, ("download", 0)),
        ],
    }
    with pytest.raises(AssertionError, match="Arrays are not equal"):
        _run(fake, programs[lost])


def test_one_stream_takes_no_events_and_readers_do_not_wait(fake: FakeDriver) -> None:
    machine = _machine(fake)
    for _ in range(5):
        machine.run(None, ("add", 0, 1, 2))
        machine.run(None, ("scale", 2, 2))
    assert not {"cuEventCreate", "cuEventRecord", "cuStreamWaitEvent"} & set(fake.calls)
    machine.device.synchronize()
    fake.lib.fake_forget_calls()
    machine.run(machine.streams[1], ("add", 0, 1, 2))  # all that it reads and writes is over
    machine.run(machine.streams[2], ("add", 0, 1, 3))  # and so are the others' reads to a read
    assert "cuStreamWaitEvent" not in fake.calls
    machine.run(machine.streams[2], ("copy", 0, 2))
    assert fake.calls.count("cuStreamWaitEvent") == 1
    machine.run(machine.streams[2], ("copy", 1, 2))  # what was waited for is not waited for again
    assert fake.calls.count("cuStreamWaitEvent") == 1


def test_streams_of_other_libraries(fake: FakeDriver) -> None:
    class Torch:
        cuda_stream = 7

    class Cupy:
        ptr = 7

    class Numba:
        class handle:  # noqa: N801
            value = 7

    class Protocol:
        def __cuda_stream__(self) -> tuple[int, int]:
            return (0, 7)

    for stream in (Torch(), Cupy(), Numba(), Protocol(), 7):
        assert stream_handle(stream) == 7
    device = fake.device()
    device.open()
    assert device.stream_of(Torch()) is device.stream_of(7)
    assert device.stream_of(0) is device.stream_of(1)  # the default stream
    own = device.stream_of(None)
    assert device.stream_of(own.address) is own
    with pytest.raises(DeviceError, match="Expected a stream, found 'fast' of type str"):
        device.stream_of("fast")
    with pytest.raises(DeviceError, match="Expected a stream of cuda:0, found <stream"):
        device.stream_of(fake.device().stream())


def test_streams_are_ended_when_nothing_refers_to_them(fake: FakeDriver) -> None:
    device = fake.device()
    with_scale(fake)
    module = device.load(SCALE)
    x = put(device, np.ones(SIZE, "f4"))
    stream = device.stream()
    module.launch("scale", 1, 32, 0, [x, np.float32(2), np.int32(SIZE)], stream)
    del stream
    gc.collect()
    device.allocate(4)
    assert "cuStreamDestroy_v2" not in fake.calls  # the buffer remembers it
    np.testing.assert_array_equal(get(device, x), np.full(SIZE, 2, "f4"))
    device.fill(x)
    device.synchronize()
    gc.collect()
    device.allocate(4)
    assert fake.calls.count("cuStreamDestroy_v2") == 1


def test_events_time_what_is_between(fake: FakeDriver) -> None:
    device: CudaDevice = fake.device()
    on = device.stream()
    start = on.record()
    x = device.allocate(64)
    device.fill(x, stream=on)
    end = on.record()
    assert not end.is_over
    end.wait()
    assert end.is_over
    assert end.seconds_since(start) == pytest.approx(1.5e-3)
