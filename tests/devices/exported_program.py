"""Exported CUDA C++ run without a GPU: its kernels on the emulated device, its host program by g++.

The host program is compiled as it is, against `runtime_on_cpu.h` in place of CUDA's runtime. What
it asks of the runtime the emulated device does, which checks each access of the kernels, and that
is counted: calls of each kind, and memory that is not freed.
"""

from __future__ import annotations

import atexit
import re
import shutil
import subprocess
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest

from codegen.devices.device import Buffer, Pointer
from codegen.devices.emulated import EmulatedDevice
from codegen.toolchain.compile_unit import RUNTIME_FOLDER
from taco_py.data.kernels import KERNELS

SHIM = Path(__file__).parent / "runtime_on_cpu.h"
HOST = "/* ---------------------------------------------------------------- the host */"
KERNEL = re.compile(r'extern "C" __global__ void __launch_bounds__\([^)]*\) (\w+)\(([^{]*)\)\s*\{')
OUT_OF_MEMORY, UNKNOWN = 2, 999
TO_DEVICE, TO_HOST = 1, 2
CALLS = """
struct Calls {
    int (*allocate)(void **, size_t);
    void (*release)(void *);
    int (*copy)(void *, const void *, size_t, int);
    int (*set)(void *, int, size_t);
    int (*launch)(const char *, unsigned, unsigned, void **);
    int (*wait)(void);
};
extern struct Calls calls;
int run_main(void);
"""


class ExportedProgram:
    """The files of a folder, ready to run; `declarations` of what else a test calls."""

    def __init__(self, folder: Path, declarations: str = "", seed: int = 1) -> None:
        from cffi import FFI

        self.ffi: Any = FFI()
        self.ffi.cdef(CALLS + declarations)
        self.device = EmulatedDevice(KERNELS, seed=seed)
        self.count: Counter[str] = Counter()
        self.refused: str = ""  # the call of the runtime that fails from now on
        self._buffers: dict[int, Buffer] = {}
        self._next = 1 << 40
        texts = {p.name: p.read_text() for p in sorted(folder.glob("*.cu"))}
        parts = {name: text.partition(HOST)[0] for name, text in texts.items()}
        kernels = {name: text for name, text in parts.items() if KERNEL.search(text)}
        self._modules = {name: self.device.load(text) for name, text in kernels.items()}
        self._owner = {k: name for name, text in kernels.items() for k in _stubs(text)}
        self.library = self.ffi.dlopen(str(_built(folder, texts)))
        self._callbacks = self._tied()

    @property
    def kept(self) -> int:
        """Buffers that nobody has freed."""
        return len(self._buffers)

    def uploaded(self, array: Any) -> Any:
        """The place of an array on the device, which stays there."""
        place = self.ffi.new("void **")
        self._allocate(place, array.nbytes)
        self._copy(place[0], self.ffi.from_buffer(array), array.nbytes, TO_DEVICE)
        return place[0]

    def downloaded(self, place: Any, length: int, dtype: str) -> Any:
        """An array of the device."""
        found = np.empty(length, dtype)
        self._copy(self.ffi.from_buffer(found), place, found.nbytes, TO_HOST)
        return found

    def _tied(self) -> list[Any]:
        """The functions that the runtime calls."""
        made: dict[str, tuple[str, Callable[..., Any]]] = {
            "allocate": ("int(void **, size_t)", self._allocate),
            "release": ("void(void *)", self._release),
            "copy": ("int(void *, const void *, size_t, int)", self._copy),
            "set": ("int(void *, int, size_t)", self._set),
            "launch": ("int(const char *, unsigned, unsigned, void **)", self._launch),
            "wait": ("int(void)", lambda: 0),
        }
        tied = []
        for name, (type, act) in made.items():
            failed = {} if name == "release" else {"error": UNKNOWN}
            tied.append(self.ffi.callback(type, self._counted(name, act), **failed))
            setattr(self.library.calls, name, tied[-1])
        return tied

    def _counted(self, name: str, act: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any) -> Any:
            self.count[name] += 1
            if name == self.refused:
                return OUT_OF_MEMORY if name == "allocate" else UNKNOWN
            return act(*arguments)

        return counted

    def _allocate(self, place: Any, size: int) -> int:
        self._buffers[self._next] = self.device.allocate(size)
        place[0] = self.ffi.cast("void *", self._next)
        self._next += (size + 4095) // 4096 * 4096 + 4096
        return 0

    def _release(self, place: Any) -> None:
        self._buffers.pop(int(self.ffi.cast("uintptr_t", place))).free()

    def _place(self, address: int) -> Pointer:
        starts = sorted(self._buffers)
        start = starts[bisect_right(starts, address) - 1]
        return self._buffers[start].at(address - start)

    def _copy(self, to: Any, source: Any, size: int, kind: int) -> int:
        found = np.empty(size, np.uint8)
        if kind == TO_DEVICE:
            found[:] = np.frombuffer(self.ffi.buffer(source, size), np.uint8)
        else:
            place = self._place(int(self.ffi.cast("uintptr_t", source)))
            self.device.download(place.buffer, found, place.offset)
        if kind == TO_HOST:
            self.ffi.memmove(to, found, size)
        else:
            place = self._place(int(self.ffi.cast("uintptr_t", to)))
            self.device.upload(place.buffer, found, place.offset)
        return 0

    def _set(self, to: Any, byte: int, size: int) -> int:
        place = self._place(int(self.ffi.cast("uintptr_t", to)))
        self.device.upload(place.buffer, np.full(size, byte, np.uint8), place.offset)
        return 0

    def _launch(self, name: Any, grid: int, block: int, places: Any) -> int:
        kernel = self.ffi.string(name).decode()
        module = self._modules[self._owner[kernel]]
        types = module._kernels[kernel].parameters
        given = [self._argument(type, places[k]) for k, type in enumerate(types)]
        module.launch(kernel, grid, block, 0, given)
        return 0

    def _argument(self, type: Any, place: Any) -> Any:
        raw = bytes(self.ffi.buffer(place, type.size or 8))
        if type.kind == 0:
            return self._place(int.from_bytes(raw[:8], "little"))
        dtype = "?" if type.kind == 2 and type.size == 1 else f"{'iuf'[type.kind - 1]}{type.size}"
        return np.frombuffer(raw, dtype)[0]


def _stubs(text: str) -> dict[str, str]:
    """A function without a body for each kernel of a text."""
    found = {match[1]: match[2] for match in KERNEL.finditer(text)}
    return {name: f'extern "C" void {name}({given}) {{}}' for name, given in found.items()}


FLAGS = ("-std=c++17", "-O0", "-fPIC", "-Wall", "-Werror", "-Wno-unused-parameter")


@cache
def _precompiled(compiler: str) -> Path:
    """A folder with what host programs include, read once: it is most of the time they take."""
    folder = Path(mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    shutil.copy(SHIM, folder / "cuda_runtime.h")
    shutil.copy(RUNTIME_FOLDER / "taco_cuda.h", folder)
    (folder / "host.h").write_text('#include "cuda_runtime.h"\n#include "taco_cuda.h"\n')
    _run([compiler, *FLAGS, "-I.", "-x", "c++-header", "host.h"], folder)
    return folder


def _built(folder: Path, texts: dict[str, str]) -> Path:
    """The host programs as a library."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++ on the PATH: host programs are C++")
    made = folder / "host"
    made.mkdir()
    for path in folder.glob("*.h"):
        shutil.copy(path, made)
    for name, text in texts.items():
        kernels, mark, host = text.rpartition(HOST)
        stubs = "\n".join(_stubs(kernels).values()) if mark else ""
        (made / f"{name}.cpp").write_text(f"{stubs}\n{host}")
    includes = [f"-I{_precompiled(compiler)}", "-include", "host.h"]
    sources = [f"{name}.cpp" for name in texts]
    _run([compiler, *FLAGS, "-shared", *includes, *sources, "-o", "host.so", "-ldl"], made)
    return made / "host.so"


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
