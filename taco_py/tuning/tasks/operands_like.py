"""Operands made of their descriptions, and descriptions of operands."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from taco_py.arguments.operands import INT32_MAX, describe, is_number
from taco_py.compiler.cost.spread import Entries
from taco_py.data.interop.scipy_arrays import KINDS, is_scipy_sparse
from taco_py.data.storage import files
from taco_py.data.storage.pack import pack_coo
from taco_py.data.storage.tensor_data import TensorData
from taco_py.data.tensors.tensor import Tensor
from taco_py.language.diagnostics.errors import OperandTypeError
from taco_py.language.notation.half_types import number_kind
from taco_py.tuning.store.operand_buckets import run_of
from taco_py.tuning.tasks.drawn_entries import coordinates_of
from taco_py.tuning.tasks.operand_description import ARRAY, OperandDescription

MOST_BYTES = 2**36
"""Of an operand that is made up: what asks for more is a mistake."""
CLASSES = {name: getattr(sp, name) for name in KINDS}


def make_operands(
    descriptions: Mapping[str, OperandDescription], folder: Path | None = None
) -> dict[str, Any]:
    """Return the operands by name; those of files are looked for in a folder.

    Raises OSError and FileFormatError for files, OutOfMemoryError.
    """
    return {name: make_operand(description, folder) for name, description in descriptions.items()}


def make_operand(description: OperandDescription, folder: Path | None = None) -> Any:
    """Return the operand: an array, a number, a scipy.sparse array or a Tensor, always the same
    one."""
    if description.file:
        return _read(description, folder)
    rng = np.random.default_rng([description.seed, 1])
    dtype = np.dtype(description.dtype)
    if not description.is_sparse:
        count = int(np.prod(description.shape, dtype=object))
        values = _values(rng, count, dtype).reshape(description.shape)
        if description.format == ARRAY:
            return np.asarray(values, order=description.order) if values.ndim else values[()]  # type: ignore[call-overload]
        return Tensor.from_numpy(values, description.levels)
    columns = coordinates_of(description)
    values = _values(rng, len(columns[0]), dtype)
    return _stored(description, columns, values)


def _stored(description: OperandDescription, columns: list[Any], values: Any) -> Any:
    """Return entries in the format that a description says."""
    if description.format not in KINDS:
        levels, index = description.levels, description.index or None
        return Tensor(pack_coo(columns, values, description.shape, levels, index))
    coo: Any = sp.coo_array((values, tuple(columns)), shape=description.shape)
    array = coo.asformat(description.format.partition("_")[0])
    array = CLASSES[description.format](array)
    small = max(*description.shape, len(values)) <= INT32_MAX
    return _with_index(array, description.index or ("int32" if small else "int64"))


def _with_index(array: Any, index: str) -> Any:
    """Return a scipy.sparse array whose coordinates are of a type."""
    if array.format == "coo":
        array.coords = tuple(coordinates.astype(index) for coordinates in array.coords)
    else:
        array.indices, array.indptr = array.indices.astype(index), array.indptr.astype(index)
    return array


def _read(description: OperandDescription, folder: Path | None) -> Any:
    """Return the operand in a file, in the format that a description says."""
    path = Path(description.file).expanduser()
    data = files.read(path if folder is None else folder / path, None)
    tensor = Tensor(data).astype(description.dtype)
    if description.format == ARRAY:
        return np.asarray(tensor.to_numpy(), order=description.order)  # type: ignore[call-overload]
    if description.format in KINDS:
        return tensor.to_scipy(description.format)
    return tensor.to_format(description.format)


def _values(rng: np.random.Generator, count: int, dtype: np.dtype[Any]) -> Any:
    """Return numbers that every type can hold, none of them zero."""
    if number_kind(dtype) in "fc":
        return rng.uniform(0.5, 1.5, count).astype(dtype)
    return rng.integers(1, 4, count).astype(dtype)


# ---------------------------------------------------------------- from operands


def description_of(obj: Any, name: str) -> OperandDescription:
    """Describe an operand. Raises OperandTypeError for one that no description makes again."""
    if is_number(obj):
        return OperandDescription((), np.asarray(obj).dtype.name)
    bound = describe(obj, name)
    data = bound.data
    if isinstance(data.values, np.ndarray) and not data.fill:
        dtype = data.dtype.name
        if isinstance(obj, np.ndarray | np.generic):
            array = np.asarray(obj)
            fortran = array.flags.f_contiguous and not array.flags.c_contiguous
            return OperandDescription(array.shape, dtype, order="F" if fortran else "C")
        kind = type(obj).__name__ if is_scipy_sparse(obj) else str(data.format)
        if kind in KINDS or isinstance(obj, Tensor):
            return _described(data, kind, bound.operand.entries)
    raise OperandTypeError(
        f"Expected {name} to be an array, a csr, csc or coo array of scipy.sparse or a Tensor on "
        f"the host without a fill value, found {type(obj).__name__}",
        hint="describe the task in a file, with an operand of such a kind",
    )


def _described(data: TensorData, kind: str, entries: Entries | None) -> OperandDescription:
    dtype = data.dtype.name
    if entries is None:
        return OperandDescription(data.shape, dtype, kind)
    degrees = tuple(
        entries.spread(mode).groups if entries.has_counts(mode) and data.nnz else ()
        for mode in range(len(data.shape))
    )
    index = next(
        a.dtype.name for level in data.levels for a in (level.crd, level.pos) if a is not None
    )
    return OperandDescription(
        data.shape,
        dtype,
        kind,
        nnz=data.nnz,
        degrees=degrees,
        run=max(1.0, run_of(entries)),
        index="" if index == "int32" else index,
    )
