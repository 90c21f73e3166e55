"""HDF5 files: matrices in AnnData's layout, and tensors in binsparse's.

    group, encoding-type csr_matrix or csc_matrix   data, indices, indptr; its shape an attribute
    dataset                                         a dense array
    group, attribute binsparse                      a descriptor in JSON, and the arrays it names
    group, datasets data, indices, indptr, shape    CSC, as 10x Genomics writes it

A file has a tensor at each of several paths, its keys; "X" is the default key.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from taco_py.data.storage.borrow import from_compressed, require_dtype
from taco_py.data.storage.check import check
from taco_py.data.storage.containers.binsparse import describe, from_described
from taco_py.data.storage.containers.container import Container, File, require_numpys
from taco_py.data.storage.pack import pack_coo, unpack
from taco_py.data.storage.tensor_data import TensorData, dense_data, ordered
from taco_py.language.diagnostics.errors import FileFormatError, FormatError, TacoError
from taco_py.language.diagnostics.extras import library
from taco_py.language.diagnostics.suggest import with_suggestion
from taco_py.language.formats import CSC, CSR, dense

PARTS = ("data", "indices", "indptr")
USUAL = "X"
ANNDATA = ".h5ad"
BINSPARSE = ".bsp.h5"
MATRICES = {"csr": CSR, "csc": CSC}


def read(file: File, name: str, key: str = "") -> TensorData:
    """Return the checked tensor at a key.

    Raises FileFormatError for another kind of file, and for a missing key.
    """
    h5py = library("h5py", "h5py")
    try:
        opened = h5py.File(file, "r")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise FileFormatError(
            f"{name}: Expected an HDF5 file, found one that cannot be read ({error})",
            hint="fetch the file again",
        ) from error
    with opened:
        node, at = _node(opened, name, key)
        try:
            data = _tensor(node, at)
            check(data)
        except TacoError as error:
            raise type(error)(f"{name}: {error.message}", hint=error.hint) from error
        except (OSError, KeyError, ValueError, TypeError) as error:
            raise FileFormatError(
                f"{name}: Expected a tensor at {at!r}, found one that cannot be read ({error})",
                hint="fetch the file again, or write it with anndata or tp.write",
            ) from error
    return data


def _node(opened: Any, name: str, key: str) -> tuple[Any, str]:
    """Return the group or dataset at a key, or the default one, and its key."""
    keys = list(keys_of(opened))
    if key:
        if key.strip("/") in keys or (key == "/" and "" in keys):
            return opened[key], key
        raise FileFormatError(
            f"{name}: Expected a tensor at the key {key!r}, found {_key_list(keys)}",
            hint=with_suggestion("choose one of these", key, keys),
        )
    for usual in (USUAL, ""):
        if usual in keys:
            return (opened[usual] if usual else opened), usual or "/"
    if len(keys) == 1:
        return opened[keys[0]], keys[0]
    raise FileFormatError(
        f"{name}: Expected one tensor, or one at {USUAL!r}, found {_key_list(keys)}",
        hint='name one: tp.read(path, key="…")',
    )


def _key_list(keys: list[str]) -> str:
    text = ", ".join(map(repr, keys[:8])) or "no tensors"
    return f"{text} and {len(keys) - 8} more" if len(keys) > 8 else text


def keys_of(group: Any, path: str = "") -> list[str]:
    """Return the paths of all tensors below a group, "" for the group itself."""
    if _is_tensor(group):
        return [path]
    paths: list[str] = []
    if hasattr(group, "keys"):
        for name in group:
            paths += keys_of(group[name], f"{path}/{name}".strip("/"))
    return paths


def _is_tensor(node: Any) -> bool:
    """Tell whether a group or dataset is a tensor in one of the layouts."""
    if not hasattr(node, "keys"):
        return bool(node.dtype.kind in "biufc" and node.ndim)
    return "binsparse" in node.attrs or all(part in node for part in PARTS)


def _tensor(node: Any, key: str) -> TensorData:
    """Return the tensor of a group or dataset."""
    if not hasattr(node, "keys"):
        require_dtype(node.dtype, f"the dataset {key!r}")
        return dense_data(np.asarray(node[()]), dense(node.ndim))
    if "binsparse" in node.attrs:
        arrays = {name: node[name][()] for name in node if hasattr(node[name], "ndim")}
        return from_described(json.loads(_text(node.attrs["binsparse"])), arrays, repr(key))
    word = _text(node.attrs.get("encoding-type", node.attrs.get("h5sparse_format", "")))
    format = MATRICES.get(word.partition("_")[0])
    shape = node.attrs.get("shape", node.attrs.get("h5sparse_shape"))
    if shape is None and "shape" in node:
        shape, format = node["shape"][()], format or CSC
    if format is None or shape is None:
        raise FileFormatError(
            f"Expected csr_matrix or csc_matrix and a shape at {key!r}, found encoding-type "
            f"{word!r} and {'no ' * (shape is None)}shape",
            hint="AnnData's layout has them as attributes of the group",
        )
    pos, crd, values = (node[part][()] for part in ("indptr", "indices", "data"))
    return from_compressed(pos, crd, values, tuple(map(int, shape)), format)


def _text(word: Any) -> str:
    return word.decode() if isinstance(word, bytes) else str(word)


# ---------------------------------------------------------------- writing


def write(data: TensorData, file: File, key: str = "") -> None:
    """Write a matrix or an array in AnnData's layout; without a key, files of .h5ad are complete.

    With a key, an existing file keeps its other contents.
    """
    require_numpys(data.dtype, "an HDF5 file")
    is_anndata = str(file).lower().endswith(ANNDATA) and not key

    def fill(opened: Any, at: str) -> None:
        _write_matrix(opened, at or USUAL, data)
        if is_anndata:
            _annotate(opened, data.shape)

    _write(file, key, fill)


def write_binsparse(data: TensorData, file: File, key: str = "") -> None:
    """Write a tensor of any order in binsparse's layout; without a key in the file's root."""
    descriptor, arrays = describe(data)

    def fill(opened: Any, at: str) -> None:
        group = opened.require_group(at) if at else opened
        for name, array in arrays.items():
            group.create_dataset(name, data=array)
        group.attrs["binsparse"] = json.dumps(descriptor)

    _write(file, key, fill)


def _write(file: File, key: str, fill: Callable[[Any, str], None]) -> None:
    """Open a file, a new one unless there is a key, and fill it."""
    at = key.strip("/")
    if key and not at:
        raise FileFormatError(
            f"{file}: Expected the name of a group or dataset as key, found {key!r}",
            hint='as in key="layers/counts"; without a key the file is written over',
        )
    h5py = library("h5py", "h5py")
    try:
        opened = h5py.File(file, "a" if key else "w")
    except OSError as error:
        if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
            raise
        raise FileFormatError(
            f"{file}: Expected an HDF5 file to add {key!r} to, found another one ({error})",
            hint="without a key the file is written over",
        ) from error
    with opened:
        if at and at in opened:
            del opened[at]
        fill(opened, at)


def _write_matrix(opened: Any, key: str, data: TensorData) -> None:
    """Write a dataset of a dense array, or a group of a matrix."""
    if data.format.is_dense:
        dataset = opened.create_dataset(key, data=data.values)
        dataset.attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})
        return
    if data.format.order != 2 or data.fill:
        raise FormatError(
            f"Expected a matrix with the fill value 0 for AnnData's layout, found order "
            f"{data.format.order} and {data.fill or '0'}",
            hint=f"a name that ends in {BINSPARSE} is for tensors of any order and fill value",
        )
    plain = data
    if ordered(data.format) not in (CSR, CSC):
        coords, values = unpack(data, drop_fill=True)
        plain = pack_coo(coords, values, data.shape, CSR)
    level = plain.levels[-1]
    assert level.pos is not None and level.crd is not None
    group = opened.create_group(key)
    word = "csr_matrix" if ordered(plain.format) == CSR else "csc_matrix"
    group.attrs.update({"encoding-type": word, "encoding-version": "0.1.0"})
    group.attrs["shape"] = np.array(plain.shape, np.int64)
    count = int(level.pos[-1])
    for part, array in zip(
        PARTS, (plain.values[:count], level.crd[:count], level.pos), strict=True
    ):
        group.create_dataset(part, data=array)


def _annotate(opened: Any, shape: tuple[int, ...]) -> None:
    """Write the further parts of an AnnData file: names of rows and columns, 0, 1, 2 …"""
    opened.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
    text = library("h5py", "h5py").string_dtype()
    for name, size in zip(("obs", "var"), shape, strict=False):
        frame = opened.create_group(name)
        frame.attrs.update({"encoding-type": "dataframe", "encoding-version": "0.2.0"})
        frame.attrs["_index"] = "_index"
        frame.attrs.create("column-order", np.zeros(0, object), dtype=text)
        labels = np.array([str(row) for row in range(size)], object)
        index = frame.create_dataset("_index", data=labels, dtype=text)
        index.attrs.update({"encoding-type": "string-array", "encoding-version": "0.2.0"})


MAGIC = b"\x89HDF\r\n\x1a\n"
CONTAINER = Container("an HDF5 file", (".h5", ".hdf5", ANNDATA), MAGIC, True, read, write)
DESCRIBED = Container(
    "an HDF5 file of binsparse", (BINSPARSE, ".bsp.hdf5"), MAGIC, True, read, write_binsparse
)
