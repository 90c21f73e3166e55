"""A driver of CUDA in host memory, with the functions by which tests tell it what to do."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codegen.devices.cuda.cuda_device import CudaDevice
from codegen.devices.cuda.driver_library import Driver
from codegen.runtime.kernel_cache import KernelCache
from codegen.toolchain.cuda.cuda_compilers import CompilerOutput

SOURCE = Path(__file__).parent / "fake_cuda.c"
_CONTROLS = """
void fake_reset(void);
void fake_devices(int);
void fake_memory(size_t);
size_t fake_used(void);
void fake_attribute(int, int);
void fake_log(const char *);
const char *fake_calls(void);
void fake_forget_calls(void);
int fake_context_depth(void);
void fake_fail(const char *, int, int);
void fake_kernel(const char *, int, const int *, void (*)(const uint32_t *, void **));
void fake_kernel_facts(const char *, int, int, int, int);
"""


def build_fake(folder: Path) -> Path:
    """Compile the driver, or skip where there is no gcc."""
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("no gcc on the PATH: the driver of tests is written in C")
    library = folder / "libfake_cuda.so"
    command = [
        gcc,
        "-O1",
        "-g",
        "-Wall",
        "-Werror",
        "-shared",
        "-fPIC",
        "-fvisibility=hidden",
        "-pthread",
    ]
    subprocess.run([*command, str(SOURCE), "-o", str(library)], check=True)
    return library


class FakeCompiler:
    """Stands for nvcc: the image is the text."""

    name = "a compiler of tests"
    identity = "test 1"

    def __init__(self) -> None:
        self.texts: list[tuple[str, str, tuple[str, ...]]] = []

    def compile(
        self, text: str, architecture: str, options: tuple[str, ...], folder: Path
    ) -> CompilerOutput:
        self.texts.append((text, architecture, options))
        return CompilerOutput(text.encode(), architecture, ())


class FakeDriver:
    """The library at `path`, as it is after a start."""

    def __init__(self, path: Path, cache: KernelCache) -> None:
        import cffi

        self.path = path
        self.cache = cache
        self.ffi = cffi.FFI()
        self.ffi.cdef(_CONTROLS)
        self.lib = self.ffi.dlopen(str(path))
        self.lib.fake_reset()
        self._kept: list[Any] = []

    def device(self, ordinal: int = 0, **settings: Any) -> CudaDevice:
        settings.setdefault("compiler", FakeCompiler())
        return CudaDevice(self.cache, ordinal, driver=Driver(str(self.path)), **settings)

    def kernel(
        self, name: str, sizes: tuple[int, ...], function: Callable[[list[int], list[int]], None]
    ) -> None:
        """Let `name` run `function(shape, arguments)`, with the address of each argument."""
        count = len(sizes)

        def run(shape: Any, arguments: Any) -> None:
            cast = self.ffi.cast
            places = [int(cast("uintptr_t", arguments[i])) for i in range(count)]
            function(list(shape[0:7]), places)

        callback = self.ffi.callback("void(const uint32_t *, void **)", run)
        self._kept.append(callback)
        self.lib.fake_kernel(name.encode(), count, list(sizes), callback)

    @property
    def calls(self) -> list[str]:
        return self.ffi.string(self.lib.fake_calls()).decode().split()

    def fail(self, function: str, code: int, after: int = 0) -> None:
        self.lib.fake_fail(function.encode(), code, after)

    def value(self, address: int, dtype: str) -> Any:
        """The number at an argument's address."""
        return np.frombuffer(self.ffi.buffer(self.ffi.cast("char *", address), 8), dtype)[0]

    def memory(self, argument: int, dtype: str, count: int) -> Any:
        """The array that the pointer at an argument's address points to."""
        address = int(self.value(argument, "u8"))
        size = count * np.dtype(dtype).itemsize
        return np.frombuffer(self.ffi.buffer(self.ffi.cast("char *", address), size), dtype)


SCALE = """
extern "C" __global__ void scale(float *x, float by, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        x[i] *= by;
}
"""


def with_scale(fake: FakeDriver) -> None:
    """The kernel of SCALE: multiply by a number."""

    def scale(shape: list[int], arguments: list[int]) -> None:
        x = fake.memory(arguments[0], "f4", int(fake.value(arguments[2], "i4")))
        x *= fake.value(arguments[1], "f4")

    fake.kernel("scale", (8, 4, 4), scale)


ADD = """
extern "C" __global__ void add(const float *x, const float *y, float *z, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        z[i] = x[i] + y[i];
}
"""


def with_add(fake: FakeDriver) -> None:
    """The kernel of ADD: z = x + y."""

    def add(shape: list[int], arguments: list[int]) -> None:
        n = int(fake.value(arguments[3], "i4"))
        x, y, z = (fake.memory(arguments[i], "f4", n) for i in range(3))
        z[:] = x + y

    fake.kernel("add", (8, 8, 8, 4), add)
