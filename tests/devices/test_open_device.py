"""Devices by their names, and what is missing where there are none."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from codegen.devices.cuda.driver_library import driver_path
from codegen.devices.device import DeviceError
from codegen.devices.emulated import EmulatedDevice
from codegen.devices.open_device import Devices
from codegen.runtime.kernel_cache import KernelCache
from codegen.toolchain.store import Store
from tests.devices.fake_driver import FakeDriver, with_scale


@pytest.fixture
def on_fake(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    """The system's driver is that of tests."""
    monkeypatch.setenv("TACO_PY_CUDA_DRIVER", str(fake.path))
    return fake


def _program(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def test_names_of_devices(on_fake: FakeDriver, cache: KernelCache) -> None:
    on_fake.lib.fake_devices(2)
    devices = Devices(cache)
    assert devices.open("cuda") is devices.open("cuda:0")
    assert devices.open("cuda:1") is not devices.open("cuda:0")
    assert devices.cuda("cuda:1").facts.name == "Fake GPU 1"
    assert isinstance(devices.open("cuda-emulated"), EmulatedDevice)
    for name in ("gpu", "cuda:", "cuda:-1", "CUDA", "cuda-emulated:0", ""):
        with pytest.raises(DeviceError, match='Expected "cuda", "cuda:1" and so on, or'):
            devices.open(name)
    with pytest.raises(DeviceError, match="a device number below 2, found cuda:2"):
        devices.open("cuda:2")


def test_what_a_device_says_of_itself(on_fake: FakeDriver, cache: KernelCache) -> None:
    facts = Devices(cache).cuda().facts
    assert facts.architecture == "sm_90"
    assert (facts.multiprocessors, facts.threads, facts.limits.warp) == (132, 2048, 32)
    assert facts.limits.shared_memory == 232448
    assert facts.limits.static_shared_memory == 49152
    assert facts.bandwidth == pytest.approx(3.352e12, rel=1e-3)


def test_nothing_is_missing(
    on_fake: FakeDriver, cache: KernelCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NVCC", _program(tmp_path, "nvcc", "#!/bin/sh\n"))
    assert Devices(cache).why_not() == ""
    assert Devices(cache).why_not("cuda-emulated") == ""


def test_no_driver(cache: KernelCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TACO_PY_CUDA_DRIVER", "/nowhere/libcuda.so.1")
    said = Devices(cache).why_not()
    assert "Expected the driver of CUDA, found none" in said
    assert "install the driver of NVIDIA" in said
    assert "cuda-emulated" in said


def test_a_library_that_is_no_driver(cache: KernelCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TACO_PY_CUDA_DRIVER", "libc.so.6")
    said = Devices(cache).why_not()
    assert "at libc.so.6, found a library without cuInit; unset TACO_PY_CUDA_DRIVER" in said


def test_a_driver_without_a_device(
    on_fake: FakeDriver, cache: KernelCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_CUDA_INIT", "100")
    said = Devices(cache).why_not()
    assert "to start the driver of CUDA" not in said
    assert said == (
        "Expected the driver to start, found CUDA_ERROR_NO_DEVICE (text of the driver); see "
        "whether nvidia-smi lists a device, and what CUDA_VISIBLE_DEVICES says"
    )
    monkeypatch.delenv("FAKE_CUDA_INIT")
    on_fake.lib.fake_devices(0)
    assert "Expected a device, found none" in Devices(cache).why_not()


def test_no_compiler(
    on_fake: FakeDriver, cache: KernelCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NVCC", str(tmp_path / "nvcc"))
    said = Devices(cache).why_not()
    assert "Expected the environment variable NVCC to name nvcc, found" in said
    assert "unset NVCC" in said


def test_no_compiler_of_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", str(tmp_path / "gcc"))
    cache = KernelCache(store=Store(tmp_path))
    assert "CC" in Devices(cache).why_not("cuda-emulated")


def test_the_system_names_the_driver_where_nothing_else_does() -> None:
    assert driver_path({}) == ("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
    assert driver_path({"TACO_PY_CUDA_DRIVER": "/x/libcuda.so"}) == "/x/libcuda.so"


def test_memory_of_all_devices_is_cleared(on_fake: FakeDriver, cache: KernelCache) -> None:
    with_scale(on_fake)
    devices = Devices(cache)
    device = devices.open("cuda")
    device.upload(buffer := device.allocate(4096), np.zeros(1024, "f4"))
    buffer.free()
    devices.open("cuda-emulated")
    assert on_fake.lib.fake_used() == 4096
    devices.clear_memory()
    assert on_fake.lib.fake_used() == 0
