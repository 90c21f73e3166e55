"""What is told of a kind of file that is no table of numbers in text."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from pathlib import Path

from codegen.records import dataclass
from taco_py.storage.tensor_data import TensorData

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


def content_of(file: File) -> bytes:
    """All bytes of a file."""
    return file.read_bytes() if isinstance(file, Path) else file.getvalue()
