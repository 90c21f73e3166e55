"""The description of a kind of file other than texts of numbers."""

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
"""The source or target of a file: a path, or bytes in memory."""


@dataclass(frozen=True, slots=True)
class Container:
    """A kind of file.

    what      its name in messages
    endings   of names of these files, without that of a compression
    starts    their first bytes, "" where these do not identify the kind
    keyed     whether a file has several tensors, each with a key
    read      reads the tensor in a file of a name, by its key, "" for the only or default one
    write     writes a tensor into a file, under a key
    """

    what: str
    endings: tuple[str, ...]
    starts: bytes
    keyed: bool
    read: Callable[[File, str, str], TensorData]
    write: Callable[[TensorData, File, str], None]


def require_numpys(dtype: np.dtype[Any], who: str) -> None:
    """Raise OperandTypeError for values of a type that NumPy alone lacks: bfloat16."""
    if dtype.kind not in "biufc":
        raise OperandTypeError(
            f"Expected values of a type of NumPy's own for {who}, found {dtype}",
            hint='convert them first: T.astype("float32")',
        )


def content_of(file: File) -> bytes:
    """Return all bytes of a file."""
    return file.read_bytes() if isinstance(file, Path) else file.getvalue()
