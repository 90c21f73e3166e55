"""The device of CUDA on a driver in host memory: memory, launches, streams, and what goes wrong."""

from __future__ import annotations

import numpy as np
import pytest

from codegen.devices.cuda.cuda_device import CudaDevice
from codegen.devices.device import DeviceError, LaunchError
from tests.devices.fake_driver import ADD, SCALE, FakeDriver, with_add, with_scale


def _buffer(device: CudaDevice, values: np.ndarray, name: str = ""):
    buffer = device.allocate(values.nbytes, name)
    device.upload(buffer, values)
    return buffer


def _array(device: CudaDevice, buffer, dtype="f4") -> np.ndarray:
    values = np.empty(buffer.size // np.dtype(dtype).itemsize, dtype)
    device.download(buffer, values)
    return values


def test_nothing_is_opened_before_it_is_needed(fake: FakeDriver) -> None:
    fake.device()
    assert fake.calls == []


def test_a_kernel_runs_on_what_was_uploaded(fake: FakeDriver) -> None:
    with_scale(fake)
    device = fake.device()
    x = _buffer(device, np.arange(10, dtype="f4"), "x")
    module = device.load(SCALE)
    launch = module.launch("scale", 1, 128, 0, [x, np.float32(3), np.int32(10)])
    assert module.kernels == ("scale",)
    assert launch.shape.block == (128, 1, 1)
    np.testing.assert_array_equal(_array(device, x), 3 * np.arange(10, dtype="f4"))
    assert fake.lib.fake_context_depth() == 0
