"""One kernel cache for the tests of this folder, in a folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from codegen.runtime.kernel_cache import KernelCache
from codegen.toolchain.store import Store

STRICT = ("-Wall", "-Wextra", "-Werror")


@pytest.fixture(scope="session")
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture(scope="session")
def cache(cache_folder: Path) -> KernelCache:
    """Warnings are errors in what it compiles: the runtime's C must be clean."""
    return KernelCache(store=Store(cache_folder), flags=STRICT)
