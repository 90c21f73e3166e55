"""Products of MKL's inspector-executor handles, where its shared library is found.

pip install mkl intel-openmp; LD_LIBRARY_PATH=…/lib python -m benchmarks.run formats
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

PRODUCT, GENERAL, ROW_MAJOR = 10, 20, 101
CALLS = 1000


class _Description(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int), ("fill", ctypes.c_int), ("diagonal", ctypes.c_int))


def mkl() -> Any | None:
    """The library with one thread, None where it is not found."""
    home = Path(sys.prefix) / "lib"
    for name in ("libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so"):
        for path in (name, str(home / name)):
            try:
                found = ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
            except OSError:
                continue
            found.MKL_Set_Num_Threads(1)
            return found
    return None


def handle_products(a: Any, x: Any) -> dict[str, Callable[[], Any]]:
    """a @ x by handles of a in its own format: as created, and optimised for many products."""
    library = mkl()
    if library is None or a.indptr.dtype != np.int32:
        return {}
    found = {}
    for optimised in (False, True):
        handle = _handle(library, a)
        name = f"MKL {a.format.upper()}{' optimised' if optimised else ''}"
        if optimised:
            described = _Description(GENERAL, 0, 0)
            library.mkl_sparse_set_mv_hint(handle, PRODUCT, described, CALLS)
            library.mkl_sparse_optimize(handle)
        found[name] = _product(library, handle, a, x)
    return found


def _handle(library: Any, a: Any) -> ctypes.c_void_p:
    handle = ctypes.c_void_p()
    starts, stops = a.indptr.ctypes.data, a.indptr.ctypes.data + a.indptr.itemsize
    arrays = [ctypes.c_void_p(each) for each in (starts, stops, a.indices.ctypes.data)]
    values = ctypes.c_void_p(a.data.ctypes.data)
    if a.format == "bsr":
        size = a.blocksize[0]
        sizes = (ROW_MAJOR, a.shape[0] // size, a.shape[1] // size, size)
        status = library.mkl_sparse_d_create_bsr(ctypes.byref(handle), 0, *sizes, *arrays, values)
    else:
        status = library.mkl_sparse_d_create_csr(ctypes.byref(handle), 0, *a.shape, *arrays, values)
    assert status == 0, status
    return handle


def _product(library: Any, handle: ctypes.c_void_p, a: Any, x: Any) -> Callable[[], Any]:
    multiply = library.mkl_sparse_d_mv
    multiply.argtypes = [
        ctypes.c_int, ctypes.c_double, ctypes.c_void_p, _Description, ctypes.c_void_p,
        ctypes.c_double, ctypes.c_void_p,
    ]  # fmt: skip
    described = _Description(GENERAL, 0, 0)

    def run() -> Any:
        y = np.empty(a.shape[0])
        status = multiply(PRODUCT, 1.0, handle, described, x.ctypes.data, 0.0, y.ctypes.data)
        assert status == 0, status
        return y

    return run
