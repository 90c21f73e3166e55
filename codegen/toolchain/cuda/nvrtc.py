"""NVRTC, the compiler of CUDA that is a library: of the toolkit, or of a wheel.

It takes no C++ compiler, and none of its headers: `<stdint.h>` is given to it here.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from codegen.records import dataclass
from codegen.toolchain.cuda.cuda_compilers import FLAGS, CompilerOutput, check_architecture, nearest
from codegen.toolchain.cuda.ptxas_report import parse_report
from codegen.toolchain.errors import CompileError, NoCompilerError
from codegen.toolchain.shared_library import open_library
from codegen.toolchain.trust import write_own

VARIABLE = "TACO_PY_NVRTC"
_DECLARATIONS = Path(__file__).parent / "nvrtc.h"
_VERSIONS = (13, 12)
_STDINT = """\
#pragma once
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef long long intptr_t;
typedef unsigned long long uintptr_t;
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define UINT32_MAX 4294967295u
#define INT64_MIN (-9223372036854775807ll - 1)
#define INT64_MAX 9223372036854775807ll
#define UINT64_MAX 18446744073709551615ull
"""
_LIMITS = """\
#pragma once
#define CHAR_BIT 8
#define INT_MIN (-2147483647 - 1)
#define INT_MAX 2147483647
#define UINT_MAX 4294967295u
#define LLONG_MIN (-9223372036854775807ll - 1)
#define LLONG_MAX 9223372036854775807ll
"""
HEADERS: dict[str, str] = {
    "stdint.h": _STDINT,
    "cstdint": _STDINT,
    "limits.h": _LIMITS,
    "math.h": "#pragma once\n",
    "stddef.h": "#pragma once\n",
    "stdbool.h": "#pragma once\n",
}
"""Headers of C that texts may include; what is empty is built into NVRTC."""


@dataclass(frozen=True, slots=True, eq=False)
class Nvrtc:
    """The library at `path`, that is open as `lib`."""

    path: str
    identity: str
    ffi: Any
    lib: Any

    @property
    def name(self) -> str:
        return f"NVRTC ({self.path})"

    def compile(
        self, text: str, architecture: str, options: tuple[str, ...], folder: Path
    ) -> CompilerOutput:
        """Return code for `architecture`, or PTX of the nearest older one that NVRTC has.

        Raises CompileError; `folder` has the text then.
        """
        check_architecture(architecture)
        older = nearest(architecture, self.architectures())
        number = architecture.removeprefix("sm_")
        is_native = older is not None and number.startswith(str(older))
        target = f"sm_{number}" if is_native or older is None else f"compute_{older}"
        flags = (f"-arch={target}", "--ptxas-options=-v", *FLAGS, *_includes(), *options)
        return self._compile(text, architecture if is_native else f"sm_{older}", flags, folder)

    def architectures(self) -> tuple[int, ...]:
        """Return the architectures that it compiles for: (75, 80, 90, …)."""
        count = self.ffi.new("int *")
        if self.lib.nvrtcGetNumSupportedArchs(count):
            return ()
        numbers = self.ffi.new("int[]", count[0])
        return () if self.lib.nvrtcGetSupportedArchs(numbers) else tuple(numbers)

    def _compile(
        self, text: str, architecture: str, flags: tuple[str, ...], folder: Path
    ) -> CompilerOutput:
        ffi, lib = self.ffi, self.lib
        names = [ffi.new("char[]", name.encode()) for name in HEADERS]
        texts = [ffi.new("char[]", header.encode()) for header in HEADERS.values()]
        words = [ffi.new("char[]", flag.encode()) for flag in flags]
        box = ffi.new("nvrtcProgram *")
        arguments = (text.encode(), b"kernel.cu", len(names), texts, names)
        self._check(lib.nvrtcCreateProgram(box, *arguments), "", flags, folder, text)
        try:
            result = lib.nvrtcCompileProgram(box[0], len(words), words)
            log = self._read(box[0], "nvrtcGetProgramLog").decode(errors="replace").rstrip("\0\n")
            self._check(result, log, flags, folder, text)
            image = self._read(box[0], "nvrtcGetCUBIN" if "sm_" in flags[0] else "nvrtcGetPTX")
        finally:
            lib.nvrtcDestroyProgram(box)
        return CompilerOutput(image, architecture, parse_report(log))

    def _read(self, program: Any, function: str) -> bytes:
        size = self.ffi.new("size_t *")
        if getattr(self.lib, f"{function}Size")(program, size) or not size[0]:
            return b""
        data = self.ffi.new("char[]", size[0])
        getattr(self.lib, function)(program, data)
        return bytes(self.ffi.buffer(data))

    def _check(
        self, result: int, log: str, flags: tuple[str, ...], folder: Path, text: str
    ) -> None:
        """Raise CompileError unless `result` is 0; the text stays for whoever looks."""
        if not result:
            return
        source = folder / "kernel.cu"
        write_own(source, text.encode())
        said = log or self.ffi.string(self.lib.nvrtcGetErrorString(result)).decode()
        command = " ".join(("nvrtcCompileProgram", *flags, str(source)))
        hint = None
        if "cannot open source file" in said:
            hint = "NVRTC has no headers of its own: pip install nvidia-cuda-runtime, or use nvcc"
        raise CompileError(command, said, str(source), hint, "NVRTC")


def find_nvrtc(environ: Mapping[str, str] = os.environ) -> Nvrtc | None:
    """Return the library that $TACO_PY_NVRTC names, else of a wheel, of a toolkit, or of the
    system.

    Raises NoCompilerError where $TACO_PY_NVRTC names no such library.
    """
    configured = environ.get(VARIABLE)
    for place in [configured] if configured else _places(environ):
        library = _open(place)
        if library is not None:
            return library
    if configured:
        raise NoCompilerError(
            f"Expected {VARIABLE} to name the library of NVRTC, found {configured!r}, which cannot "
            "be opened",
            hint=f"unset {VARIABLE}, or set it to the path of libnvrtc.so",
        )
    return None


def _open(place: str) -> Nvrtc | None:
    import cffi

    ffi = cffi.FFI()
    ffi.cdef(_DECLARATIONS.read_text())
    try:
        lib = open_library(ffi, place)
        numbers = ffi.new("int[2]")
        if lib.nvrtcVersion(numbers, numbers + 1):
            return None
    except (OSError, AttributeError):
        return None
    identity = f"nvrtc {numbers[0]}.{numbers[1]} {place}"
    if Path(place).exists():
        facts = Path(place).resolve().stat()
        identity += f" {facts.st_size} {facts.st_mtime_ns}"
    return Nvrtc(place, identity, ffi, lib)


def _places(environ: Mapping[str, str]) -> Iterator[str]:
    windows = sys.platform == "win32"
    for folder in wheel_folders():
        names = "bin/**/nvrtc64_*.dll" if windows else "lib/libnvrtc.so.*"
        yield from sorted((str(path) for path in folder.glob(names)), reverse=True)
    roots = (environ.get("CUDA_HOME"), environ.get("CUDA_PATH"), "/usr/local/cuda")
    for root in roots:
        if root:
            names = "bin/nvrtc64_*.dll" if windows else "lib*/libnvrtc.so"
            yield from sorted(str(path) for path in Path(root).glob(names))
    for version in _VERSIONS:
        yield f"nvrtc64_{version}0_0.dll" if windows else f"libnvrtc.so.{version}"


def wheel_folders() -> Iterator[Path]:
    """Yield the folders of NVIDIA's wheels: nvidia/cu13, nvidia/cuda_nvrtc, nvidia/cuda_runtime."""
    spec = importlib.util.find_spec("nvidia")
    for root in (spec.submodule_search_locations or ()) if spec is not None else ():
        for name in (*(f"cu{version}" for version in _VERSIONS), "cuda_nvrtc", "cuda_runtime"):
            if (Path(root) / name).is_dir():
                yield Path(root) / name


def _includes() -> tuple[str, ...]:
    """Return the flag for headers of CUDA as cuda_fp16.h: those of a wheel, else of the toolkit."""
    folders = [folder / "include" for folder in wheel_folders()]
    folders.append(Path("/usr/local/cuda/include"))
    flags = (f"-I{folder}" for folder in folders if (folder / "cuda_fp16.h").exists())
    return tuple(itertools.islice(flags, 1))
