"""`read` and `write`: tensors in files."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import IO, Any

from numpy.typing import DTypeLike

from taco_py.data.tensors.byte_counts import limited_result
from taco_py.data.tensors.tensor import Tensor, as_data
from taco_py.language.diagnostics.errors import OperandTypeError
from taco_py.language.formats import Format, RemappedFormat, remapped


def read(
    path: str | PathLike[str] | IO[Any],
    format: Format | RemappedFormat | str | None = None,
    shape: Sequence[int] | int | None = None,
    dtype: DTypeLike | None = None,
    key: str | None = None,
) -> Tensor:
    """Read the tensor in a file of .mtx, .tns, .npz, .h5ad and others, which may be compressed.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.mtx"
    >>> tp.write(sp.csr_array([[1.0, 0.0], [0.0, 3.0]]), path)
    >>> tp.read(path)
    Tensor(shape=(2, 2), format='ds', nnz=2, dtype=float64, density=0.5)
    >>> tp.read(path, format=tp.COO(2), dtype="float32").dtype
    dtype('float32')

    path    of the file, which may end in .gz, .bz2, .xz or .zst too; or an open file of text or
            bytes
    format  of the Tensor that is returned: a Format, its letters or its name; by default the file's
            own, or compressed levels
    shape   sizes of its modes, where the file does not say them or they are larger
    dtype   of its values; by default the file's, else float64
    key     of the tensor in an HDF5 file, as "layers/counts"; by default "X", or the only one

    Raises FileNotFoundError, FileFormatError naming the file and the line that is malformed,
    MissingExtraError for .zst, HDF5 and Parquet without their libraries, or OutOfMemoryError.
    """
    # seldom needed, and a tenth of the time to import tensors
    from taco_py.data.convert.read_table import read_table
    from taco_py.data.storage import files

    form = remapped(format)
    plain = None if form is not None or isinstance(format, RemappedFormat) else format
    arguments = (path, plain, shape, dtype, read_table, key)
    tensor = Tensor(limited_result("read", files.read, *arguments))
    return tensor if form is None else tensor.to_format(form)


def write(obj: Any, path: str | Path, key: str | None = None) -> None:
    """Write a tensor to a file of .mtx, .tns, .npz, .h5ad and others, which may be compressed.

    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> tp.write(sp.csr_array([[1.0, 0.0], [0.0, 3.0]]), folder / "a.tns")
    >>> print((folder / "a.tns").read_text().splitlines()[-1])
    2 2 3.0
    >>> tp.write(np.eye(2), folder / "eye.mtx.gz")

    A fill value other than 0 is written as a comment `fill_value`, which `read` understands; other
    programs take elements that are not stored for 0.

    obj   anything that `tensor` accepts
    path  of the file, which is written over; what it ends in says how: .gz, .bz2, .xz, .zst too
    key   of the tensor in an HDF5 file, which then keeps what it has elsewhere; by default "X"

    Raises OperandTypeError for another object, FormatError for what such a file cannot hold.
    """
    from taco_py.data.storage import files

    if isinstance(obj, str | Path):
        raise OperandTypeError(
            f"Expected a tensor to be written, found the {type(obj).__name__} {str(obj)!r}",
            hint="the tensor comes first: tp.write(tensor, path)",
        )
    files.write(as_data(obj), path, key)
