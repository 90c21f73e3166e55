"""Products by Intel's MKL, where it is installed, called through cffi where its library is.

    mkl = load_mkl()
    C = mkl.product(A, B)                           matrices, rows together or columns
    C = mkl.sparse_product(rows, arrays, X, …)      CSR times a matrix or a vector

pip install mkl
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from codegen.records import dataclass
from codegen.runtime.blas import Array

NAMES = ("libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so", "mkl_rt.3.dll", "mkl_rt.2.dll")
"""Of its library, the newest first."""
ROW_MAJOR, COLUMN_MAJOR, PLAIN, TRANSPOSED = 101, 102, 111, 112
SPARSE_PLAIN, SPARSE_TRANSPOSED, GENERAL = 10, 11, 20
GNU_THREADS = 3
"""Threads of the runtime that our kernels use as well."""
LETTERS = {"float32": "s", "float64": "d"}
LARGEST = 2**31 - 1
"""Sizes are counted in 32 bits."""

GENERAL_PARTS = """
int MKL_Set_Threading_Layer(int layer);
int MKL_Set_Num_Threads_Local(int count);
struct matrix_descr {{ int type; int mode; int diag; }};
int mkl_sparse_destroy(void *a);
int mkl_sparse_destroy_64(void *a);
"""
DENSE_PARTS = """
void cblas_{letter}gemm(int layout, int ta, int tb, int m, int n, int k, {real} alpha, void *a,
    int lda, void *b, int ldb, {real} beta, void *c, int ldc);
void cblas_{letter}gemv(int layout, int ta, int m, int n, {real} alpha, void *a, int lda, void *x,
    int incx, {real} beta, void *y, int incy);
"""
SPARSE_PARTS = """
int mkl_sparse_{letter}_create_csr{bits}(void **a, int indexing, {index} rows, {index} columns,
    void *starts, void *ends, void *columns_of, void *values);
int mkl_sparse_{letter}_mm{bits}(int op, {real} alpha, void *a, struct matrix_descr descr,
    int layout, void *x, {index} columns, {index} ldx, {real} beta, void *y, {index} ldy);
"""


def _declarations() -> Iterator[str]:
    yield GENERAL_PARTS.format()
    for dtype, letter in LETTERS.items():
        real = "float" if dtype == "float32" else "double"
        yield DENSE_PARTS.format(letter=letter, real=real)
        for bits, index in (("", "int"), ("_64", "long long")):
            yield SPARSE_PARTS.format(letter=letter, real=real, bits=bits, index=index)


@dataclass(frozen=True, slots=True, eq=False)
class Mkl:
    """The library in this process."""

    ffi: Any
    library: Any

    def product(self, a: Array, b: Array, threads: int) -> Array:
        """Multiply matrices of one type. Raises ValueError for shapes that do not fit."""
        if a.shape[1] != b.shape[0] or max(*a.shape, *b.shape) > LARGEST:
            raise ValueError(f"Expected matrices that fit together, found {a.shape}, {b.shape}")
        c = np.empty((a.shape[0], b.shape[1]), a.dtype)
        if not (a.size and b.size):
            c[...] = 0
            return c
        (a, first, lda), (b, second, ldb) = _by_rows(a), _by_rows(b)
        self.library.MKL_Set_Num_Threads_Local(threads)
        gemm = getattr(self.library, f"cblas_{LETTERS[a.dtype.name]}gemm")
        gemm(
            ROW_MAJOR, first, second, c.shape[0], c.shape[1], a.shape[1], 1.0, self._of(a), lda,
            self._of(b), ldb, 0.0, self._of(c), c.shape[1],
        )  # fmt: skip
        return c

    def vector_product(self, a: Array, x: Array, threads: int) -> Array:
        """Multiply a matrix by a vector of its type. Raises ValueError for other shapes."""
        if a.shape[1:] != x.shape or max(a.shape) > LARGEST:
            raise ValueError(f"Expected a vector of {a.shape[1:]}, found {x.shape}")
        y = np.zeros(a.shape[0], a.dtype)
        if not a.size:
            return y
        (a, operation, lda), x = _by_rows(a), np.ascontiguousarray(x)
        rows, columns = a.shape if operation == PLAIN else a.shape[::-1]
        self.library.MKL_Set_Num_Threads_Local(threads)
        gemv = getattr(self.library, f"cblas_{LETTERS[a.dtype.name]}gemv")
        gemv(
            ROW_MAJOR, operation, rows, columns, 1.0, self._of(a), lda, self._of(x), 1, 0.0,
            self._of(y), 1,
        )  # fmt: skip
        return y

    def sparse_product(
        self,
        shape: Sequence[int],
        arrays: Sequence[Array],
        x: Array,
        transposed: bool,
        threads: int,
    ) -> Array:
        """Multiply a matrix in CSR, or its transpose, by a matrix, whose result has its layout.

        arrays  where rows begin, the columns of entries, and their values

        Raises ValueError for shapes that do not fit, RuntimeError where the library refuses.
        """
        rows, columns = shape
        starts, places, values = arrays
        if x.shape[0] != (rows if transposed else columns):
            raise ValueError(f"Expected a matrix that {shape} fits, found {x.shape}")
        length = columns if transposed else rows
        by_rows = x.strides[1] == x.itemsize or x.flags.c_contiguous
        x = np.ascontiguousarray(x) if by_rows else np.asfortranarray(x)
        y = np.zeros((length, x.shape[1]), x.dtype, order="C" if by_rows else "F")
        if not (values.size and x.size):
            return y
        bits = "_64" if places.dtype == np.int64 else ""
        letter, ffi, library = LETTERS[x.dtype.name], self.ffi, self.library
        handle = ffi.new("void **")
        library.MKL_Set_Num_Threads_Local(threads)
        _check(getattr(library, f"mkl_sparse_{letter}_create_csr{bits}")(
            handle, 0, rows, columns, self._of(starts), self._of(starts) + starts.itemsize,
            self._of(places), self._of(values),
        ))  # fmt: skip
        try:
            described = ffi.new("struct matrix_descr *", [GENERAL, 0, 0])[0]
            leading = (x.shape[1], y.shape[1]) if by_rows else (x.shape[0], y.shape[0])
            _check(getattr(library, f"mkl_sparse_{letter}_mm{bits}")(
                SPARSE_TRANSPOSED if transposed else SPARSE_PLAIN, 1.0, handle[0], described,
                ROW_MAJOR if by_rows else COLUMN_MAJOR, self._of(x), x.shape[1], leading[0], 0.0,
                self._of(y), leading[1],
            ))  # fmt: skip
        finally:
            getattr(library, f"mkl_sparse_destroy{bits}")(handle[0])
        return y

    def _of(self, array: Array) -> Any:
        """Return the pointer to an array's first byte."""
        return self.ffi.cast("char *", array.__array_interface__["data"][0])


def load_mkl() -> Mkl | None:
    """Open the library, None where it is not found."""
    import cffi

    folders = [Path(sys.prefix) / "lib", Path(sys.prefix) / "Library" / "bin"]
    if root := os.environ.get("MKLROOT"):
        folders += [Path(root) / "lib", Path(root) / "lib" / "intel64"]
    ffi = cffi.FFI()
    for name in NAMES:
        for path in (*(str(folder / name) for folder in folders), name):
            try:
                library = ffi.dlopen(path)
            except OSError:
                continue
            ffi.cdef("\n".join(_declarations()))
            if not hasattr(library, "mkl_sparse_d_mm_64"):  # before 2021
                return None
            if sys.platform == "linux":
                library.MKL_Set_Threading_Layer(GNU_THREADS)
            return Mkl(ffi, library)
    return None


def _by_rows(a: Array) -> tuple[Array, int, int]:
    """Return a matrix as it is read by rows, whether that is transposed, and from row to row: a
    copy where neither rows nor columns lie together."""
    for operation, inner, outer in ((PLAIN, 1, 0), (TRANSPOSED, 0, 1)):
        unit = a.strides[inner] == a.itemsize or a.shape[inner] == 1
        step, rest = divmod(a.strides[outer], a.itemsize)
        if a.shape[outer] == 1:
            step, rest = a.shape[inner], 0
        if unit and not rest and a.shape[inner] <= step <= LARGEST:
            return a, operation, step
    return np.ascontiguousarray(a), PLAIN, a.shape[1]


def _check(status: int) -> None:
    if status:
        raise RuntimeError(f"Expected MKL to multiply, found status {status}")
