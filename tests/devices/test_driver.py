"""The device of CUDA on a driver in host memory: memory, launches, and what goes wrong."""

from __future__ import annotations

import gc
import multiprocessing
import os
import threading
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codegen.devices.cuda.cuda_buffer import CudaBuffer
from codegen.devices.cuda.cuda_device import CudaDevice
from codegen.devices.cuda.device_pool import size_class
from codegen.devices.cuda.driver_errors import DeviceLostError, DeviceMemoryError, DriverError
from codegen.devices.device import DeviceError, LaunchError
from codegen.devices.emulated import EmulatedDevice
from codegen.devices.host_side import GrowingArray, Host
from tests.devices.fake_driver import ADD, SCALE, FakeDriver, with_add, with_scale


def put(device: CudaDevice, values: np.ndarray, name: str = "") -> CudaBuffer:
    buffer = device.allocate(values.nbytes, name)
    device.upload(buffer, values)
    return buffer


def get(device: CudaDevice, buffer: CudaBuffer, dtype: str = "f4") -> np.ndarray:
    values = np.empty(buffer.size // np.dtype(dtype).itemsize, dtype)
    device.download(buffer, values)
    return values


def test_nothing_is_opened_before_it_is_needed(fake: FakeDriver) -> None:
    device = fake.device()
    device.clear_memory()
    device.synchronize()
    assert fake.calls == []


def test_a_kernel_runs_on_what_was_uploaded(fake: FakeDriver) -> None:
    with_scale(fake)
    device = fake.device()
    x = put(device, np.arange(10, dtype="f4"), "x")
    module = device.load(SCALE)
    launch = module.launch("scale", 1, 128, 0, [x, np.float32(3), np.int32(10)])
    assert module.kernels == ("scale",)
    assert launch.shape.block == (128, 1, 1)
    np.testing.assert_array_equal(get(device, x), 3 * np.arange(10, dtype="f4"))
    assert fake.lib.fake_context_depth() == 0


EVERY_TYPE = """
typedef unsigned long long place_t;
extern "C" __global__ void every_type(
    const double *__restrict__ a, bool b, char c, signed char d, unsigned char e, short f,
    unsigned short int g, int h, unsigned i, const long long j, unsigned long long k, int8_t l,
    uint16_t m, int32_t n, uint64_t o, size_t p, float q, double r, __half s, place_t t, long u) { }
"""


def test_arguments_arrive_as_the_parameters_say(fake: FakeDriver) -> None:
    numbers = [
        np.bool_(True), np.int8(-3), np.int8(-4), np.uint8(250), np.int16(-300), np.uint16(65000),
        np.int32(-70000), np.uint32(4_000_000_000), np.int64(-(2**40)), np.uint64(2**63 + 1),
        np.int8(5), np.uint16(6), np.int32(7), np.uint64(8), np.uint64(9), np.float32(0.1),
        np.float64(0.1), np.float16(0.1), np.uint64(11), np.int64(-12),
    ]  # fmt: skip
    seen: list[Any] = []

    def look(shape: list[int], arguments: list[int]) -> None:
        seen.append(shape)
        seen.append(int(fake.value(arguments[0], "u8")))
        places = zip(arguments[1:], numbers, strict=True)
        for place, number in places:
            data = bytes(fake.ffi.buffer(fake.ffi.cast("char *", place), number.itemsize))
            seen.append(np.frombuffer(data, number.dtype)[0])

    fake.kernel("every_type", (8, *(number.itemsize for number in numbers)), look)
    device = fake.device()
    buffer = device.allocate(80, "a")
    module = device.load(EVERY_TYPE)
    module.launch("every_type", (2, 3), (4, 5, 6), 1000, [buffer.at(16), *numbers])
    device.synchronize()
    assert seen == [[2, 3, 1, 4, 5, 6, 1000], buffer.address + 16, *numbers]


def _refusal(fake: FakeDriver, arguments: list[Any], **more: Any) -> str:
    device = more.pop("device", None) or fake.device()
    if not fake.calls or "scale" not in more:
        with_scale(fake)
    module = device.load(SCALE)
    with pytest.raises(LaunchError) as caught:
        module.launch(
            more.get("kernel", "scale"), more.get("grid", 1), more.get("block", 32),
            more.get("shared_bytes", 0), arguments,
        )  # fmt: skip
    assert "cuLaunchKernel" not in fake.calls
    assert caught.value.kernel == more.get("kernel", "scale")
    assert caught.value.launch.startswith(f"{caught.value.kernel}<<<(")
    return str(caught.value)


def test_wrong_arguments_are_refused_before_the_launch(fake: FakeDriver) -> None:
    device, other = fake.device(), fake.device()
    x = device.allocate(40, "x")
    by, n = np.float32(2), np.int32(10)
    said = _refusal(fake, [x, by], device=device)
    assert "Expected 3 arguments (x, by, n), found 2" in said
    said = _refusal(fake, [x, np.float64(2), n], device=device)
    assert "Expected numpy.float32 for the parameter by, found numpy.float64" in said
    said = _refusal(fake, [x, by, 10], device=device)
    assert "Expected numpy.int32 for the parameter n, found int" in said
    said = _refusal(fake, [n, by, n], device=device)
    assert "Expected a buffer for the parameter x, found numpy.int32" in said
    said = _refusal(fake, [x.at(44), by, n], device=device)
    assert "Expected a place in x for x, found byte 44 of 40" in said
    said = _refusal(fake, [x, by, n], device=device, kernel="scales")
    assert "Expected one of scale, found scales" in said
    said = _refusal(fake, [other.allocate(4, "y"), by, n], device=device)
    assert "Expected a buffer of this device for x, found <buffer y, 4 bytes> of another" in said
    x.free()
    said = _refusal(fake, [x, by, n], device=device)
    assert "Expected a buffer that is in use for x, found <buffer x, 40 bytes, freed>" in said


def test_shapes_beyond_the_device_are_refused(fake: FakeDriver) -> None:
    device = fake.device()
    x = device.allocate(40, "x")
    arguments = [x, np.float32(2), np.int32(10)]
    assert "at most 1024 threads a block, found 1056" in _refusal(
        fake, arguments, device=device, block=(33, 32)
    )
    assert "a grid of 1 to 65535 along y, found 70000" in _refusal(
        fake, arguments, device=device, grid=(1, 70000)
    )
    assert "at most 232448 bytes of shared memory, found 232449" in _refusal(
        fake, arguments, device=device, shared_bytes=232449
    )


def test_what_a_kernel_needs_is_refused_before_the_launch(fake: FakeDriver) -> None:
    with_scale(fake)
    fake.lib.fake_kernel_facts(b"scale", 128, 512, 4096, 0)
    device = fake.device()
    module = device.load(SCALE)
    arguments = [device.allocate(40, "x"), np.float32(2), np.int32(10)]
    with pytest.raises(LaunchError) as caught:
        module.launch("scale", 1, 513, 0, arguments)
    assert "at most 512 threads a block, as each needs 128 registers, found 513" in str(
        caught.value
    )
    assert "__launch_bounds__" in str(caught.value.hint)
    with pytest.raises(LaunchError, match="found 232449: 4096 of variables and 228353 of dynamic"):
        module.launch("scale", 1, 32, 228353, arguments)
    facts = module.facts("scale")
    assert (facts.registers, facts.threads, facts.shared_bytes) == (128, 512, 4096)
    assert module.blocks_per_multiprocessor("scale", 256) == 2
    assert module.occupancy("scale", 256) == 0.25


def test_much_shared_memory_is_asked_for_once(fake: FakeDriver) -> None:
    with_scale(fake)
    device = fake.device()
    module = device.load(SCALE)
    arguments = [put(device, np.ones(10, "f4")), np.float32(2), np.int32(10)]
    for size, asked in ((49152, 0), (49153, 1), (100000, 2), (60000, 2)):
        module.launch("scale", 1, 32, size, arguments)
        assert fake.calls.count("cuFuncSetAttribute") == asked
    device.synchronize()


def test_copies_are_checked_and_exact(fake: FakeDriver) -> None:
    device = fake.device()
    x, y = device.allocate(40, "x"), device.allocate(40, "y")
    device.fill(x, 0x11)
    device.upload(x, np.array([1, 2], "i4"), offset=8)
    device.copy(y, x)
    want = np.array([0x11111111] * 2 + [1, 2] + [0x11111111] * 6, "i4")
    np.testing.assert_array_equal(get(device, y, "i4"), want)
    part = np.empty((1, 2), "i4")
    device.download(y, part, offset=8)
    np.testing.assert_array_equal(part, [[1, 2]])
    with pytest.raises(DeviceError, match="bytes 0 to 40 of buffer x, found 36 to 44"):
        device.upload(x, np.zeros(2, "i4"), offset=36)
    with pytest.raises(DeviceError, match="bytes 0 to 40 of buffer x, found -4 to 4"):
        device.download(x, np.zeros(2, "i4"), offset=-4)
    with pytest.raises(DeviceError, match="in C order"):
        device.download(x, np.zeros((2, 3), "i4").T)
    with pytest.raises(DeviceError, match=r"of cuda:0, found <buffer z, 8 bytes> of another"):
        device.upload(EmulatedDevice(fake.cache).allocate(8, "z"), np.zeros(2, "i4"))
    with pytest.raises(DeviceError, match="Expected a size of 0 bytes or more, found -1"):
        device.allocate(-1)
    x.free()
    with pytest.raises(DeviceError, match="in use, found <buffer x, 40 bytes, freed>"):
        x.free()
    empty = put(device, np.empty(0, "f4"))
    assert get(device, empty).size == 0


# -------------------------------------------------------------------- memory


@given(st.integers(0, 2**40))
def test_classes_of_sizes_are_close(size: int) -> None:
    rounded = size_class(size)
    assert size <= rounded <= max(512, size + size // 8 + 512)
    assert size_class(rounded) == rounded
    assert rounded % 512 == 0


def test_freed_memory_is_used_again(fake: FakeDriver) -> None:
    device = fake.device()
    x = device.allocate(5000)
    address = x.address
    x.free()
    assert device.allocate(4000).address != address
    again = device.allocate(5100)
    assert again.address == address
    del again
    gc.collect()
    assert device.allocate(5050).address == address
    assert fake.calls.count("cuMemAlloc_v2") == 2
    gc.collect()
    device.pool.sort()
    assert device.pool.held == size_class(4000) + size_class(5050)


def test_kept_memory_is_limited_and_cleared(fake: FakeDriver) -> None:
    device = fake.device(pool_limit=3 * 4096)
    buffers = [device.allocate(4096) for _ in range(6)]
    for buffer in buffers:
        buffer.free()
    small = device.allocate(100)
    assert device.pool.held == 3 * 4096
    device.keep_memory(4096)
    assert device.pool.held == 4096
    device.clear_memory()
    assert device.pool.held == 0
    assert fake.lib.fake_used() == small.block.size == 512
    device.keep_memory(None)
    assert device.pool.limit == (1 << 26) // 8


def test_memory_that_is_too_little_is_looked_for_and_told(fake: FakeDriver) -> None:
    fake.lib.fake_memory(1 << 20)
    device = fake.device()
    kept = device.allocate(700_000)
    kept.free()
    large = device.allocate(900_000, "large")  # the pool gives the other one back
    assert fake.lib.fake_used() == size_class(900_000)
    with pytest.raises(DeviceMemoryError) as caught:
        device.allocate(500_000, "more")
    assert caught.value.wanted == 500_000
    assert caught.value.free == (1 << 20) - size_class(900_000)
    assert "Expected 500000 bytes of the device's memory for more, found" in str(caught.value)
    assert caught.value.hint
    del large
    device.allocate(1_000_000)


def test_buffers_in_cycles_are_found_before_memory_is_too_little(fake: FakeDriver) -> None:
    fake.lib.fake_memory(1 << 20)
    device = fake.device()
    cycle: list[Any] = [device.allocate(900_000)]
    cycle.append(cycle)
    gc.disable()
    try:
        del cycle
        device.allocate(900_001)
    finally:
        gc.enable()


# -------------------------------------------------------------------- what goes wrong


def test_a_launch_that_the_driver_refuses(fake: FakeDriver) -> None:
    with_scale(fake)
    device = fake.device()
    x = put(device, np.ones(10, "f4"))
    module = device.load(SCALE)
    fake.fail("cuLaunchKernel", 701)
    with pytest.raises(LaunchError) as caught:
        module.launch("scale", 4, 64, 0, [x, np.float32(2), np.int32(10)])
    assert str(caught.value) == (
        "scale<<<(4, 1, 1), (64, 1, 1), 0>>>: Expected the driver to start the kernel, found "
        "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (text of the driver)\n"
        "hint: use smaller blocks, or less shared memory"
    )
    assert fake.lib.fake_context_depth() == 0
    fake.fail("cuLaunchKernel", 0)
    np.testing.assert_array_equal(get(device, x), np.ones(10, "f4"))


def _illegal(fake: FakeDriver, **settings: Any) -> tuple[CudaDevice, CudaBuffer, Any]:
    with_scale(fake)
    with_add(fake)
    device = fake.device(**settings)
    x = put(device, np.ones(10, "f4"), "x")
    add, scale = device.load(ADD), device.load(SCALE)
    add.launch("add", 1, 32, 0, [x, x, x, np.int32(10)])
    device.synchronize()
    fake.lib.fake_kernel_facts(b"scale", 32, 1024, 0, 700)
    return device, x, scale


def test_a_sticky_error_is_told_with_its_launch_and_remembered(fake: FakeDriver) -> None:
    device, x, scale = _illegal(fake)
    scale.launch("scale", 3, 64, 0, [x, np.float32(2), np.int32(10)])
    with pytest.raises(LaunchError) as caught:
        get(device, x)
    assert caught.value.kernel == "scale"
    assert caught.value.launch == "scale<<<(3, 1, 1), (64, 1, 1), 0>>>"
    assert "CUDA_ERROR_ILLEGAL_ADDRESS in this launch; nothing more can run on cuda:0" in str(
        caught.value
    )
    assert "cuda-emulated" in str(caught.value.hint)
    for use in (lambda: device.allocate(4), lambda: get(device, x), lambda: device.load(SCALE)):
        with pytest.raises(DeviceLostError) as lost:
            use()
        assert "lost by CUDA_ERROR_ILLEGAL_ADDRESS after scale<<<(3, 1, 1)" in str(lost.value)
        assert "start a new process" in str(lost.value)


def test_a_sticky_error_is_of_one_of_several_launches(fake: FakeDriver) -> None:
    device, x, scale = _illegal(fake)
    add = device.load(ADD)
    add.launch("add", 1, 32, 0, [x, x, x, np.int32(10)])
    scale.launch("scale", 3, 64, 0, [x, np.float32(2), np.int32(10)])
    with pytest.raises(LaunchError, match=r"in one of the launches since the last wait: add<<<.*, "
                                          r"scale<<<") as caught:  # fmt: skip
        device.synchronize()
    assert caught.value.kernel == ""


def test_each_launch_is_waited_for_where_asked(fake: FakeDriver) -> None:
    _, x, scale = _illegal(fake, blocking=True)
    with pytest.raises(LaunchError, match="in this launch"):
        scale.launch("scale", 3, 64, 0, [x, np.float32(2), np.int32(10)])


def test_binaries_that_do_not_fit_are_told(fake: FakeDriver) -> None:
    device = fake.device()
    fake.fail("cuModuleLoadDataEx", 209)
    with pytest.raises(DriverError) as caught:
        device.load(SCALE)
    assert "sm_90, compiled by a compiler of tests, on a driver for CUDA 12.4, found" in str(
        caught.value
    )
    assert caught.value.hint == "compile for the architecture of this device"
    fake.fail("cuModuleLoadDataEx", 218)
    fake.lib.fake_log(b"line 7: unknown instruction")
    with pytest.raises(DeviceError, match=r"CUDA_ERROR_INVALID_PTX .*: line 7: unknown instr"):
        device.load(SCALE)
    with pytest.raises(DeviceError, match="Expected a kernel, found none in the text"):
        device.load("int x;")
    with pytest.raises(DeviceError, match="for the parameter p of k, found the type struct pair"):
        device.load('extern "C" __global__ void k(struct pair p) { }')


def test_parameters_that_the_driver_has_otherwise_are_told(fake: FakeDriver) -> None:
    fake.kernel("scale", (8, 8, 4), lambda shape, arguments: None)
    with pytest.raises(DeviceError, match="4 bytes for the parameter by of scale, as its type say"):
        fake.device().load(SCALE)


def test_modules_are_loaded_once_and_their_binaries_kept(fake: FakeDriver) -> None:
    with_scale(fake)
    device = fake.device()
    compiler = device.binaries.compiler
    text = SCALE + "// kept\n"
    assert device.load(text) is device.load(text)
    assert device.load(text, ("-lineinfo",)) is not device.load(text)
    again = fake.device(compiler=compiler)
    again.load(text)
    assert compiler.texts == [(text, "sm_90", ()), (text, "sm_90", ("-lineinfo",))]


def test_a_device_that_is_not_there(fake: FakeDriver) -> None:
    with pytest.raises(DeviceError, match="a device number below 1, found cuda:1"):
        fake.device(1).allocate(4)


def _in_child(device: CudaDevice, pipe: Any) -> None:
    try:
        device.allocate(4)
        pipe.send("nothing")
    except DeviceError as error:
        pipe.send(str(error))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_is_told(fake: FakeDriver) -> None:
    device = fake.device()
    device.allocate(4)
    context = multiprocessing.get_context("fork")
    mine, other = context.Pipe()
    process = context.Process(target=_in_child, args=(device, other))
    process.start()
    said = mine.recv()
    process.join()
    assert "found one forked from it" in said
    assert "spawn" in said


def test_threads_share_a_device(fake: FakeDriver) -> None:
    with_scale(fake)
    device = fake.device()
    module = device.load(SCALE)
    wrong: list[BaseException] = []

    def work(number: int) -> None:
        try:
            stream = device.stream()
            for round_ in range(10):
                x = put(device, np.full(100, number, "f4"))
                module.launch("scale", 1, 32, 0, [x, np.float32(round_), np.int32(100)], stream)
                np.testing.assert_array_equal(get(device, x), np.full(100, number * round_, "f4"))
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_two_threads_open_a_device_once(fake: FakeDriver) -> None:
    device = fake.device()
    threads = [threading.Thread(target=device.open) for _ in range(4)]
    with device.lock:
        for thread in threads:
            thread.start()
        time.sleep(0.05)  # so that all of them have seen that it is not open
    for thread in threads:
        thread.join()
    assert fake.calls.count("cuDevicePrimaryCtxRetain") == 1


def test_memory_of_hosts_is_begun_and_not_waited_for(fake: FakeDriver) -> None:
    """Bytes behind the last element are zeroed, and arrays grow, on the device."""
    device = fake.device()
    host, growing = Host(device, None), GrowingArray(np.dtype("int8"))
    host.reserve(growing, 5)
    assert growing.array is not None
    device.upload(growing.array.buffer, np.arange(5, dtype="i1"))
    fake.lib.fake_forget_calls()
    host.reserve(growing, 4000)
    zeros = [host.allocate(size, "int8", True) for size in (0, 3, 5, 4096)]
    waits = ("HtoD", "DtoH", "Synchronize")
    assert fake.calls and not [call for call in fake.calls if any(w in call for w in waits)]
    assert growing.room == 4000
    np.testing.assert_array_equal(growing.array.to_host()[:5], np.arange(5))
    assert not any(np.count_nonzero(each.to_host()) for each in zeros)
    assert [get(device, each.buffer, "i1")[each.size :].tolist() for each in zeros[1:]] == [
        [0], [0, 0, 0], [],
    ]  # fmt: skip
