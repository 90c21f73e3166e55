"""Arrays of other libraries in place on a device, and buffers as theirs."""

from __future__ import annotations

import ctypes
import gc
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codegen.devices.cuda import adoption, cuda_array, dlpack
from codegen.devices.cuda.adoption import is_on_device
from codegen.devices.cuda.cuda_buffer import CudaBuffer
from codegen.devices.cuda.cuda_device import CudaDevice
from codegen.devices.device import DeviceError, LaunchError
from tests.devices.fake_driver import ADD, SCALE, FakeDriver, with_add, with_scale
from tests.devices.test_driver import get, put

ELEMENTS = np.arange(24, dtype="f4")


class Tensor:
    """An array of a library that has `__cuda_array_interface__` alone, with memory of a device."""

    def __init__(self, device: CudaDevice, values: np.ndarray = ELEMENTS, **facts: Any) -> None:
        self.buffer = put(device, values)
        self.facts = {
            "shape": values.shape, "typestr": values.dtype.str, "version": 3,
            "data": (self.buffer.address, False), **facts,
        }  # fmt: skip

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.facts


def test_an_array_is_taken_in_place(fake: FakeDriver) -> None:
    with_scale(fake)
    device = fake.device()
    tensor = Tensor(device, ELEMENTS.reshape(4, 6))
    array = device.adopt(tensor, "x")
    assert (array.shape, array.dtype, array.is_contiguous) == ((4, 6), np.dtype("f4"), True)
    assert array.buffer.address == tensor.buffer.address
    scale = device.load(SCALE)
    scale.launch("scale", 1, 32, 0, [array.pointer, np.float32(2), np.int32(24)])
    np.testing.assert_array_equal(array.to_host(), 2 * ELEMENTS.reshape(4, 6))
    assert array.stream is None
    assert device.adopt(array) is array


def test_views_are_taken_with_their_strides(fake: FakeDriver) -> None:
    device = fake.device()
    host = ELEMENTS.reshape(4, 6)
    for view in (host.T, host[::2, ::-1], host[::-1, 1:3], host[1:1], host[:, 2], host[3, 5, ...]):
        tensor = Tensor(device, host)
        offset = view.__array_interface__["data"][0] - host.__array_interface__["data"][0]
        tensor.facts["data"] = (tensor.buffer.address + offset, False)
        tensor.facts["shape"], tensor.facts["strides"] = view.shape, view.strides
        array = device.adopt(tensor)
        assert array.is_contiguous == bool(view.flags.c_contiguous)
        np.testing.assert_array_equal(array.to_host(), view)
        again = array.__cuda_array_interface__
        assert again["shape"] == view.shape
        assert again["data"][0] == (tensor.facts["data"][0] if view.size else 0)


def test_the_owner_lives_as_long_as_its_memory_is_used(fake: FakeDriver) -> None:
    with_add(fake)
    device = fake.device()
    add, other = device.load(ADD), device.stream()
    tensor = Tensor(device)
    z = device.allocate(96)
    alive = weakref.ref(tensor)
    array = device.adopt(tensor)
    del tensor
    gc.collect()
    assert alive() is not None
    add.launch("add", 1, 32, 0, [array.pointer, array.pointer, z, np.int32(24)], other)
    del array
    gc.collect()
    device.allocate(4)
    assert alive() is not None  # the launch has yet to read it
    np.testing.assert_array_equal(get(device, z), 2 * ELEMENTS)
    device.allocate(4)
    gc.collect()
    assert alive() is None


def test_the_stream_of_an_array_is_waited_for(fake: FakeDriver) -> None:
    """What its library has begun on stream 7 comes before, on each of our streams."""
    with_add(fake)
    device = fake.device()
    add = device.load(ADD)
    for ours in (None, device.stream()):
        tensor = Tensor(device, stream=7)
        z = device.allocate(96)
        handle = device.driver.ffi.cast("CUstream", 7)
        device.run("", "cuMemsetD8Async", tensor.buffer.address, 0, 96, handle)
        array = device.adopt(tensor)
        assert array.stream is device.stream_of(7)
        add.launch("add", 1, 32, 0, [array.pointer, array.pointer, z, np.int32(24)], ours)
        np.testing.assert_array_equal(get(device, z), 0 * ELEMENTS)


def test_views_of_one_memory_wait_for_each_other(fake: FakeDriver) -> None:
    """What is begun on one of them is known to all, and to the buffer that was lent."""
    with_scale(fake)
    with_add(fake)
    device = fake.device()
    first, second = device.stream(), device.stream()
    scale, add = device.load(SCALE), device.load(ADD)
    buffer = put(device, np.ones(24, "f4"))
    whole = device.adopt(Torch(device, True, buffer=buffer))
    tensor = Tensor(device)
    tensor.facts["data"], tensor.facts["shape"] = (buffer.address + 8, False), (2,)
    part = device.adopt(tensor)
    z = device.allocate(96)
    by, n = np.float32(3), np.int32(24)
    scale.launch("scale", 1, 32, 0, [whole.pointer, by, n], first)
    add.launch("add", 1, 32, 0, [part.pointer, part.pointer, z, np.int32(2)], second)
    np.testing.assert_array_equal(get(device, z)[:2], [6, 6])
    scale.launch("scale", 1, 32, 0, [part.pointer, by, np.int32(2)], second)
    np.testing.assert_array_equal(get(device, buffer)[1:5], [3, 9, 9, 3])
    scale.launch("scale", 1, 32, 0, [buffer, by, n], first)
    np.testing.assert_array_equal(part.to_host(), [27, 27])


def test_an_array_that_is_taken_again_is_still_read(fake: FakeDriver) -> None:
    with_scale(fake)
    with_add(fake)
    device = fake.device()
    first, second = device.stream(), device.stream()
    scale, add = device.load(SCALE), device.load(ADD)
    tensor, z, n = Tensor(device, stream=7), device.allocate(96), np.int32(24)
    array = device.adopt(tensor)
    add.launch("add", 1, 32, 0, [array.pointer, array.pointer, z, n], second)
    again = device.adopt(tensor)
    scale.launch("scale", 1, 32, 0, [again.pointer, np.float32(5), n], first)
    first.synchronize()
    np.testing.assert_array_equal(get(device, z), 2 * ELEMENTS)


def test_a_freed_buffer_that_others_have_keeps_its_memory(fake: FakeDriver) -> None:
    device = fake.device()
    buffer = put(device, ELEMENTS)
    lent = buffer.array((24,), "f4")
    address = lent.__cuda_array_interface__["data"][0]
    buffer.free()
    assert device.allocate(96).address != address
    del lent, buffer
    again = [device.allocate(96) for _ in range(2)]
    assert address in [buffer.address for buffer in again]


def test_a_read_only_array_is_not_written(fake: FakeDriver) -> None:
    with_scale(fake)
    with_add(fake)
    device = fake.device()
    tensor = Tensor(device)
    tensor.facts["data"] = (tensor.buffer.address, True)
    array = device.adopt(tensor, "x")
    number = np.int32(24)
    with pytest.raises(LaunchError, match="can be written for x, found <buffer x, 96 bytes>"):
        device.load(SCALE).launch("scale", 1, 32, 0, [array.pointer, np.float32(2), number])
    with pytest.raises(DeviceError, match="can be written, found <buffer x"):
        device.upload(array.buffer, ELEMENTS)
    with pytest.raises(BufferError, match="read-only"):
        array.__dlpack__()
    assert "cuLaunchKernel" not in fake.calls
    arguments = [array.pointer, array.pointer, device.allocate(96), number]
    device.load(ADD).launch("add", 1, 32, 0, arguments)
    assert array.__cuda_array_interface__["data"][1] is True


def test_arrays_elsewhere_are_refused(fake: FakeDriver) -> None:
    device = fake.device()
    with pytest.raises(DeviceError, match="an array on a device, found ndarray in the host's"):
        device.adopt(ELEMENTS)
    with pytest.raises(DeviceError, match="an array on a device, found list"):
        device.adopt([1])
    tensor = Tensor(device)
    fake.lib.fake_attribute(255, 3)
    with pytest.raises(DeviceError, match="Expected an array on cuda:0, found Tensor on cuda:3"):
        device.adopt(tensor)
    fake.lib.fake_attribute(255, 0)
    fake.lib.fake_attribute(254, 99)
    with pytest.raises(DeviceError, match="context of cuda:0, found Tensor of another context"):
        device.adopt(tensor)
    fake.lib.fake_attribute(254, 0)
    tensor.facts["data"] = (ELEMENTS.ctypes.data, False)
    with pytest.raises(DeviceError, match="an address of Tensor that the driver does not have"):
        device.adopt(tensor)
    with pytest.raises(DeviceError, match="without a mask"):
        device.adopt(Tensor(device, mask=tensor))
    fake.lib.fake_devices(2)
    with pytest.raises(DeviceError, match="a buffer of cuda:1, found <buffer"):
        fake.device(1).adopt(put(device, ELEMENTS).array((24,), "f4"))
    assert is_on_device(tensor)
    assert not is_on_device(ELEMENTS)
    assert is_on_device(put(device, ELEMENTS).array((24,), "f4"))


# -------------------------------------------------------------------- what others take


def test_a_buffer_tells_its_stream(fake: FakeDriver) -> None:
    with_scale(fake)
    device = fake.device()
    buffer = put(device, ELEMENTS)
    on, third = device.stream(), device.stream()
    module = device.load(SCALE)
    module.launch("scale", 1, 32, 0, [buffer, np.float32(2), np.int32(24)], on)
    device.copy(device.allocate(96), buffer, stream=third)
    facts = buffer.array((4, 6), "f4").__cuda_array_interface__
    assert facts == {
        "shape": (4, 6), "typestr": "<f4", "data": (buffer.address, False), "strides": None,
        "version": 3, "stream": on.address,
    }  # fmt: skip
    assert fake.calls[-1] == "cuStreamWaitEvent"  # for the copy that reads it
    fresh = device.allocate(4096).array((24,), "f4")
    assert fresh.__cuda_array_interface__["stream"] is None
    buffer.free()
    with pytest.raises(DeviceError, match="in use, found <buffer"):
        buffer.array((4, 6), "f4").__cuda_array_interface__  # noqa: B018
    with pytest.raises(DeviceError, match="in the 96 bytes of"):
        device.allocate(96, "w").array((5, 5), "f4")


def test_memory_that_others_had_is_not_used_again_before_the_device_is_idle(
    fake: FakeDriver,
) -> None:
    device = fake.device()
    buffer = put(device, ELEMENTS)
    address = buffer.address
    buffer.array((24,), "f4").__cuda_array_interface__  # noqa: B018
    del buffer
    fake.lib.fake_forget_calls()
    assert device.allocate(96).address == address
    assert fake.calls == ["cuCtxSynchronize"]


@pytest.fixture
def host_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Devices say that their memory is the host's, as it is here: so NumPy takes it."""
    monkeypatch.setattr(cuda_array, "KDL_CUDA", 1)
    monkeypatch.setattr(adoption, "KDL_CUDA", 1)


class _Provider:
    """An array as NumPy takes it, which names no stream."""

    def __init__(self, array: cuda_array.CudaArray, versioned: bool) -> None:
        self.array = array
        self.versioned = versioned

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()

    def __dlpack__(self, **named: Any) -> object:
        version = (1, 1) if self.versioned else None
        return self.array.__dlpack__(stream=1, max_version=version)


_TYPES = ("f4", "f8", "f2", "i1", "i8", "u2", "c8", "c16", "?")


@settings(max_examples=60, deadline=None,
          suppress_health_check=(HealthCheck.function_scoped_fixture,))  # fmt: skip
@given(
    shape=st.lists(st.integers(0, 4), max_size=3),
    dtype=st.sampled_from(_TYPES),
    versioned=st.booleans(),
    data=st.data(),
)
def test_numpy_reads_our_capsules(
    shape: list[int], dtype: str, versioned: bool, data: Any, fake: FakeDriver, host_kind: None
) -> None:
    device = fake.device()
    values = np.arange(int(np.prod(shape)) if shape else 1).astype(dtype).reshape(shape)
    order = data.draw(st.permutations(range(len(shape))))
    buffer = put(device, values)
    strides = [values.strides[i] for i in order]
    array = buffer.array([shape[i] for i in order], dtype, strides)

    taken = np.from_dlpack(_Provider(array, versioned))
    np.testing.assert_array_equal(taken, values.transpose(order))
    assert taken.dtype == values.dtype
    if values.size:
        assert taken.__array_interface__["data"][0] == buffer.address
    alive = weakref.ref(buffer)
    del array, buffer
    assert alive() is not None
    del taken
    assert alive() is None


def test_capsules_that_nobody_takes_let_go(fake: FakeDriver) -> None:
    device = fake.device()
    for version in (None, (1, 0)):
        buffer = put(device, ELEMENTS)
        alive = weakref.ref(buffer)
        capsule = buffer.array((24,), "f4").__dlpack__(max_version=version)
        del buffer
        gc.collect()
        assert alive() is not None
        del capsule
        gc.collect()
        assert alive() is None
    with pytest.raises(BufferError, match="in place on the same device"):
        put(device, ELEMENTS).array((24,), "f4").__dlpack__(copy=True)
    with pytest.raises(BufferError, match="numbers that DLPack has"):
        put(device, ELEMENTS).array((24,), ">f4").__dlpack__()


@settings(max_examples=40, deadline=None,
          suppress_health_check=(HealthCheck.function_scoped_fixture,))  # fmt: skip
@given(shape=st.lists(st.integers(0, 4), max_size=3), dtype=st.sampled_from(_TYPES))
def test_capsules_of_numpy_are_read(
    shape: list[int], dtype: str, fake: FakeDriver, host_kind: None
) -> None:
    values = np.arange(int(np.prod(shape)) if shape else 1).astype(dtype).reshape(shape)
    capsule = values.T.__dlpack__()
    taken = dlpack.take_capsule(capsule)
    assert (taken.shape, taken.dtype, taken.device) == (values.T.shape, values.dtype, (1, 0))
    if values.size:
        assert taken.address == values.ctypes.data
        assert taken.strides in (values.T.strides, None)
    assert not taken.read_only
    with pytest.raises(DeviceError, match="that nobody has taken"):
        dlpack.take_capsule(capsule)


class Torch:
    """A library with DLPack, whose tensors are those of a device, and a stream of its own."""

    def __init__(
        self,
        device: CudaDevice,
        versioned: bool,
        read_only: bool = False,
        buffer: CudaBuffer | None = None,
    ) -> None:
        self.buffer = put(device, ELEMENTS) if buffer is None else buffer
        self.buffer.read_only = read_only
        self.array = self.buffer.array((4, 6), "f4")
        self.versioned = versioned
        self.asked: list[Any] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()

    def __dlpack__(self, stream: int | None = None, **named: Any) -> object:
        if named and not self.versioned:
            raise TypeError("unexpected keyword argument 'max_version'")
        self.asked.append(stream)
        return self.array.__dlpack__(stream=stream, **named)


@pytest.mark.parametrize("versioned", [False, True])
def test_dlpack_makes_our_stream_wait_for_theirs(fake: FakeDriver, versioned: bool) -> None:
    with_scale(fake)
    with_add(fake)
    device = fake.device()
    theirs, ours = device.stream(), device.stream()
    tensor = Torch(device, versioned)
    scale, add = device.load(SCALE), device.load(ADD)
    arguments = [tensor.buffer, np.float32(3), np.int32(24)]
    scale.launch("scale", 1, 32, 0, arguments, theirs)
    array = device.adopt(tensor)
    assert tensor.asked == [device.stream_of(None).address]
    z = device.allocate(96)
    add.launch("add", 1, 32, 0, [array.pointer, array.pointer, z, np.int32(24)], ours)
    np.testing.assert_array_equal(get(device, z), 6 * ELEMENTS)
    alive = weakref.ref(tensor.array)
    del tensor, arguments
    gc.collect()
    assert alive() is not None
    del array
    gc.collect()
    device.synchronize()
    gc.collect()
    assert alive() is None


def test_dlpack_says_what_is_read_only(fake: FakeDriver) -> None:
    device = fake.device()
    assert device.adopt(Torch(device, True, read_only=True)).buffer.read_only
    with pytest.raises(DeviceError, match=r"Torch to be taken in place, found: .*read-on"):
        device.adopt(Torch(device, False, read_only=True))
    fake.lib.fake_devices(2)
    with pytest.raises(DeviceError, match="Expected an array on cuda:1, found Torch on cuda:0"):
        fake.device(1).adopt(Torch(device, True))


def test_structures_are_as_large_as_dlpack_says() -> None:
    assert ctypes.sizeof(dlpack._Tensor) == 48
    assert ctypes.sizeof(dlpack._Managed) == 64
    assert ctypes.sizeof(dlpack._Versioned) == 80
