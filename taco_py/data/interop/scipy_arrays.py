"""scipy.sparse arrays and matrices as TensorData and back, without copying their arrays."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from functools import lru_cache
from types import FrameType, MappingProxyType
from typing import Any, TypeGuard

import numpy as np
import scipy.sparse as sp

from taco_py.data.kernels import KERNELS
from taco_py.data.storage.borrow import from_compressed, from_coordinates, require_dtype
from taco_py.data.storage.room import room
from taco_py.data.storage.tensor_data import Array, TensorData, ordered
from taco_py.language.diagnostics.errors import (
    FormatError,
    OperandTypeError,
    StructureError,
    TacoError,
)
from taco_py.language.diagnostics.suggest import with_suggestion
from taco_py.language.formats import CSC, CSR, LETTERS, Format
from taco_py.language.notation.half_types import computed_dtype, is_half

COMPRESSED_VECTOR = Format((LETTERS["s"],), (0,))
ASCENDS = {np.dtype(f"int{bits}"): f"taco_ascends_int{bits}" for bits in (32, 64)}
CLASSES: Mapping[str, Any] = MappingProxyType({
    f"{form}_{family}": getattr(sp, f"{form}_{family}")
    for form in ("coo", "csr", "csc", "bsr", "dia", "lil", "dok")
    for family in ("array", "matrix")
})  # fmt: skip
"""SciPy's classes by name, so that no name can lead to a function of SciPy."""

KINDS = ("csr_array", "csc_array", "coo_array", "csr_matrix", "csc_matrix", "coo_matrix")


def is_scipy_sparse(x: object) -> TypeGuard[Any]:
    """Tell whether `x` is a scipy.sparse array or matrix of any format."""
    return bool(sp.issparse(x))


HANDS_BACK = frozenset({
    "_comparison", "_divide", "_matmul_dispatch", "_multiply_2d_with_broadcasting", "multiply"
})  # fmt: skip
"""Functions of scipy.sparse that return NotImplemented for operands that NumPy treats as
objects."""


def is_operand_of_scipy(caller: FrameType | None) -> bool:
    """Tell whether an operator of scipy.sparse asks for an array that it should treat as an object.

    It then hands back to the other operand.

    caller  the frame that asks for the array
    """
    if caller is None or caller.f_code.co_name not in HANDS_BACK:
        return False
    return str(caller.f_globals.get("__name__", "")).startswith("scipy.sparse.")


def function_of_scipy(caller: FrameType | None) -> str:
    """Return the name of the scipy.special function that asks for an array, else "".

    caller  the frame that asks
    """
    name = ""
    while caller is not None and str(caller.f_globals.get("__name__", "")).startswith("scipy."):
        if str(caller.f_globals["__name__"]).startswith("scipy.special."):
            name = caller.f_code.co_name
        caller = caller.f_back
    return name


def from_scipy(A: Any) -> TensorData:  # noqa: N803 - the field's name for a matrix
    """Return the same tensor as TensorData: CSR, CSC and COO (n-D too) borrow arrays, others become
    CSR.

    A is never modified; in particular its cached flags (sorted indices, canonical format) are read
    where scipy has computed them already and left uncomputed elsewhere. Raises OperandTypeError for
    other objects and unsupported dtypes, StructureError when the arrays' lengths contradict each
    other.
    """
    try:
        return _from_scipy(A)
    except (AttributeError, TypeError, ValueError, IndexError) as error:
        if isinstance(error, TacoError) or not is_scipy_sparse(A):
            raise
        raise StructureError(
            f"Expected a {type(A).__name__} whose arrays fit together, found others: {error}",
            hint="rebuild the matrix from its coordinates",
        ) from error


def _from_scipy(A: Any) -> TensorData:  # noqa: N803
    shape: tuple[int, ...] = getattr(A, "shape", ())
    match getattr(A, "format", None):
        case "csr":
            format = CSR if len(shape) == 2 else COMPRESSED_VECTOR
            return from_compressed(A.indptr, A.indices, A.data, shape, format)
        case "csc":
            return from_compressed(A.indptr, A.indices, A.data, shape, CSC)
        case "coo":
            # scipy's canonical COO may be in row or column order: no duplicates, any order
            unique = True if A.has_canonical_format else None
            return from_coordinates(A.coords, A.data, shape, None, unique)
        case "bsr" if A.data.shape[1:] == (1, 1):
            return from_compressed(A.indptr, A.indices, A.data.reshape(-1), shape, CSR)
        case "bsr" | "dia" | "lil" | "dok":
            require_dtype(A.dtype, "values")
            if is_half(A.dtype):
                raise OperandTypeError(
                    f"Expected {A.dtype} in CSR, CSC or COO, found {A.format}, which scipy does "
                    "not convert",
                    hint="convert it with .astype(np.float32)",
                )
            _check_before_copy(A)
            with room(f"a copy of {A.format} in CSR", A.nnz * A.dtype.itemsize):
                return from_scipy(A.tocsr() if len(shape) == 2 else A.tocoo())
        case _:
            raise OperandTypeError(
                f"Expected a scipy.sparse array or matrix, found {type(A).__name__}",
                hint="csr, csc, coo, bsr, dia, lil and dok are accepted",
            )


def _check_before_copy(A: Any) -> None:  # noqa: N803
    """Raise StructureError where a conversion by scipy would access arrays out of bounds."""
    if A.format == "bsr":
        r, c = (max(size, 1) for size in A.data.shape[1:])
        shape = (A.shape[0] // r, A.shape[1] // c)
        blocks = np.arange(len(A.data))  # each block is replaced by its number
        from_compressed(A.indptr, A.indices, blocks, shape, CSR)
    elif A.format == "dok":
        from_scipy(A.tocoo())


def coordinate_order(pos: Array, crd: Array) -> tuple[bool, bool | None]:
    """Return (sorted, unique) of a compressed level's coordinates below each parent, by reading
    them.

    scipy's flags are not used: they stay unchanged when someone writes to the arrays.
    """
    if is_canonical(pos, crd):
        return True, True
    if is_ascending(pos, crd):
        return True, False
    return False, None  # only neighbours have been compared


def is_canonical(pos: Array, crd: Array) -> bool:
    """Tell whether the coordinates below each parent ascend strictly."""
    dtype = pos.dtype
    look = KERNELS.host_functions.get(ASCENDS.get(dtype, ""))
    if look is not None and crd.dtype == dtype and is_plain(pos) and is_plain(crd):
        result = np.zeros(1, np.int64)
        look(pos, crd, result, len(pos) - 1, len(crd))
        return bool(result[0])
    from scipy.sparse import _sparsetools

    return bool(_sparsetools.csr_has_canonical_format(len(pos) - 1, pos, crd))


def is_plain(array: Array) -> bool:
    """Tell whether an array's elements are contiguous."""
    return array.strides == (array.itemsize,)


def is_ascending(pos: Array, crd: Array) -> bool:
    """Tell whether the coordinates below each parent do not decrease."""
    from scipy.sparse import _sparsetools

    return bool(_sparsetools.csr_has_sorted_indices(len(pos) - 1, pos, crd))


def to_scipy(data: TensorData, kind: str) -> Any:
    """Return the tensor as scipy's `kind` ("csr_array", "coo_matrix" …), around the same arrays.

    The format must be that of the kind: CSR (or a compressed vector) for csr, CSC for csc, COO for
    coo, with the fill value 0; raises FormatError otherwise. Coordinates of more than two modes
    become int64, as in scipy. Sets has_sorted_indices and has_canonical_format where the order is
    known.
    """
    require_zero_fill(data)
    require_kind(data, kind)
    if kind.startswith("coo"):
        return to_coo(data, kind)
    arrays = data.levels[-1]
    assert arrays.pos is not None and arrays.crd is not None
    crd, values, count = arrays.crd, data.values, int(arrays.pos[-1])
    if count < len(crd):
        crd, values = crd[:count], values[:count]
    matrix = copy(empty(kind, data.shape))
    matrix.indptr, matrix.indices, matrix.data = arrays.pos, crd, values
    if data.sorted is not None:
        matrix.has_sorted_indices = data.sorted
    if data.sorted and data.unique is not None:
        matrix.has_canonical_format = data.unique
    return matrix


@lru_cache(maxsize=64)
def empty(kind: str, shape: tuple[int, ...]) -> Any:
    """Return a matrix of a shape, of which callers replace the arrays in a shallow copy.

    scipy's constructor takes 13 µs, a shallow copy 2: as much as a product of 5000 entries.
    """
    matrix = CLASSES[kind](shape)
    matrix.indptr = matrix.indices = matrix.data = np.zeros(0)
    return matrix


def to_coo(data: TensorData, kind: str) -> Any:
    """Return a coo_array or coo_matrix, built empty because scipy's constructor reads all
    coordinates."""
    coords: list[Array] = [level.crd for level in data.levels if level.crd is not None]
    coords = [coords[level] for level in np.argsort(data.format.mode_order)]
    if len(coords) > 2:
        coords = [crd.astype(np.int64, copy=False) for crd in coords]
    matrix = CLASSES[kind](data.shape, dtype=computed_dtype(data.dtype))  # no halves in scipy
    matrix.coords, matrix.data = tuple(coords), data.values
    matrix.has_canonical_format = bool(data.sorted and data.unique)
    return matrix


def require_zero_fill(data: TensorData) -> None:
    """Raise FormatError where unstored elements have another value than 0."""
    if data.fill:
        raise FormatError(
            f"Expected a tensor with the fill value 0 for a scipy.sparse array, found {data.fill}",
            hint="tp.tensor(T, fill_value=0).to_scipy() has what T stores; T.to_numpy() has all "
            "elements",
        )


def require_kind(data: TensorData, kind: str) -> None:
    """Raise FormatError unless `data` is stored as scipy's `kind` stores a tensor of its order."""
    if kind not in KINDS:
        raise FormatError(
            f"Expected one of {', '.join(KINDS)}, found {kind!r}",
            hint=with_suggestion('as in "csr_array"', str(kind), KINDS),
        )
    order = data.format.order
    if order != 2 and kind not in ("coo_array", "csr_array"):
        raise FormatError(
            f"Expected a tensor of order 2 for {kind}, found order {order}",
            hint="scipy's coo_array holds any order",
        )
    formats = {"csr": (CSR, COMPRESSED_VECTOR), "csc": (CSC,)}.get(kind[:3])
    format = ordered(data.format)
    fits = format.is_coo if formats is None else format in formats
    if not fits and not (kind == "coo_array" and format == COMPRESSED_VECTOR):
        raise FormatError(
            f"Expected a tensor stored as {kind[:3].upper()} for {kind}, found "
            f"{str(data.format)!r}",
            hint="convert it first, with to_format",
        )
