"""What is told of a kind of file that is no table of numbers in text."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.data.storage.tensor_data import TensorData
from taco_py.language.diagnostics.errors import OperandTypeError

File = Path | BytesIO
"""Where a file is read from or written to: a path, or its bytes in memory."""


@dataclass(frozen=True, slots=True)
class Container:
    """A kind of file.

    what      it is called in messages
    endings   of names of such files, without that of a compression
    starts    what their bytes start with, "" where that says nothing
    keyed     whether a file has several tensors, each with a key
    read      the tensor in a file of this name, by its key, "" for the only or usual one
    write     puts a tensor into a file, under a key
    """

    what: str
    endings: tuple[str, ...]
    starts: bytes
    keyed: bool
    read: Callable[[File, str, str], TensorData]
    write: Callable[[TensorData, File, str], None]


def require_numpys(dtype: np.dtype[Any], who: str) -> None:
    """Raise OperandTypeError for values of a type that NumPy alone does not know: bfloat16."""
    if dtype.kind not in "biufc":
        raise OperandTypeError(
            f"Expected values of a type of NumPy's own for {who}, found {dtype}",
            hint='convert them first: T.astype("float32")',
        )


def content_of(file: File) -> bytes:
    """Return all bytes of a file."""
    return file.read_bytes() if isinstance(file, Path) else file.getvalue()
