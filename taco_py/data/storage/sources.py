"""Sources of tensors: the uncompressed bytes of a file or file object, and their name."""

from __future__ import annotations

import gzip
import os
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import FileFormatError, MissingExtraError, OperandTypeError


@dataclass(frozen=True, slots=True)
class Compression:
    """A compression of files.

    magic         the first bytes of compressed data
    decompress    decompresses all data
    decompressor  returns an object that decompresses in parts, to find where damaged data end
    """

    name: str
    magic: bytes
    compress: Callable[[bytes], bytes]
    decompress: Callable[[bytes], bytes]
    decompressor: Callable[[], Any]


def zstd_functions() -> tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]:
    """Return functions that compress and decompress. Raises MissingExtraError without a library."""
    try:
        from compression import zstd  # Python 3.14

        return zstd.compress, zstd.decompress
    except ImportError:
        pass
    try:
        import zstandard
    except ImportError:
        raise MissingExtraError(
            "Expected the library zstandard for a .zst file, found it not installed",
            hint='pip install "tacopy[zstd]"',
        ) from None

    def decompress(content: bytes) -> bytes:
        reader = zstandard.ZstdDecompressor().stream_reader(
            BytesIO(content), read_across_frames=True
        )
        with reader:
            return bytes(reader.read())

    return zstandard.ZstdCompressor().compress, decompress


def _of(module: str, function: str) -> Callable[..., Any]:
    """Return a function of a module that Python may lack, which is imported by the call."""
    return lambda *args: getattr(import_module(module), function)(*args)


def _zstd(place: int) -> Callable[[bytes], bytes]:
    return lambda content: zstd_functions()[place](content)


COMPRESSIONS = {
    ".gz": Compression(
        "gzip", b"\x1f\x8b", lambda content: gzip.compress(content, 6), gzip.decompress,
        lambda: zlib.decompressobj(wbits=31),
    ),
    ".bz2": Compression(
        "bzip2", b"BZh", _of("bz2", "compress"), _of("bz2", "decompress"),
        _of("bz2", "BZ2Decompressor"),
    ),
    ".xz": Compression(
        "xz", b"\xfd7zXZ\x00", _of("lzma", "compress"), _of("lzma", "decompress"),
        _of("lzma", "LZMADecompressor"),
    ),
    ".zst": Compression("zstd", b"\x28\xb5\x2f\xfd", _zstd(0), _zstd(1), lambda: None),
}  # fmt: skip
"""Compressions by the ending of a file's name."""

BANNER = b"%%matrixmarket"
BINARY = (b"PK\x03\x04", b"\x89HDF", b"PAR1")
"""The first bytes of files that are no texts."""


@dataclass(frozen=True, slots=True)
class Source:
    """The bytes of a file, its name in messages, and the ending that identifies its content."""

    content: bytes
    name: str
    suffix: str


def source_of(file: Any) -> Source:
    """Return the content of a path, or of an object with a method `read`, of text or bytes.

    Raises FileNotFoundError, FileFormatError where compressed data are damaged, MissingExtraError,
    and OperandTypeError for other objects.
    """
    if not hasattr(file, "read") or isinstance(file, os.PathLike):
        path = as_path(file)
        content = uncompressed(path.read_bytes(), str(path), path.suffix.lower())
        return Source(content, str(path), suffix(path))
    content_read = file.read()
    if not isinstance(content_read, str | bytes | bytearray | memoryview):
        raise OperandTypeError(
            f"Expected a file of text or bytes, found one of {type(content_read).__name__}",
            hint='as in open("matrix.mtx", "rb")',
        )
    name = getattr(file, "name", None)
    name = name if isinstance(name, str) else f"<{type(file).__name__}>"
    raw = content_read.encode() if isinstance(content_read, str) else bytes(content_read)
    content = uncompressed(raw, name, "")
    return Source(content, name, ending_of(content, suffix(Path(name))))


def ending_of(content: bytes, said: str) -> str:
    """Return the ending of a file's name, or the one that its content implies."""
    if said in (".tns", ".ttx", ".mtx"):
        return said
    if content.startswith(BINARY):
        return said
    words = content[:80].lower().split()[:2]
    is_matrix = words[:1] in ([BANNER], [BANNER[1:]]) and words[1:] != [b"tensor"]
    return ".mtx" if is_matrix else ".tns"


def as_path(path: Any) -> Path:
    """Return the user's path. Raises OperandTypeError for anything else."""
    try:
        return Path(path)
    except TypeError:
        raise OperandTypeError(
            f"Expected a path as a string or pathlib.Path, or an open file, found "
            f"{type(path).__name__}",
            hint='as in "matrix.mtx"',
        ) from None


def suffix(path: Path) -> str:
    """Return the ending of a file's name in lower case, before that of its compression."""
    inner = path.with_suffix("") if path.suffix.lower() in COMPRESSIONS else path
    return inner.suffix.lower()


def uncompressed(content: bytes, name: str, ending: str) -> bytes:
    """Return bytes without the compression that the name's ending or the first bytes indicate.

    Raises FileFormatError for damaged data, naming the line up to which they can be read.
    """
    starts = (
        compression
        for compression in COMPRESSIONS.values()
        if content.startswith(compression.magic)
    )
    compression = COMPRESSIONS.get(ending) or next(starts, None)
    if compression is None:
        return content.removeprefix(BOM_UTF8)
    try:
        return compression.decompress(content).removeprefix(BOM_UTF8)
    except (MemoryError, ImportError):
        raise
    except Exception as error:  # each library has its own, some of them of no public class
        raise FileFormatError(
            f"{name}: Expected {compression.name} data up to line "
            f"{count_lines(content, compression) + 1}, found them damaged or truncated "
            f"there ({error})",
            hint="fetch the file again",
        ) from error


def count_lines(content: bytes, compression: Compression) -> int:
    """Return the number of line ends in the readable part of damaged compressed data."""
    stream, lines = compression.decompressor(), 0
    try:
        for start in range(0, len(content) if stream else 0, 4096):
            lines += stream.decompress(content[start : start + 4096]).count(b"\n")
    except Exception:  # each library has its own
        return lines  # damaged from here on: this is the answer, not a fault
    return lines
