"""The one piece of C in the Python process: it loads kernels, calls them, and owns their memory.

Built once per machine and kept in the kernel cache like any kernel. cffi opens it in out-of-line ABI
mode (no glue to compile, no C parser to import when it comes from the cache). Where Python's headers
are installed the same shared object is also an extension module whose `bind` makes a METH_FASTCALL
function of a kernel's function (`taco_python.c`); elsewhere calls go through cffi. Measured for five
arrays and a scalar: 0.42 µs by `bind`, NNN µs through cffi.
"""

from __future__ import annotations

import platform
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from io import StringIO
from pathlib import Path
from typing import Any

from codegen.toolchain.build import RUNTIME_FOLDER, Unit, start_compiling
from codegen.toolchain.compiler import Compiler
from codegen.toolchain.errors import CompileError, ToolchainError
from codegen.toolchain.machine import digest, python_abi, source_fingerprint
from codegen.toolchain.store import Entry, Store

_NAME = "_tacopy_host"
"""Of the extension module, as taco_python.c has it."""

CDEF = """
typedef struct {
    void *data;
    int64_t length;
    int64_t capacity;
    int64_t mapped;
    void *spare;
    int64_t spare_bytes;
} taco_buffer;
typedef union {
    void *pointer;
    taco_buffer *buffer;
    int64_t integer;
    uint64_t natural;
    double real;
    double parts[2];
} taco_argument;
void taco_start(void);
int32_t taco_in_child(void);
void *taco_load(const char *path);
const char *taco_load_error(void);
int32_t taco_invoke(void *entry, int32_t function, const taco_argument *arguments);
int32_t taco_make_room(taco_buffer *buffer, int64_t elements, int64_t itemsize);
void taco_discard(taco_buffer *buffer);
void *taco_new_mapping(int64_t bytes, int64_t *mapped);
void taco_give_back(int64_t address, int64_t mapped);
int64_t taco_shorten(int64_t address, int64_t *mapped, int64_t bytes);
"""


@dataclass(frozen=True, slots=True, eq=False)
class Host:
    """cffi's `ffi` and `lib` for the declarations above; `bind` where Python's headers exist."""

    ffi: Any
    lib: Any
    bind: Callable[..., Callable[..., Any]] | None

    def load(self, library: Path) -> int:
        """The address of the entry point of a kernel's shared object. Raises OSError."""
        entry = self.lib.taco_load(str(library).encode())
        if entry == self.ffi.NULL:
            raise OSError(self.ffi.string(self.lib.taco_load_error()).decode(errors="replace"))
        return int(self.ffi.cast("intptr_t", entry))


def load_host(store: Store, compiler: Callable[[], Compiler]) -> Host:
    """The host from `store`, else built with `compiler()`. Raises ToolchainError."""
    if python_headers() is not None:
        try:
            return _load_or_build(store, compiler, fast=True)
        except CompileError:
            # Headers that do not fit this compiler: calls are slower without them, and right.
            return _load_or_build(store, compiler, fast=False)
    return _load_or_build(store, compiler, fast=False)


def python_headers() -> Path | None:
    """The folder of Python.h, or None where it is not installed (Debian has it in python3-dev)."""
    folder = Path(sysconfig.get_path("include"))
    return folder if (folder / "Python.h").exists() else None


def _load_or_build(store: Store, compiler: Callable[[], Compiler], fast: bool) -> Host:
    fingerprint = source_fingerprint((RUNTIME_FOLDER,))
    key = digest("host", str(fast), python_abi(), fingerprint, sys.platform, platform.machine())
    entry = store.load(key)
    if entry is not None:
        try:
            return _load(entry, fast)
        except (ImportError, OSError):
            store.forget(key)
    entry = _build(store, compiler(), key, fast)
    try:
        return _load(entry, fast)
    except (ImportError, OSError) as error:
        store.retreat(str(error))  # a folder from which no program may be loaded
    entry = _build(store, compiler(), key, fast)
    try:
        return _load(entry, fast)
    except (ImportError, OSError) as error:
        raise ToolchainError(f"Expected to load {entry.library}, found: {error}") from error


def _build(store: Store, compiler: Compiler, key: str, fast: bool) -> Entry:
    text = '#include "taco_host.c"\n'
    flags: tuple[str, ...] = ("-O1",)
    if fast:
        text += '#include "taco_python.c"\n'
        flags += (f"-I{python_headers()}", *_limited_api())
    with store.workplace() as place:
        job = start_compiling(compiler, Unit((("host.c", text),)), flags, place)
        try:
            declarations = _declarations()  # while the compiler works
        except BaseException:
            job.cancel()
            raise
        return store.store(key, job.finish(), text, declarations)


def _limited_api() -> tuple[str, ...]:
    """The limited API halves the time that Python.h takes; debug and free-threaded builds lack it."""
    if "d" in sys.abiflags or "t" in sys.abiflags:
        return ()
    return ("-DPy_LIMITED_API=0x030b0000",)


def _declarations() -> str:
    """CDEF as cffi compiles it for out-of-line ABI mode: a Python module that defines `ffi`."""
    from cffi import FFI
    from cffi.recompiler import Recompiler

    ffi = FFI()
    ffi.cdef(CDEF)
    recompiler = Recompiler(ffi, _NAME, target_is_python=True)
    recompiler.collect_type_table()
    recompiler.collect_step_tables()
    text = StringIO()
    recompiler.write_source_to_f(text, None)
    return text.getvalue()


def _load(entry: Entry, fast: bool) -> Host:
    names: dict[str, Any] = {}
    exec(entry.facts, names)
    ffi = names["ffi"]
    lib = ffi.dlopen(str(entry.library))
    lib.taco_start()
    return Host(ffi, lib, _bind_of(entry.library) if fast else None)


def _bind_of(library: Path) -> Callable[..., Callable[..., Any]]:
    """`bind` of the extension module in `library`. Raises ImportError."""
    loader = ExtensionFileLoader(_NAME, str(library))
    spec = spec_from_file_location(_NAME, library, loader=loader)
    if spec is None:
        raise ImportError(f"no module {_NAME} in {library}")
    module = module_from_spec(spec)
    loader.exec_module(module)
    bind: Callable[..., Callable[..., Any]] = module.bind
    return bind
