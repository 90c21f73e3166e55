"""The one piece of C in the Python process: it loads kernels, calls them, and owns their memory.

Built once per machine and kept in the kernel cache like any kernel. cffi opens it in out-of-line
ABI mode, with declarations that were compiled beforehand (`host_declarations.py`): there is no glue
to compile, and no C parser to import.
Kernels are called through functions of Python's stable ABI that `bind` makes (`taco_python.c`):
0.4 µs for five arrays and a scalar, types checked, where cffi with `from_buffer` takes 1.0 in API
mode before anything is checked.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from codegen.records import dataclass
from codegen.runtime.host_declarations import make_ffi
from codegen.toolchain.compile_unit import RUNTIME_FOLDER, Unit, build_entry
from codegen.toolchain.compiler import Compiler
from codegen.toolchain.entries import Entry
from codegen.toolchain.errors import ToolchainError
from codegen.toolchain.processor import digest, python_abi, source_fingerprint
from codegen.toolchain.store import Store


@dataclass(frozen=True, slots=True, eq=False)
class Host:
    """cffi's `ffi` and `lib` for the functions of `taco_host.c`.

    `bind(entry, number, name, rows)` makes a Python callable of function `number` of a kernel, or
    of the host, whose own entry point is at the address `entry`.
    """

    ffi: Any
    lib: Any
    bind: Callable[[int, int, bytes, tuple[tuple[str, int, int, str], ...]], Callable[..., Any]]
    bind_together: Callable[[Callable[..., Any]], Callable[..., Any]]
    entry: int

    def load(self, library: Path) -> int:
        """Return the address of the entry point of a kernel's shared object. Raises OSError."""
        entry = self.lib.taco_load(os.fsencode(library))
        if entry == self.ffi.NULL:
            raise OSError(self.ffi.string(self.lib.taco_load_error()).decode(errors="replace"))
        return int(self.ffi.cast("intptr_t", entry))


def load_host(store: Store, compiler: Callable[[], Compiler]) -> Host:
    """Return the host from `store`, else built with `compiler()`. Raises ToolchainError."""
    fingerprint = source_fingerprint((RUNTIME_FOLDER,))
    key = digest("host", python_abi(), fingerprint, sys.platform, platform.machine())
    entry = store.load(key)
    if entry is not None:
        try:
            return _load(entry)
        except OSError:
            store.forget(key)
    entry = _build(store, compiler(), key)
    try:
        return _load(entry)
    except OSError as error:
        # a folder from which no program may be loaded
        store.retreat(entry.library.parent, str(error))
    entry = _build(store, compiler(), key)
    try:
        return _load(entry)
    except OSError as error:
        raise ToolchainError(f"Expected to load {entry.library}, found: {error}") from error


def _build(store: Store, compiler: Compiler, key: str) -> Entry:
    text = '#include "taco_host.c"\n#include "taco_python.c"\n#include "taco_together.c"\n'
    unit = Unit((("host.c", text),), libraries=("dl", "pthread"))
    return build_entry(store, key, compiler, unit, ("-O1",), text)


def _load(entry: Entry) -> Host:
    ffi = make_ffi()
    # PyDLL keeps the interpreter lock and passes exceptions on, as a function of the C API needs.
    functions = ctypes.PyDLL(str(entry.library))
    lib = ffi.dlopen(ffi.cast("void *", functions._handle))  # cffi takes no path in any encoding
    lib.taco_start()
    bind = functions.taco_bind
    bind.argtypes = (ctypes.c_int64, ctypes.c_int, ctypes.c_char_p, ctypes.py_object)
    bind.restype = ctypes.py_object
    bind_together = functions.taco_bind_together
    bind_together.argtypes = (ctypes.py_object,)
    bind_together.restype = ctypes.py_object
    call_address = ctypes.cast(functions.taco_host_call, ctypes.c_void_p).value
    return Host(ffi, lib, bind, bind_together, call_address or 0)
