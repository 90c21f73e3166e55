"""Files of learned prices: a header in JSON beside arrays, which are read as data.

about    version, features, origin; of a network its kind
others   the numbers that make the price
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import FileFormatError

BROKEN = (
    BadZipFile, ValueError, EOFError, KeyError, TypeError, AttributeError, RuntimeError,
    OverflowError, zlib.error,
)  # fmt: skip
"""What NumPy and JSON raise for a file of something else."""
ZIP = b"PK\x03\x04"
"""The first bytes of a file of arrays."""
MOST_BYTES = 1 << 23
"""Of a file's arrays, as they are in memory."""


@dataclass(frozen=True, slots=True, eq=False)
class PriceFile:
    """The header of a file and its arrays by name."""

    path: str
    words: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]

    def check_features(self, features: Sequence[str]) -> None:
        """Raise FileFormatError unless the price was trained on these features."""
        names = self.words.get("features")
        if names != list(features):
            in_file = {*map(str, names)} if isinstance(names, list) else set[str]()
            differences = sorted(in_file ^ {*features})
            raise FileFormatError(
                f"Expected the features of this release, found others in {self.path}: "
                + (", ".join(differences[:5]) or "in another order"),
                hint="train it again",
            )


def read_price_file(path: str | Path) -> PriceFile:
    """Read the header and the arrays of a file of a learned price.

    Raises FileFormatError for a file of something else, or one that is cut off.
    """
    try:
        with np.load(Path(path), allow_pickle=False) as file:
            size = sum(info.file_size for info in file.zip.infolist())
            arrays = {name: file[name] for name in file.files} if size <= MOST_BYTES else {}
    except BROKEN as error:
        with Path(path).open("rb") as start:
            fault = "one that is cut off or damaged" if start.read(4) == ZIP else "something else"
        raise FileFormatError(
            f"Expected a file of a learned price, found {fault} in {path}: {error}"
        ) from error
    if size > MOST_BYTES:
        raise FileFormatError(
            f"Expected {MOST_BYTES} bytes of a learned price at most, found {size} in {path}"
        )
    try:
        words = json.loads(str(arrays.pop("about")))
    except (KeyError, ValueError, RecursionError) as error:
        raise FileFormatError(
            f"Expected the header of a learned price in {path}, found none"
        ) from error
    if not isinstance(words, dict) or "version" not in words:
        raise FileFormatError(f"Expected the header of a learned price in {path}, found another")
    return PriceFile(str(path), words, arrays)


def write_price_file(
    path: str | Path, words: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write a header and arrays to a file."""
    with Path(path).open("wb") as file:
        np.savez_compressed(file, about=np.array(json.dumps(words)), **arrays)  # type: ignore[arg-type]
