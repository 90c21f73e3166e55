"""Archives .npz of scipy.sparse and of pydata/sparse.

    scipy    format csr, csc, coo, bsr or dia of a matrix; coo of any order
    sparse   coo (coords, data, shape, fill_value) and gcxs (data, indices, indptr, compressed_axes)

A tensor is written in scipy's layout where there is one for it, else in that of pydata/sparse.
"""

from __future__ import annotations

import zipfile
import zlib
from dataclasses import replace
from io import BytesIO
from math import prod
from typing import Any

import numpy as np

from taco_py.data.storage.borrow import from_compressed, from_coordinates
from taco_py.data.storage.check import check
from taco_py.data.storage.containers.columns import coordinate_format
from taco_py.data.storage.containers.container import Container, File, content_of, require_numpys
from taco_py.data.storage.pack import canonical
from taco_py.data.storage.tensor_data import TensorData, ordered
from taco_py.language.diagnostics.errors import FileFormatError, FormatError, TacoError
from taco_py.language.fill import as_number, fill_of
from taco_py.language.formats import COO, CSC, CSR

BROKEN = (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile, zlib.error, IndexError)
SAVERS = "scipy.sparse.save_npz or sparse.save_npz"


def read(file: File, name: str, key: str = "") -> TensorData:
    """Return the checked tensor in an archive.

    Raises FileFormatError for another kind of archive, StructureError where its arrays contradict
    each other.
    """
    import scipy.sparse as sp

    content = content_of(file)
    try:
        with np.load(BytesIO(content), allow_pickle=False) as archive:
            parts = dict(archive) if "fill_value" in archive.files else None
        stored: Any = sp.load_npz(BytesIO(content)) if parts is None else None
    except BROKEN as error:
        raise FileFormatError(
            f"{name}: Expected a file written by {SAVERS}, found one that cannot be read ({error})",
            hint="fetch the file again, or save it with scipy.sparse.save_npz",
        ) from error
    try:
        data = saved_matrix(stored) if parts is None else saved_nodes(parts, name)
        check(data)
    except TacoError as error:
        raise type(error)(f"{name}: {error.message}", hint=error.hint) from error
    return data


def saved_matrix(stored: Any) -> TensorData:
    """Return a loaded array of scipy: CSR and CSC unchanged, others as COO."""
    if stored.format in ("csr", "csc") and stored.ndim == 2:
        format = CSR if stored.format == "csr" else CSC
        return from_compressed(stored.indptr, stored.indices, stored.data, stored.shape, format)
    plain = stored.tocoo()
    return from_coordinates(plain.coords, plain.data, plain.shape)


def saved_nodes(parts: dict[str, Any], name: str) -> TensorData:
    """Return an array of pydata/sparse: matrices in GCXS unchanged, others as COO."""
    try:
        kind = str(parts["format"])
        shape = tuple(map(int, parts["shape"]))
        values, fill = parts["data"], fill_of(parts["fill_value"][()], parts["data"].dtype)
        if kind == "coo":
            data = from_coordinates(tuple(parts["coords"]), values, shape)
        elif kind == "gcxs":
            axes = tuple(map(int, np.atleast_1d(parts["compressed_axes"])))
            data = _compressed(parts["indptr"], parts["indices"], values, shape, axes)
        else:
            raise FileFormatError(
                f"Expected an array of the format coo or gcxs, found {kind}",
                hint="save it as sparse.COO",
            )
    except BROKEN as error:
        if isinstance(error, TacoError):
            raise
        raise FileFormatError(
            f"Expected a file written by sparse.save_npz, found no {error}", hint="save it again"
        ) from error
    return replace(data, fill=fill)


def _compressed(
    indptr: Any, indices: Any, values: Any, shape: tuple[int, ...], axes: tuple[int, ...]
) -> TensorData:
    """Read GCXS: rows are the modes `axes`, columns the others, both in row-major order."""
    if len(shape) == 2 and axes in ((0,), (1,)):
        return from_compressed(indptr, indices, values, shape, CSR if axes == (0,) else CSC)
    rest = tuple(mode for mode in range(len(shape)) if mode not in axes)
    sizes = [tuple(shape[mode] for mode in modes) for modes in (axes, rest)]
    if len(shape) == 1:
        return from_coordinates((np.asarray(indices, np.int64),), values, shape)
    rows = np.repeat(np.arange(prod(sizes[0])), np.diff(indptr).astype(np.int64))
    coords: dict[int, Any] = dict(zip(axes, np.unravel_index(rows, sizes[0]), strict=True))
    columns = np.unravel_index(np.asarray(indices, np.int64), sizes[1])
    coords.update(zip(rest, columns, strict=True))
    return from_coordinates(tuple(coords[mode] for mode in range(len(shape))), values, shape)


def write(data: TensorData, file: File, key: str = "") -> None:
    """Write the tensor to a compressed archive.

    Raises FormatError for a dense tensor, and for tensors without a layout.
    """
    import scipy.sparse as sp

    require_numpys(data.dtype, "an .npz file")
    if data.format.is_dense:
        raise FormatError(
            "Expected a sparse tensor for an .npz file, found a dense one",
            hint='np.savez holds arrays; T.to_format("coo") stores what is not 0',
        )
    form = ordered(data.format)
    if form in (CSR, CSC) and not data.fill:
        level = data.levels[-1]
        make: Any = sp.csr_array if form == CSR else sp.csc_array
        parts: Any = (data.values, level.crd, level.pos)
        sp.save_npz(_target(file), make(parts, shape=data.shape))
        return
    coordinates = coordinate_format(data)
    coords = [level.crd for level in coordinates.levels]
    columns: Any = tuple(coords[level] for level in np.argsort(coordinates.format.mode_order))
    if len(data.shape) == 2 and not data.fill:
        sp.save_npz(_target(file), sp.coo_array((coordinates.values, columns), shape=data.shape))
        return
    plain = canonical(replace(coordinates, format=COO(len(data.shape))))
    table = np.stack([level.crd for level in plain.levels if level.crd is not None])
    np.savez_compressed(
        _target(file), format=np.array("coo"), shape=np.array(data.shape), coords=table,
        data=plain.values, fill_value=as_number(data.fill, data.dtype),
    )  # fmt: skip


def _target(file: File) -> Any:
    """Return a path as text, to which NumPy appends nothing where it ends in .npz."""
    return file if isinstance(file, BytesIO) else str(file)


CONTAINER = Container("an archive of NumPy", (".npz",), b"PK\x03\x04", False, read, write)
