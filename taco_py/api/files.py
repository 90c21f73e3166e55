"""`read` and `write`: tensors in files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import DTypeLike

from taco_py.diagnostics.errors import OperandTypeError
from taco_py.formats import Format
from taco_py.values.tensor import Tensor, as_data


def read(
    path: str | Path,
    format: Format | str | None = None,
    shape: Sequence[int] | int | None = None,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """The tensor in a .tns, .mtx or .npz file (each also .gz), in `format` or the file's own.

    Raises FileNotFoundError, or FileFormatError naming the file and the line that is malformed.
    """
    from taco_py.storage import files  # seldom needed, and a tenth of the time to import tensors

    return Tensor(files.read(path, format, shape, dtype))


def write(obj: Any, path: str | Path) -> None:
    """Store anything `tensor` accepts in a .tns or .mtx file (each also .gz).

    Raises OperandTypeError for something else, FormatError for what such a file cannot hold.
    """
    from taco_py.storage import files

    if isinstance(obj, str | Path):
        raise OperandTypeError(
            f"Expected a tensor to be written, found the {type(obj).__name__} {str(obj)!r}",
            hint="the tensor comes first: tp.write(tensor, path)",
        )
    files.write(as_data(obj), path)
