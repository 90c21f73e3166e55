"""Arrow's sparse tensors and tables.

SparseCOOTensor   values in place, coordinates copied: Arrow stores those of an entry together
SparseCSRMatrix, SparseCSCMatrix, SparseCSFTensor   in place, both ways in int64
Table             columns i, j … and value, in place, its shape in the metadata
Tensor            dense, in place
"""

from __future__ import annotations

from itertools import chain, permutations
from typing import Any

import numpy as np

from taco_py.data.interop.numpy_arrays import from_numpy
from taco_py.data.interop.partners.partner import (
    Partner,
    compressed_parts,
    coordinate_arrays,
    in_order_once,
    pick,
    require_order,
    require_type,
    require_zero,
    stored,
)
from taco_py.data.storage.borrow import (
    from_compressed,
    from_coordinates,
    index_vectors,
    value_vector,
)
from taco_py.data.storage.check import check
from taco_py.data.storage.containers.columns import (
    NOTE,
    from_columns,
    lists_coordinates,
    note_read,
    note_text,
    require_real,
    to_columns,
)
from taco_py.data.storage.tensor_data import Array, LevelArrays, TensorData, ordered
from taco_py.language.diagnostics.errors import OperandTypeError
from taco_py.language.diagnostics.extras import library
from taco_py.language.formats import COO, CSC, CSF, CSR, Format

KINDS = (
    "SparseCOOTensor", "SparseCSRMatrix", "SparseCSCMatrix", "SparseCSFTensor", "Table", "Tensor",
)  # fmt: skip
TYPES = (
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
    "float64",
)  # fmt: skip


def read(obj: Any) -> TensorData | None:
    """Return a tensor or table of Arrow; None for objects that NumPy reads itself."""
    match type(obj).__name__:
        case "SparseCOOTensor":
            values, coords = obj.to_numpy()
            columns = [np.ascontiguousarray(coords[:, mode]) for mode in range(coords.shape[1])]
            return from_coordinates(columns, values.reshape(-1), tuple(obj.shape))
        case "SparseCSRMatrix" | "SparseCSCMatrix" as name:
            values, pos, crd = obj.to_numpy()
            format = CSR if name == "SparseCSRMatrix" else CSC
            parts = (pos.reshape(-1), crd.reshape(-1), values.reshape(-1))
            return from_compressed(*parts, tuple(obj.shape), format)
        case "SparseCSFTensor":
            return read_fibres(obj)
        case "Tensor":
            return from_numpy(obj.to_numpy())
        case "Table" | "RecordBatch":
            return read_table(obj)
        case _:
            return None


def read_fibres(obj: Any) -> TensorData:
    """Return a CSF tensor: compressed levels in Arrow's order of the modes."""
    values, pos, crd = obj.to_numpy()
    plain = [np.asarray(array).reshape(-1) for array in crd]
    below = [np.asarray(array).reshape(-1) for array in pos]
    root = np.array([0, len(plain[0])], plain[0].dtype)
    names = [f"indptr[{place}]" for place in range(len(plain))]
    crds = index_vectors(plain, [f"indices[{place}]" for place in range(len(plain))])
    poses = index_vectors((root, *below), names)
    shape = tuple(obj.shape)
    modes = axes_of(obj, values.reshape(-1), below, plain)
    levels = tuple(
        LevelArrays(p.astype(c.dtype, copy=False), c) for p, c in zip(poses, crds, strict=True)
    )
    form = Format(CSF(len(shape)).levels, modes)
    data = TensorData(form, shape, levels, value_vector(values.reshape(-1)))
    check(data)
    return data


def axes_of(obj: Any, values: Array, pos: list[Array], crd: list[Array]) -> tuple[int, ...]:
    """Return the mode order of a CSF tensor, which Arrow's Python interface does not expose.

    It is found by comparing tensors of the same arrays in other orders. Raises OperandTypeError for
    more modes than can be tried.
    """
    make, shape = type(obj).from_numpy, tuple(obj.shape)
    plain, order = range(len(shape)), len(shape)
    by_size = sorted(plain, key=lambda mode: shape[mode])
    for axes in chain((tuple(plain), tuple(by_size)), permutations(plain) if order < 8 else ()):
        if obj.equals(make(values, pos, crd, shape=shape, axis_order=list(axes))):
            return axes
    raise OperandTypeError(
        f"Expected a CSF tensor of Arrow with its modes in the order 0 … {order - 1} or by size, "
        "found another one",
        hint="Arrow does not tell which in Python: store it as a SparseCOOTensor",
    )


def read_table(table: Any) -> TensorData:
    """Return a table of coordinates. Raises OperandTypeError for other tables."""
    types = library("pyarrow.types", "pyarrow")
    names = list(table.column_names) if hasattr(table, "column_names") else table.schema.names
    are_integers = [types.is_integer(field.type) for field in table.schema]
    if not lists_coordinates(names, are_integers):
        raise OperandTypeError(
            f"Expected columns of coordinates in whole numbers and one named 'value', found "
            f"{', '.join(map(repr, names))}",
            hint="rename the columns: table.rename_columns(['i', 'j', 'value'])",
        )
    for name in names:
        if table[name].null_count:
            raise OperandTypeError(
                f"Expected a number in each row of the column {name!r}, found nulls",
                hint="leave such rows out: table.drop_null()",
            )
    note = note_read((table.schema.metadata or {}).get(NOTE.encode()), "a table of Arrow")
    tensor: TensorData = from_columns({n: column_of(table[n]) for n in names}, note, "a table")
    return tensor


def column_of(column: Any) -> Array:
    """Return the numbers of a column, without a copy for a single chunk."""
    chunks = column.chunks if hasattr(column, "chunks") else [column]
    one = chunks[0] if len(chunks) == 1 else column
    array: Array = one.to_numpy(zero_copy_only=False) if len(chunks) == 1 else one.to_numpy()
    return array


def write(data: TensorData, kind: str) -> Any:
    """Return a tensor or table of Arrow.

    Raises OperandTypeError for complex or boolean values, which Arrow's tensors lack.
    """
    arrow = library("pyarrow", "pyarrow")
    target = pick(kind or usual(data), KINDS, "pyarrow")
    if target == "Table":
        require_real(data.dtype, "a table of Arrow")
        arrow_table = arrow.table(to_columns(data, "Arrow"))
        return arrow_table.replace_schema_metadata({NOTE: note_text(data)})
    require_type(data.dtype, TYPES, f"Arrow's {target}")
    order = data.format.order
    if target == "Tensor":
        return arrow.Tensor.from_numpy(stored(data, Format.parse("d" * order)).values)
    require_zero(data, f"Arrow's {target}")
    if target == "SparseCOOTensor":
        coordinates = stored(data, COO(order)) if not data.format.is_coo else data
        rows = np.stack(coordinate_arrays(coordinates), axis=1).astype(np.int64)
        if not rows.size:  # Arrow wants the strides of no elements to be one element
            rows = np.lib.stride_tricks.as_strided(rows, (0, order), (8, 8))
        return arrow.SparseCOOTensor.from_numpy(coordinates.values, rows, shape=coordinates.shape)
    if target == "SparseCSFTensor":
        return write_fibres(arrow, data)
    require_order(data, 2, f"Arrow's {target}", "SparseCSFTensor holds any order")
    pos, crd, values = compressed_parts(stored(data, CSR if "CSR" in target else CSC))
    wide = (pos.astype(np.int64, copy=False), crd.astype(np.int64, copy=False))
    return getattr(arrow, target).from_numpy(values, *wide, shape=data.shape)


def write_fibres(arrow: Any, data: TensorData) -> Any:
    """Return a CSF tensor; a tensor in CSF keeps its mode order."""
    order = data.format.order
    levels = CSF(order).levels
    fibres = in_order_once(
        data if ordered(data.format).levels == levels else stored(data, CSF(order))
    )
    levels_arrays = [(level.pos, level.crd) for level in fibres.levels]
    wide = [
        [a.astype(np.int64, copy=False) for a in pair if a is not None] for pair in levels_arrays
    ]
    pos, crd = [pair[0] for pair in wide[1:]], [pair[1] for pair in wide]
    axes = list(fibres.format.mode_order)
    make = arrow.SparseCSFTensor.from_numpy
    return make(fibres.values, pos, crd, shape=fibres.shape, axis_order=axes)


def usual(data: TensorData) -> str:
    """Return the class of Arrow that stores a tensor unchanged, or a coordinate list."""
    if data.format.is_dense:
        return "Tensor"
    form = ordered(data.format)
    if form in (CSR, CSC):
        return "SparseCSRMatrix" if form == CSR else "SparseCSCMatrix"
    csf = data.format.order > 1 and form.levels == CSF(form.order).levels
    return "SparseCSFTensor" if csf else "SparseCOOTensor"


PARTNER = Partner("pyarrow", ("pyarrow",), "pyarrow", KINDS, read, write)
