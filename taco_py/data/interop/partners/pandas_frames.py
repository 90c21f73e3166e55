"""Frames and series of pandas.

DataFrame of sparse columns      CSC (columns are concatenated)
DataFrame of dense columns       a matrix, by NumPy's protocols
DataFrame with a column value    a coordinate list, where all others hold integers
Series of a sparse dtype         a compressed vector, in place
Series over a MultiIndex         a coordinate list: its labels are coordinates
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from taco_py.data.interop.partners.partner import (
    Partner,
    compressed_parts,
    in_order_once,
    pick,
    require_order,
    stored,
)
from taco_py.data.storage.borrow import from_compressed, require_dtype
from taco_py.data.storage.containers.columns import (
    VALUE,
    from_columns,
    lists_coordinates,
    note_of,
    to_columns,
)
from taco_py.data.storage.containers.container import require_numpys
from taco_py.data.storage.tensor_data import Array, TensorData
from taco_py.language.diagnostics.errors import FormatError, OperandTypeError
from taco_py.language.diagnostics.extras import library
from taco_py.language.fill import as_number, fill_of
from taco_py.language.formats import CSC, Format

KINDS = ("DataFrame", "Series", "table")
VECTOR = Format.parse("s")
POSITIONS = "give positions for labels: pd.MultiIndex.from_arrays(s.index.codes, names=…)"


def read(obj: Any) -> TensorData | None:
    """Return a sparse frame or series as a tensor; None for dense columns, and for anything else.

    Raises OperandTypeError for labels that are no coordinates, FormatError for columns with several
    fill values.
    """
    match type(obj).__name__:
        case "DataFrame":
            return read_frame(obj)
        case "Series":
            return read_series(obj)
        case "SparseArray":
            return read_vector(obj)
        case _:
            return None


def read_frame(frame: Any) -> TensorData | None:
    """Return a DataFrame; None where its columns are dense."""
    sparse = [hasattr(dtype, "fill_value") for dtype in frame.dtypes]
    if sparse and all(sparse):
        return read_sparse_columns(frame)
    if any(sparse):
        dense = frame.columns[sparse.index(False)]
        raise OperandTypeError(
            f"Expected a DataFrame of sparse columns or of dense ones, found both: {dense!r} is "
            "dense",
            hint="convert them, as by df.astype(pd.SparseDtype(float, 0)), or df.sparse.to_dense()",
        )
    are_integers = [getattr(dtype, "kind", "O") in "iu" for dtype in frame.dtypes]
    names = [str(name) for name in frame.columns]
    if not lists_coordinates(names, are_integers):
        return None
    columns = {name: frame.iloc[:, place].to_numpy() for place, name in enumerate(names)}
    tensor: TensorData = from_columns(columns, frame.attrs, "a DataFrame")
    return tensor


def read_sparse_columns(frame: Any) -> TensorData:
    """Return a DataFrame of sparse columns in CSC."""
    arrays = [frame.iloc[:, place].array for place in range(frame.shape[1])]
    dtype = np.result_type(*(column.dtype.subtype for column in arrays))
    require_dtype(dtype, "a DataFrame's columns")
    fills = {fill_of(column.fill_value, dtype) for column in arrays}
    if len(fills) > 1:
        raise FormatError(
            "Expected sparse columns of one fill value, found "
            f"{', '.join(sorted(fill or '0' for fill in fills))}",
            hint="convert them all, as by df.astype(pd.SparseDtype(float, 0))",
        )
    crd = np.concatenate([column.sp_index.indices for column in arrays])
    values = np.concatenate([column.sp_values.astype(dtype, copy=False) for column in arrays])
    counts = [len(column.sp_values) for column in arrays]
    pos = np.concatenate(([0], np.cumsum(counts))).astype(crd.dtype if len(crd) else np.int32)
    data = from_compressed(pos, crd, values, frame.shape, CSC)
    return replace(data, fill=fills.pop())


def read_vector(array: Any) -> TensorData:
    """Return a SparseArray as a compressed vector."""
    values, crd = array.sp_values, array.sp_index.indices
    require_dtype(values.dtype, "a SparseArray")
    pos = np.array([0, len(values)], crd.dtype)
    data = from_compressed(pos, crd, values, array.shape, VECTOR)
    return replace(data, fill=fill_of(array.fill_value, values.dtype))


def read_series(series: Any) -> TensorData | None:
    """Return a Series; None for a dense vector."""
    levels = getattr(series.index, "levels", None)
    sparse = hasattr(series.dtype, "fill_value")
    if levels is None:
        return read_vector(series.array) if sparse else None
    columns: dict[str, Array] = {}
    for place, (labels, codes) in enumerate(zip(levels, series.index.codes, strict=True)):
        if labels.dtype.kind not in "iu":
            raise OperandTypeError(
                f"Expected a MultiIndex of whole numbers, which are coordinates, found "
                f"{labels.dtype} in level {place}",
                hint=POSITIONS,
            )
        if len(codes) and codes.min() < 0:
            raise OperandTypeError(
                f"Expected a coordinate in each row, found a label missing in level {place}",
                hint="leave such rows out, as by s[s.index.notna()]",
            )
        columns[f"level {place}"] = labels.to_numpy()[codes]
    plain = series.sparse.to_dense() if sparse else series
    columns[VALUE] = plain.to_numpy()
    tensor: TensorData = from_columns(columns, series.attrs, "a Series")
    return tensor


def write(data: TensorData, kind: str) -> Any:
    """Return a DataFrame of sparse columns of a matrix, a Series of other orders, or a table.

    Raises FormatError for a DataFrame of another order than 2.
    """
    pandas = library("pandas", "pandas")
    require_numpys(data.dtype, "pandas")
    order = data.format.order
    target = pick(kind or ("DataFrame" if order == 2 else "Series"), KINDS, "pandas")
    if target == "DataFrame":
        require_order(data, 2, "a DataFrame", 'T.to("pandas", "Series") holds any order')
        return write_frame(pandas, data)
    if target == "Series" and order == 1:
        return pandas.Series(vector_of(pandas, data))
    columns = to_columns(data, "pandas")
    if target == "table":
        result = pandas.DataFrame(columns, copy=False)
    else:
        values = columns.pop(VALUE)
        index = pandas.MultiIndex.from_arrays(list(columns.values()), names=list(columns))
        result = pandas.Series(values, index=index, name=VALUE)
    result.attrs.update(note_of(data))
    return result


def write_frame(pandas: Any, data: TensorData) -> Any:
    """Return a DataFrame of the columns of CSC, or of dense columns."""
    if data.format.is_dense:
        return pandas.DataFrame(data.values)
    plain = in_order_once(stored(data, CSC))
    pos, crd, values = compressed_parts(plain)
    fill = as_number(plain.fill, plain.dtype)
    ends = zip(pos[:-1].tolist(), pos[1:].tolist(), strict=True)
    columns = {
        place: sparse_array(pandas, values[a:b], crd[a:b], plain.shape[0], fill)
        for place, (a, b) in enumerate(ends)
    }
    sizes = {"index": range(plain.shape[0]), "columns": range(plain.shape[1])}
    return pandas.DataFrame(columns, copy=False, **sizes)


def vector_of(pandas: Any, data: TensorData) -> Any:
    """Return a vector as a SparseArray, or the array of a dense one."""
    if data.format.is_dense:
        return data.values
    plain = in_order_once(stored(data, VECTOR))
    _, crd, values = compressed_parts(plain)
    return sparse_array(pandas, values, crd, plain.shape[0], as_number(plain.fill, plain.dtype))


def sparse_array(pandas: Any, values: Array, crd: Array, size: int, fill: Any) -> Any:
    """Return a SparseArray around sorted coordinates and their values."""
    if size > np.iinfo(np.int32).max:
        raise FormatError(
            f"Expected at most 2^31 - 1 rows for sparse columns of pandas, found {size}",
            hint='T.to("pandas", "table") holds more',
        )
    index = library("pandas._libs.sparse", "pandas").IntIndex(
        size, crd.astype(np.int32, copy=False)
    )
    dtype = pandas.SparseDtype(values.dtype, fill)
    return pandas.arrays.SparseArray(values, sparse_index=index, fill_value=fill, dtype=dtype)


PARTNER = Partner("pandas", ("pandas",), "pandas", KINDS, read, write)
