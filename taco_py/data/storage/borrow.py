"""TensorData around borrowed arrays: CSR, CSC and COO arrays without a copy.

Only arrays that a kernel cannot read are copied: values that are byte-swapped, misaligned or
strided, and index arrays of two different types or of another type than int32 and int64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from taco_py.data.storage.by_level.index_checks import require_in_range, require_sound
from taco_py.data.storage.tensor_data import Array, LevelArrays, TensorData
from taco_py.language.diagnostics.errors import MissingExtraError, OperandTypeError, StructureError
from taco_py.language.diagnostics.suggest import with_suggestion
from taco_py.language.formats import COO, Format

DTYPES = frozenset(
    np.dtype(name)
    for name in (
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
        "float16", "float32", "float64", "complex64", "complex128",
    )
)  # fmt: skip
"""NumPy's types that kernels read; `ml_dtypes.bfloat16` is a further one (`is_compiled`)."""
BFLOAT16 = "bfloat16"
# built once: every call needs them. There is no COO of order 0, which has no levels.
COORDINATES = (Format((), ()), *(COO(order) for order in range(1, 9)))
COMPRESSED = (("column", "rows"), ("row", "columns"))
"""The names of the mode above the compressed mode of a matrix, and of its own coordinates, by
mode."""
INT32, INT64 = np.dtype(np.int32), np.dtype(np.int64)


def is_compiled(dtype: np.dtype[Any]) -> bool:
    """Tell whether kernels read `dtype`, in either byte order."""
    if dtype in DTYPES or dtype.newbyteorder("=") in DTYPES:
        return True
    return dtype.kind == "V" and dtype.name == BFLOAT16  # of ml_dtypes, which defines it


def require_dtype(dtype: np.dtype[Any], what: str) -> None:
    """Raise OperandTypeError unless kernels can compute on `dtype`, in either byte order."""
    if is_compiled(dtype):
        return
    raise OperandTypeError(
        f"Expected {what} of dtype bool, (u)int8…64, (b)float16, float32/64 or complex64/128, "
        f"found {dtype}",
        hint=dtype_remedy(dtype),
    )


def as_dtype(dtype_like: Any, what: str) -> np.dtype[Any]:
    """Return the dtype, in native byte order, that the user's argument `what` names.

    Raises OperandTypeError unless kernels can compute on it.
    """
    if isinstance(dtype_like, str) and dtype_like == BFLOAT16:
        return bfloat16(what)
    try:
        dtype = np.dtype(dtype_like)
    except (TypeError, ValueError, SyntaxError) as error:
        raise OperandTypeError(
            f"Expected {what} to be a dtype, found {dtype_like!r}",
            hint=with_suggestion(
                'as in dtype="float32" or dtype=np.int64',
                str(dtype_like),
                sorted((BFLOAT16, *(dtype.name for dtype in DTYPES))),
            ),
        ) from error
    require_dtype(dtype, what)
    native: np.dtype[Any] = dtype.newbyteorder("=")
    return native


def bfloat16(what: str) -> np.dtype[Any]:
    """Return the dtype of `ml_dtypes`. Raises MissingExtraError where that is not installed."""
    try:
        import ml_dtypes
    except ImportError as error:
        raise MissingExtraError(
            f"Expected ml_dtypes to be installed for {what} bfloat16, found none",
            hint="pip install 'tacopy[bfloat16]'",
        ) from error
    dtype: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    return dtype


def dtype_remedy(dtype: np.dtype[Any]) -> str:
    """Suggest a conversion of an unsupported dtype."""
    match dtype.kind:
        case "f":
            return "convert it with .astype(np.float64)"
        case "c":
            return "convert it with .astype(np.complex128)"
        case "O":
            return "if all elements are numbers, convert it with .astype(np.float64)"
        case _:
            return "convert it to numbers first"


def value_vector(values: Array) -> Array:
    """Return the values, native, aligned and contiguous; copy them only if necessary.

    Raises StructureError for anything but a vector.
    """
    if values.dtype not in DTYPES:
        require_dtype(values.dtype, "values")
    if values.ndim != 1:
        raise StructureError(
            f"Expected a vector of values, found {values.ndim} axes",
            hint="values holds one number an entry",
        )
    if plain(values) and values.dtype.isnative:
        return values
    return np.require(values, dtype=values.dtype.newbyteorder("="), requirements=["C", "A"])


def plain(array: Array) -> bool:
    """Tell whether the array is contiguous and aligned."""
    flags = array.flags
    return flags.c_contiguous and flags.aligned


def index_vectors(arrays: Sequence[Array], names: Sequence[str]) -> tuple[Array, ...]:
    """Return index arrays of one type, int32 or int64; the same arrays where they already have it.

    Raises StructureError naming the array with other numbers, or with more than one axis.
    """
    target = arrays[0].dtype
    if target is INT32 or target is INT64:  # the usual case, at the price of a few attribute reads
        for array in arrays:
            if array.dtype is not target or array.ndim != 1 or not plain(array):
                break
        else:
            return tuple(arrays)
    for array, name in zip(arrays, names, strict=True):
        if array.dtype.kind not in "iu" or array.ndim != 1:
            raise StructureError(
                f"Expected {name} to be a vector of integers, found {array.ndim} axes of "
                f"{array.dtype}",
                hint=f"convert {name} with .astype(np.int64)",
            )
    narrow = all(a.dtype.newbyteorder("=") == INT32 for a in arrays)
    target = INT32 if narrow else INT64
    return tuple(np.require(a, dtype=target, requirements=["C", "A"]) for a in arrays)


def from_compressed(
    pos: Array,
    crd: Array,
    values: Array,
    shape: tuple[int, ...],
    format: Format,
    sorted: bool | None = None,
    unique: bool | None = None,
) -> TensorData:
    """Return a tensor whose last level is compressed and all others dense: CSR, CSC, or a vector.

    Coordinates and values beyond the last position are left out. Raises StructureError when the
    lengths contradict each other, or indptr descends, or indices are outside of the shape.
    """
    originals = pos, crd
    pos, crd = index_vectors(originals, ("indptr", "indices"))
    parents = 1
    for mode in format.mode_order[:-1]:
        parents *= shape[mode]
    if len(pos) != parents + 1:
        raise StructureError(
            f"Expected indptr to have {parents + 1} entries for shape {shape}, found {len(pos)}",
            hint="indptr has one entry more than there are rows (CSC: columns)",
        )
    nnz = int(pos[-1])
    if not 0 <= nnz <= min(len(crd), len(values)):
        raise StructureError(
            f"Expected the last entry of indptr to be the number of entries, found {nnz} with "
            f"{len(crd)} indices and {len(values)} values",
            hint="rebuild the matrix from its coordinates, or cut indptr to the entries that exist",
        )
    values = value_vector(values)
    inner = format.mode_order[-1]
    require_sound(
        originals[0], originals[1], shape[inner], ("indptr", "indices"), COMPRESSED[inner]
    )
    if len(crd) > nnz or len(values) > nnz:
        crd, values = crd[:nnz], values[:nnz]
    above = (LevelArrays(),) * (format.order - 1)
    return TensorData(format, shape, (*above, LevelArrays(pos, crd)), values, sorted, unique)


def from_coordinates(
    coords: Sequence[Array],
    values: Array,
    shape: tuple[int, ...],
    sorted: bool | None = None,
    unique: bool | None = None,
) -> TensorData:
    """Return a COO tensor around one coordinate array a mode.

    Raises StructureError when their lengths differ, or coordinates are outside of the shape.
    """
    crds = index_vectors(coords, [f"coords[{mode}]" for mode in range(len(coords))])
    for mode, crd in enumerate(crds):
        if len(crd) != len(values):
            raise StructureError(
                f"Expected one coordinate a value, found {len(crd)} in coords[{mode}] and "
                f"{len(values)} values",
                hint="each mode needs as many coordinates as there are values",
            )
    for mode, (crd, size) in enumerate(zip(coords, shape, strict=True)):
        require_in_range(crd, size, f"coords[{mode}]", f"places in mode {mode}")
    pos = np.array([0, len(values)], dtype=crds[0].dtype)
    levels = (LevelArrays(pos, crds[0]), *(LevelArrays(crd=crd) for crd in crds[1:]))
    format = COORDINATES[len(crds)] if len(crds) < len(COORDINATES) else COO(len(crds))
    return TensorData(format, shape, levels, value_vector(values), sorted, unique)
