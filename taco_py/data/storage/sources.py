"""What a tensor is read from: the uncompressed bytes of a file or file object, and their name."""

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
    """One way to compress a file.

    magic         what compressed data start with
    decompress    all of them
    decompressor  an object that does it part by part, to see how far damaged ones can be read
    """

    name: str
    magic: bytes
    compress: Callable[[bytes], bytes]
    decompress: Callable[[bytes], bytes]
    decompressor: Callable[[], Any]


def zstd_functions() -> tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]:
    """Return functions that compress and decompress; MissingExtraError where no library has
    them."""
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
    """Return a function of a module that Python may lack, imported when it is called."""
    return lambda *given: getattr(import_module(module), function)(*given)


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
"""By the end of a file's name."""

BANNER = b"%%matrixmarket"
BINARY = (b"PK\x03\x04", b"\x89HDF", b"PAR1")
"""What files start with that are no texts."""


@dataclass(frozen=True, slots=True)
class Source:
    """The bytes of a file, its name in messages, and the ending that says what is in it."""

    content: bytes
    name: str
    suffix: str


def source_of(given: Any) -> Source:
    """Return the content of a path or of an object with a method `read`, which may give text or
    bytes.

    Raises FileNotFoundError, FileFormatError where compressed data are damaged, MissingExtraError
    and OperandTypeError for something else.
    """
    if not hasattr(given, "read") or isinstance(given, os.PathLike):
        path = as_path(given)
        content = uncompressed(path.read_bytes(), str(path), path.suffix.lower())
        return Source(content, str(path), suffix(path))
    found = given.read()
    if not isinstance(found, str | bytes | bytearray | memoryview):
        raise OperandTypeError(
            f"Expected a file of text or bytes, found one of {type(found).__name__}",
            hint='as in open("matrix.mtx", "rb")',
        )
    name = getattr(given, "name", None)
    name = name if isinstance(name, str) else f"<{type(given).__name__}>"
    raw = found.encode() if isinstance(found, str) else bytes(found)
    content = uncompressed(raw, name, "")
    return Source(content, name, ending_of(content, suffix(Path(name))))


def ending_of(content: bytes, said: str) -> str:
    """Return the ending that a file's name says, or that its content shows where the name says
    none."""
    if said in (".tns", ".ttx", ".mtx"):
        return said
    if content.startswith(BINARY):
        return said
    words = content[:80].lower().split()[:2]
    is_matrix = words[:1] in ([BANNER], [BANNER[1:]]) and words[1:] != [b"tensor"]
    return ".mtx" if is_matrix else ".tns"


def as_path(path: Any) -> Path:
    """Return the user's path. Raises OperandTypeError for what is none."""
    try:
        return Path(path)
    except TypeError:
        raise OperandTypeError(
            f"Expected a path as a string or pathlib.Path, or an open file, found "
            f"{type(path).__name__}",
            hint='as in "matrix.mtx"',
        ) from None


def suffix(path: Path) -> str:
    """Return the ending that says what is in the file, in lower case, without that of its
    compression."""
    inner = path.with_suffix("") if path.suffix.lower() in COMPRESSIONS else path
    return inner.suffix.lower()


def uncompressed(content: bytes, name: str, ending: str) -> bytes:
    """Return the bytes without their compression, which the name's ending or their own start says.

    Raises FileFormatError for damaged data, which names the line up to which they can be read.
    """
    starts = (each for each in COMPRESSIONS.values() if content.startswith(each.magic))
    way = COMPRESSIONS.get(ending) or next(starts, None)
    if way is None:
        return content.removeprefix(BOM_UTF8)
    try:
        return way.decompress(content).removeprefix(BOM_UTF8)
    except (MemoryError, ImportError):
        raise
    except Exception as error:  # each library has its own, some of them of no public class
        raise FileFormatError(
            f"{name}: Expected {way.name} data up to line {whole_lines(content, way) + 1}, found "
            f"them damaged or truncated there ({error})",
            hint="fetch the file again",
        ) from error


def whole_lines(content: bytes, way: Compression) -> int:
    """Return the number of line ends in as much of damaged compressed data as can be read."""
    stream, lines = way.decompressor(), 0
    try:
        for start in range(0, len(content) if stream else 0, 4096):
            lines += stream.decompress(content[start : start + 4096]).count(b"\n")
    except Exception:  # each library has its own
        return lines  # damaged from here on: this is the answer, not a fault
    return lines
