"""Kernel text to a shared object that runs it on the CPU, with every access to memory checked.

The compiler is told that ThreadSanitizer is wanted (`-fsanitize=thread`), which makes it call
`__tsan_read4(address)` and the like before each access, but the object is linked to
`cuda_emulation.c`, which has these functions, and not to the sanitizer's library. A call between
branches (`-fsanitize-coverage=trace-pc`) finds loops without an end.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from codegen.devices.cuda_text import KernelHead, emulated_text, kernel_heads
from codegen.devices.device import DeviceError
from codegen.devices.line_table import LineTable, SharedObject, Variable
from codegen.records import dataclass
from codegen.runtime.kernel_cache import KernelCache
from codegen.toolchain.compile_unit import Unit
from codegen.toolchain.processor import digest

FOLDER = Path(__file__).parent
_OBJECT_FLAGS = ("-O2", "-fno-strict-aliasing", f"-I{FOLDER}")
# No pass may drop an access, make one of two, or move one to where it might not have been.
_FLAGS = (
    "-O1",
    "-gdwarf-4",
    "-g1",
    "-fsanitize=thread,bounds,integer-divide-by-zero,shift",
    "-fsanitize-coverage=trace-pc",
    "-fno-strict-aliasing",
    "-fno-tree-sra",
    "-fno-tree-vectorize",
    "-fno-tree-loop-distribute-patterns",
    "-fno-ipa-reference",
    "-fno-toplevel-reorder",
    "-ffp-contract=fast",
    "-fsigned-char",
    "-Werror=implicit-function-declaration",
    "-Werror=int-conversion",
    "-Werror=incompatible-pointer-types",
    "-Werror=return-type",
    "-Werror=discarded-qualifiers",
    "-Werror=uninitialized",
    "-Werror=c++-compat",
    f"-I{FOLDER}",
    "-nodefaultlibs",
)
_LIBRARIES = ("c", "m", "gcc")
_VOLATILE = ("--param", "tsan-distinguish-volatile=1")


@dataclass(frozen=True, slots=True, eq=False)
class EmulationLibrary:
    """Kernels in this process.

    base             where the object is loaded
    shared, constant variables of blocks, and those that kernels may only read
    lines            of the kernels' text, by addresses relative to `base`
    heads            the kernels of the text, by their names
    """

    ffi: Any
    lib: Any
    base: int
    shared: tuple[Variable, ...]
    constant: tuple[Variable, ...]
    lines: LineTable
    heads: dict[str, KernelHead]


def load_library(cache: KernelCache, text: str, options: tuple[str, ...]) -> EmulationLibrary:
    """Compile the kernels of `text`, unless the cache has them, and load them.

    Raises DeviceError for text that has no kernel, CompileError and NoCompilerError.
    """
    heads = kernel_heads(text)
    if not heads:
        raise DeviceError(
            "Expected a kernel, found none in the text",
            hint='write extern "C" __global__ void name(...) { ... }',
        )
    source = emulated_text(text)
    compiler = cache.compiler
    if compiler.kind != "gcc" or not sys.platform.startswith("linux"):
        raise DeviceError(
            "Expected gcc on Linux to compile kernels for the emulated device, found "
            f"{compiler.kind} on {sys.platform}",
            hint="set the environment variable CC to a gcc of version 11 or newer",
        )
    flags = (*_FLAGS, *_VOLATILE, *options)

    def unit() -> Unit:
        core = Unit((("part.c", _CORE),), (*_OBJECT_FLAGS, *options), output="part.o")
        core_object = cache.load_unit(digest("emulated device", *options), lambda: core).library
        return Unit((("kernel.c", source),), flags, (core_object,), _LIBRARIES)

    key = digest("emulated kernels", source, *flags)
    library: EmulationLibrary | None = cache.memo.get(key)
    if library is None:
        library = _open(cache.load_unit(key, unit).library, heads, _declared(cache))
        cache.memo.put(key, library)
    return library


_CORE = '#include "cuda_emulation.c"\n'
_GAP = re.compile(r"emulated_gap_(\d+)_")
_DECLARED = "declarations of the emulated device"


def _declared(cache: KernelCache) -> Any:
    """Return cffi's `ffi` for `emulated_launch.h`, which takes 20 ms to read."""
    ffi: Any = cache.memo.get(_DECLARED)
    if ffi is None:
        import cffi

        ffi = cffi.FFI()
        ffi.cdef((FOLDER / "emulated_launch.h").read_text() + "void free(void *);")
        cache.memo.put(_DECLARED, ffi)
    return ffi


def _open(path: Path, heads: tuple[KernelHead, ...], ffi: Any) -> EmulationLibrary:
    try:
        lib = ffi.dlopen(str(path))
    except OSError as error:
        raise DeviceError(
            f"Expected to load {path}, found: {error}",
            hint="set TACO_PY_CACHE_DIR to a folder from which programs may be loaded",
        ) from error
    elf = SharedObject(path)
    return EmulationLibrary(
        ffi,
        lib,
        int(lib.emulated_base()),
        _without_gaps(elf.variables("emulated_shared")),
        _without_gaps(elf.variables("emulated_constant")),
        elf.line_table("kernel.cu"),
        {head.name: head for head in heads},
    )


def _without_gaps(variables: tuple[Variable, ...]) -> tuple[Variable, ...]:
    """Return the variables of kernels, with the lines that the gaps before them tell."""
    variables_, line = [], 0
    for variable in variables:
        gap = _GAP.match(variable.name)
        if gap is not None:
            line = int(gap[1])
        else:
            variables_.append(
                Variable(variable.name.partition(".")[0], variable.address, variable.size, line)
            )
    return tuple(variables_)
