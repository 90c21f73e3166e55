"""The extension linalg of the array API standard.

Products, norms, diagonals and powers stay sparse. Factorizations, and functions that need them,
call LAPACK for dense matrices as NumPy does; they refuse sparse tensors, as the results are dense.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from taco_py.arrays.elementwise import elementwise
from taco_py.arrays.matrix_products import matmul as product
from taco_py.arrays.numpy_surface import composed_products, statistics
from taco_py.arrays.numpy_surface.layouts import check_matrices
from taco_py.arrays.reductions import reduced
from taco_py.arrays.shapes import of_dense
from taco_py.arrays.standard.creation import eye
from taco_py.arrays.standard.several_operations import matmul, matrix_transpose, tensordot, vecdot
from taco_py.arrays.standard.wrapped import tensors
from taco_py.arrays.subscripts_of_modes import broadcast_to
from taco_py.arrays.subscripts_of_modes import diagonal as diagonal_of
from taco_py.data.tensors.tensor import Tensor
from taco_py.language.diagnostics.errors import DimensionError, FormatError, OperandError

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm",
    "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve",
    "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip


OF_SINGULAR_VALUES = ("nuc", 2, -2)
"""Norms of matrices that are computed of their singular values, by LAPACK."""


class EighResult(NamedTuple):
    """Eigenvalues and eigenvectors of Hermitian matrices."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """Orthonormal columns and an upper triangle."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """The sign of a determinant and the logarithm of its absolute value."""

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """Singular vectors and values."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def _dense(x: Any, name: str) -> Any:
    """Return the elements of a dense tensor. Raises FormatError for a sparse one."""
    if isinstance(x, Tensor) and not x.format.is_dense and x.size:
        raise FormatError(
            f"Expected a dense tensor for linalg.{name}, found one in the format {x.format}",
            hint="call .to_dense() of it if the result fits into memory, or use scipy.sparse.linalg"
            " of T.to_scipy()",
        )
    return x.to_numpy() if isinstance(x, Tensor) else np.asarray(x)


def _of_lapack(name: str, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call one of NumPy's functions for dense tensors. Raises OperandError where it fails."""
    arrays = [_dense(arg, name) for arg in args]
    try:
        result = function(*arrays, **options)
    except np.linalg.LinAlgError as error:
        raise OperandError(
            f"Expected matrices that linalg.{name} takes, found: {error}",
            hint=f"the shapes are {', '.join(str(array.shape) for array in arrays)}",
        ) from None
    if isinstance(result, tuple):
        return tuple(of_dense(np.asarray(part)) for part in result)
    return of_dense(np.asarray(result))


@tensors
def cholesky(x: Any, /, *, upper: bool = False) -> Any:
    """Factor Hermitian positive definite matrices, x = L Lᴴ, or Uᴴ U."""
    return _of_lapack("cholesky", np.linalg.cholesky, x, upper=upper)


@tensors
def det(x: Any, /) -> Any:
    """Compute determinants."""
    return _of_lapack("det", np.linalg.det, x)


@tensors
def eigh(x: Any, /) -> EighResult:
    """Compute eigenvalues and eigenvectors of Hermitian matrices."""
    return EighResult(*_of_lapack("eigh", np.linalg.eigh, x))


@tensors
def eigvalsh(x: Any, /) -> Any:
    """Compute eigenvalues of Hermitian matrices."""
    return _of_lapack("eigvalsh", np.linalg.eigvalsh, x)


@tensors
def inv(x: Any, /) -> Any:
    """Compute inverses."""
    return _of_lapack("inv", np.linalg.inv, x)


@tensors
def matrix_rank(x: Any, /, *, rtol: Any = None) -> Any:
    """Count the singular values above a tolerance relative to the largest."""
    options = {} if rtol is None else {"rtol": _dense(rtol, "matrix_rank")}
    return _of_lapack("matrix_rank", np.linalg.matrix_rank, x, **options)


@tensors
def pinv(x: Any, /, *, rtol: Any = None) -> Any:
    """Compute pseudo-inverses."""
    options = {} if rtol is None else {"rtol": _dense(rtol, "pinv")}
    return _of_lapack("pinv", np.linalg.pinv, x, **options)


@tensors
def qr(x: Any, /, *, mode: str = "reduced") -> QRResult:
    """Factor matrices into orthonormal columns and an upper triangle."""
    return QRResult(*_of_lapack("qr", np.linalg.qr, x, mode=mode))


@tensors
def slogdet(x: Any, /) -> SlogdetResult:
    """Compute signs and logarithms of determinants."""
    return SlogdetResult(*_of_lapack("slogdet", np.linalg.slogdet, x))


@tensors
def solve(x1: Any, x2: Any, /) -> Any:
    """Solve systems of linear equations for a vector or matrices."""
    return _of_lapack("solve", np.linalg.solve, x1, x2)


@tensors
def svd(x: Any, /, *, full_matrices: bool = True) -> SVDResult:
    """Compute singular values and vectors."""
    return SVDResult(*_of_lapack("svd", np.linalg.svd, x, full_matrices=full_matrices))


@tensors
def svdvals(x: Any, /) -> Any:
    """Compute singular values."""
    return _of_lapack("svdvals", np.linalg.svdvals, x)


# ---------------------------------------------------------------- functions that stay sparse


@tensors
def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """Take the diagonals of matrices."""
    check_matrices(x, "linalg.diagonal")
    return diagonal_of(x, offset, -2, -1)


@tensors
def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """Add up the diagonals of matrices."""
    check_matrices(x, "linalg.trace")
    return reduced("sum", diagonal_of(x, offset, -2, -1), -1, False, dtype)


@tensors
def outer(x1: Any, x2: Any, /) -> Any:
    """Multiply each element of a vector by each of another."""
    if x1.ndim != 1 or x2.ndim != 1:
        raise DimensionError(
            f"Expected two vectors, found tensors of orders {x1.ndim} and {x2.ndim}",
            hint="x.ravel()",
        )
    return elementwise("multiply", x1[:, None], x2[None, :])


@tensors
def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Compute cross products of vectors of three numbers along a mode."""
    return composed_products.cross(x1, x2, axis)


@tensors
def matrix_power(x: Any, n: int, /) -> Any:
    """Multiply square matrices by themselves, n times; inverses where n is negative."""
    check_matrices(x, "linalg.matrix_power")
    if x.shape[-1] != x.shape[-2]:
        raise DimensionError(f"Expected square matrices, found shape {x.shape}", hint="x @ x.mT")
    if n < 0:
        return matrix_power(inv(x), -n)
    if n == 0:
        one = eye(x.shape[-1], dtype=x.dtype)
        return broadcast_to(one.to_dense() if x.format.is_dense else one, x.shape)
    power: Any = None
    square = x
    while n:
        if n % 2:
            power = square if power is None else product(power, square)
        n //= 2
        square = product(square, square) if n else square
    return power


@tensors
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Any:
    """Compute norms over modes, without axis of all elements: (sum |x|**ord)**(1/ord)."""
    return statistics.vector_norm(x, ord, axis, keepdims)


@tensors
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """Compute norms of matrices: "fro", "nuc", 1, 2, inf, or the least of these, -1, -2, -inf."""
    check_matrices(x, "linalg.matrix_norm")
    if ord not in OF_SINGULAR_VALUES:
        return statistics.matrix_norm(x, ord, (-2, -1), keepdims)
    norm = np.linalg.matrix_norm(_dense(x, "matrix_norm"), keepdims=keepdims, ord=ord)
    return of_dense(np.asarray(norm))
