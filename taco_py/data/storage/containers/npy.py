"""Arrays in NumPy's format .npy, from untrusted bytes.

The header is read first: an array of objects, or of more elements than there are bytes, is refused
before it is created.
"""

from __future__ import annotations

import ast
import struct
from math import prod
from typing import Any

import numpy as np

MAGIC = b"\x93NUMPY"
KINDS = "biufcSU"
"""Kinds of types that are read; none of them can hold objects."""
LONGEST_HEADER = 10_000


def read_npy(content: bytes) -> np.ndarray[Any, Any]:
    """Return the array of a .npy file. Raises ValueError for other bytes, and for objects."""
    header, rest = _header(content)
    keys = {"descr", "fortran_order", "shape"}
    if not isinstance(header, dict) or {*header} != keys:
        raise ValueError("no header of an array")
    name, shape, turned = header["descr"], header["shape"], header["fortran_order"]
    if not isinstance(name, str) or len(name) > 32:
        raise ValueError("an array of records")
    try:
        dtype = np.dtype(name)
    except (TypeError, SyntaxError) as error:
        raise ValueError(f"no type of numbers: {error}") from None
    if dtype.hasobject or dtype.kind not in KINDS or dtype.subdtype is not None:
        raise ValueError(f"an array of {dtype}, not of numbers")
    if not isinstance(shape, tuple) or not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError("no shape of an array")
    if len(shape) > 32 or prod(shape) * dtype.itemsize != len(rest):
        raise ValueError(f"{len(rest)} bytes for an array of shape {shape}")
    if not prod(shape):
        if max(shape) >= 2**62:
            raise ValueError("a shape that no array has")
        return np.empty(shape, dtype)
    flat = np.frombuffer(bytearray(rest), dtype)
    return flat.reshape(shape[::-1]).T if turned is True else flat.reshape(shape)


def _header(content: bytes) -> tuple[Any, bytes]:
    """Return the header of an array, and the bytes of its elements."""
    if len(content) < 10 or not content.startswith(MAGIC) or content[6] not in (1, 2, 3):
        raise ValueError("no array of NumPy's format")
    wide = content[6] > 1
    begin = 12 if wide else 10
    if len(content) < begin:
        raise ValueError("no header of an array")
    (length,) = struct.unpack_from("<I" if wide else "<H", content, 8)
    if length > LONGEST_HEADER or begin + length > len(content):
        raise ValueError("a header of an array that is cut off")
    text = content[begin : begin + length].decode("latin1")
    try:
        return ast.literal_eval(text), content[begin + length :]
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        raise ValueError("no header of an array") from None
