"""Each call of the driver may fail: an error that says which, and the device works afterwards."""

from __future__ import annotations

import numpy as np
import pytest

from codegen.devices.cuda.cuda_device import CudaDevice
from codegen.devices.device import DeviceError
from tests.devices.fake_driver import ADD, SCALE, FakeDriver, with_add, with_scale
from tests.devices.test_driver import get, put
from tests.devices.test_foreign_arrays import Tensor

INVALID = 1


def _scenario(device: CudaDevice) -> None:
    """A bit of everything."""
    first, second = device.stream(), device.stream()
    x = put(device, np.arange(24, dtype="f4"))
    y, z, n = device.allocate(96), device.allocate(96), np.int32(24)
    scale, add = device.load(SCALE), device.load(ADD)
    device.fill(y, 0, first)
    start = first.record()
    scale.launch("scale", 1, 32, 60000, [x, np.float32(2), n], first)
    end = first.record()
    add.launch("add", 1, 32, 0, [x, y, z, n], second)
    device.copy(y, z, stream=first)
    np.testing.assert_array_equal(get(device, y), 2 * np.arange(24, dtype="f4"))
    end.wait()
    assert end.seconds_since(start) > 0
    array = device.adopt(Tensor(device, stream=7))
    array.__cuda_array_interface__  # noqa: B018
    np.testing.assert_array_equal(array.to_host(), np.arange(24, dtype="f4"))
    assert add.occupancy("add", 64) > 0
    x.free()
    del first, second, start, end, y, z, array
    device.synchronize()
    device.clear_memory()


def _device(fake: FakeDriver) -> CudaDevice:
    fake.lib.fake_reset()
    with_scale(fake)
    with_add(fake)
    return fake.device()


def test_each_call_may_fail(fake: FakeDriver) -> None:
    _scenario(_device(fake))
    functions = sorted(set(fake.calls))
    assert len(functions) > 25
    for function in functions:
        _fail_once(fake, function)


def _fail_once(fake: FakeDriver, function: str) -> None:
    """Let the first, the second, … call of `function` fail."""
    for number in range(100):
        device = _device(fake)
        fake.fail(function, INVALID, number)
        try:
            _scenario(device)
        except DeviceError as error:
            known = ("CUDA_ERROR_INVALID_VALUE", "that the driver does not have")
            assert any(text in str(error) for text in known), (function, number, str(error))
        else:
            tolerated = ("cuDeviceGetAttribute", "cuEventQuery", "cuPointerGetAttribute",
                         "cuFuncGetParamInfo")  # fmt: skip
            assert fake.calls.count(function) <= number or function in tolerated
            if fake.calls.count(function) <= number:
                return
        fake.fail(function, 0)
        assert fake.lib.fake_context_depth() == 0, (function, number)
        _scenario(device)
        assert fake.lib.fake_context_depth() == 0
    pytest.fail(f"{function} is called without an end")
