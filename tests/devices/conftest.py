"""One kernel cache for the tests of this folder, and a driver of CUDA in host memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from codegen.runtime.kernel_cache import KernelCache
from codegen.toolchain.store import Store
from tests.devices.fake_driver import FakeDriver, build_fake


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> KernelCache:
    folder: Path = tmp_path_factory.mktemp("kernels")
    cache = KernelCache(store=Store(folder))
    if cache.compiler.kind != "gcc":
        pytest.skip("no gcc: kernels of CUDA are not emulated here")
    return cache


@pytest.fixture(scope="session")
def fake_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_fake(tmp_path_factory.mktemp("driver"))


@pytest.fixture
def fake(fake_library: Path, cache: KernelCache) -> FakeDriver:
    """A driver of CUDA in host memory, as it is after a start."""
    return FakeDriver(fake_library, cache)
