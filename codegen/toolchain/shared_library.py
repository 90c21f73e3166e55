"""Opening a library that may be missing, for cffi."""

from __future__ import annotations

import ctypes
from typing import Any


def open_library(ffi: Any, path: str) -> Any:
    """Return the library at `path`, or of that name in the system. Raises OSError where there is
    none.

    cffi alone would go on looking, by starting ldconfig and gcc: 0.1 s for each name.
    """
    ctypes.CDLL(path)
    return ffi.dlopen(path)
