"""The library of the CUDA driver, opened when it is first needed.

driver = Driver(driver_path())                                # nothing is opened
driver.run("count devices", "cuDeviceGetCount", box)          # opened, raises DriverError

`TACO_PY_CUDA_DRIVER` names another library to open than the system's.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codegen.devices.cuda.driver_errors import DriverError
from codegen.devices.device import DeviceError
from codegen.toolchain.shared_library import open_library

VARIABLE = "TACO_PY_CUDA_DRIVER"
_DECLARATIONS = Path(__file__).parent / "cuda_driver.h"


class NoDriverError(DeviceError):
    """There is no driver of CUDA that can be opened."""


def driver_path(environ: Mapping[str, str] = os.environ) -> str:
    """Return the library to open: $TACO_PY_CUDA_DRIVER, else the system's."""
    configured = environ.get(VARIABLE)
    if configured:
        return configured
    return "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"


class Driver:
    """The functions of the driver. Each may be called from any thread."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._opened: tuple[Any, Any] | None = None
        self._owner = 0
        self._lock = threading.Lock()

    @property
    def ffi(self) -> Any:
        """Return cffi's interface of the driver."""
        return self._open()[0]

    @property
    def lib(self) -> Any:
        return self._open()[1]

    def run(self, operation: str, function: str, *arguments: Any) -> None:
        """Call `function`. Raises DriverError, which says that `operation` failed."""
        code = getattr(self.lib, function)(*arguments)
        if code:
            raise self.error(operation, code)

    def error(self, operation: str, code: int) -> DriverError:
        """Return the error to raise for the error number `code`."""
        name = self._text("cuGetErrorName", code) or f"error {code}"
        return DriverError(operation, code, name, self._text("cuGetErrorString", code) or "unknown")

    @property
    def version(self) -> tuple[int, int]:
        """Return the newest version of CUDA that the driver runs: (12, 4)."""
        box = self.ffi.new("int *")
        self.run("ask for the version of the driver", "cuDriverGetVersion", box)
        return box[0] // 1000, box[0] % 1000 // 10

    def _text(self, function: str, code: int) -> str:
        box = self.ffi.new("const char **")
        if getattr(self.lib, function)(code, box) or box[0] == self.ffi.NULL:
            return ""
        return str(self.ffi.string(box[0]).decode(errors="replace"))

    def _open(self) -> tuple[Any, Any]:
        if self._opened is None:
            with self._lock:
                if self._opened is None:
                    self._opened = self._load()
                    self._owner = os.getpid()
        if self._owner != os.getpid():
            raise DeviceError(
                "Expected the process that opened the driver of CUDA, found one forked from it",
                hint='start processes by multiprocessing\'s "spawn" or "forkserver"',
            )
        return self._opened

    def _load(self) -> tuple[Any, Any]:
        import cffi

        ffi = cffi.FFI()
        ffi.cdef(_DECLARATIONS.read_text())
        try:
            lib = open_library(ffi, self.path)
        except OSError as error:
            raise NoDriverError(
                f"Expected the driver of CUDA, found none: {error}",
                hint="install the driver of NVIDIA on a machine with its GPU, or use the device "
                '"cuda-emulated"',
            ) from error
        try:
            code = lib.cuInit(0)
        except AttributeError as error:
            raise NoDriverError(
                f"Expected the driver of CUDA at {self.path}, found a library without cuInit",
                hint=f"unset {VARIABLE}",
            ) from error
        if code:
            self._opened, self._owner = (ffi, lib), os.getpid()
            failure = self.error("start", code)
            self._opened = None
            raise failure
        return ffi, lib
