"""Products with vectors by the BLAS that comes with SciPy, called through cffi where it is.

vectors = vector_routines("float64")
y = vectors.matrix_vector(A, x)        y = A x
s = vectors.dot(x, y)                  s = sum of x y, real numbers
"""

from __future__ import annotations

from typing import Any

import numpy as np

from codegen.records import dataclass
from codegen.runtime.blas import Array, load

GEMV = {"float32": "sgemv", "float64": "dgemv", "complex64": "cgemv", "complex128": "zgemv"}
DOT = {"float32": "sdot", "float64": "ddot"}
"""Routines by element type. Those of complex numbers give them in ways that compilers differ in."""


@dataclass(frozen=True, slots=True, eq=False)
class VectorRoutines:
    """Routines for one element type, by cffi's functions.

    product  y = alpha op(A) x + beta y
    sum      of products; None for complex numbers
    """

    ffi: Any
    dtype: np.dtype[Any]
    product: Any
    sum: Any | None

    def matrix_vector(self, a: Array, x: Array) -> Array:
        """Multiply a matrix by a vector of the same type. Raises ValueError for other shapes."""
        if a.shape[1:] != x.shape:
            raise ValueError(f"Expected a vector of {a.shape[1:]}, found {x.shape}")
        y = np.empty(a.shape[0], self.dtype)
        if not a.size:
            y[...] = 0
            return y
        a, transposed = _columns(a)
        x, step = _vector(x)
        rows, columns = a.shape[::-1] if transposed else a.shape
        leading = max(_step(a, 0 if transposed else 1), rows)
        ffi, number = self.ffi, self._number
        one, zero = np.ones(1, self.dtype), np.zeros(1, self.dtype)
        self.product(
            ffi.new("char *", b"T" if transposed else b"N"), number(rows), number(columns),
            self._of(one), self._of(a), number(leading), self._of(x), number(step),
            self._of(zero), self._of(y), number(1),
        )  # fmt: skip
        return y

    def dot(self, x: Array, y: Array) -> Any:
        """Sum the products of two vectors. Raises ValueError for other shapes."""
        if x.shape != y.shape or self.sum is None:
            raise ValueError(f"Expected two vectors of real numbers, found {x.shape}, {y.shape}")
        (x, step), (y, other) = _vector(x), _vector(y)
        number = self._number
        result = self.sum(number(len(x)), self._of(x), number(step), self._of(y), number(other))
        return self.dtype.type(result)

    def _number(self, value: int) -> Any:
        return self.ffi.new("int *", value)

    def _of(self, array: Array) -> Any:
        return self.ffi.cast("void *", array.__array_interface__["data"][0])


def vector_routines(dtype: str) -> VectorRoutines | None:
    """Return the routines for an element type, None where there is no library."""
    loaded = load()
    if loaded is None or dtype not in GEMV:
        return None
    import cffi

    ffi = cffi.FFI()
    number = "float" if dtype == "float32" else "double"
    product = "void (*)(char *, int *, int *, void *, void *, int *, void *, int *, void *, "
    product += "void *, int *)"
    total = f"{number} (*)(int *, void *, int *, void *, int *)"
    add = ffi.cast(total, loaded.routine(DOT[dtype])) if dtype in DOT else None
    called = ffi.cast(product, loaded.routine(GEMV[dtype]))
    return VectorRoutines(ffi, np.dtype(dtype), called, add)


def _step(array: Array, axis: int) -> int:
    return array.strides[axis] // array.itemsize


def _columns(a: Array) -> tuple[Array, bool]:
    """Return a matrix as the routine reads it, and whether that is by rows: a copy where neither
    rows nor columns lie together."""
    for by_rows in (True, False):
        inner, outer = (1, 0) if by_rows else (0, 1)
        unit = a.strides[inner] == a.itemsize or a.shape[inner] == 1
        if unit and (a.shape[outer] == 1 or a.strides[outer] >= a.shape[inner] * a.itemsize):
            return a, by_rows
    return np.ascontiguousarray(a), True


def _vector(x: Array) -> tuple[Array, int]:
    """Return a vector with the step from one element to the next: a copy where that is not
    forwards."""
    if len(x) < 2:
        return np.ascontiguousarray(x), 1
    if x.strides[0] <= 0 or x.strides[0] % x.itemsize:
        return np.ascontiguousarray(x), 1
    return x, _step(x, 0)
