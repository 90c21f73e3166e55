"""One kernel cache for the tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from codegen.runtime.kernel_cache import KernelCache
from codegen.toolchain.store import Store


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> KernelCache:
    folder: Path = tmp_path_factory.mktemp("kernels")
    cache = KernelCache(store=Store(folder))
    if cache.compiler.kind != "gcc":
        pytest.skip("no gcc: kernels of CUDA are not emulated here")
    return cache
