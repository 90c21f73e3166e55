"""`read` and `write`: tensors in files."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import IO, Any

from numpy.typing import DTypeLike

from taco_py.diagnostics.errors import OperandTypeError
from taco_py.formats import Format
from taco_py.values.tensor import Tensor, as_data


def read(
    path: str | PathLike[str] | IO[Any],
    format: Format | str | None = None,
    shape: Sequence[int] | int | None = None,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Read the tensor in a .tns, .mtx or .npz file, in `format` or the file's own.

    path  of the file, which may be compressed (.gz, .bz2, .xz, .zst); or an open file of text or
          bytes
    Raises FileNotFoundError, FileFormatError naming the file and the line that is malformed,
    MissingExtraError for .zst without its library, or OutOfMemoryError.
    """
    from taco_py.storage import files  # seldom needed, and a tenth of the time to import tensors

    return Tensor(files.read(path, format, shape, dtype))


def write(obj: Any, path: str | Path) -> None:
    """Store anything `tensor` accepts in a .tns or .mtx file, which may be compressed.

    Raises OperandTypeError for something else, FormatError for what such a file cannot hold.
    """
    from taco_py.storage import files

    if isinstance(obj, str | Path):
        raise OperandTypeError(
            f"Expected a tensor to be written, found the {type(obj).__name__} {str(obj)!r}",
            hint="the tensor comes first: tp.write(tensor, path)",
        )
    files.write(as_data(obj), path)
