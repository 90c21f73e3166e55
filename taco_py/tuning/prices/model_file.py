"""Files of learned models: a header in JSON beside arrays, which are read as data.

about    version, features, origin; of a network its kind
others   the numbers that make the model
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
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


PRICE = "a learned price"
"""What most files are of, in messages."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the times of a model come from.

    processor, compiler  that the kernels ran on and were compiled by
    when      day of the last one, as ISO 8601 has it
    records   kernels and plans that were measured
    digest    of the records that trained it
    """

    processor: str = ""
    compiler: str = ""
    when: str = ""
    records: int = 0
    digest: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class ModelFile:
    """The header of a file and its arrays by name.

    noun  what the file is of, in messages
    """

    path: str
    words: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]
    noun: str = PRICE

    def check_version(self, version: int, trainer: str) -> None:
        """Raise FileFormatError unless the file is of this version.

        trainer  what trains such a model again
        """
        in_file = self.words["version"]
        if in_file != version:
            raise FileFormatError(
                f"Expected version {version} of {self.noun}, found {in_file!r:.20} in {self.path}",
                hint=f"train it again: {trainer}",
            )

    def check_features(self, features: Sequence[str]) -> None:
        """Raise FileFormatError unless the model was trained on these features."""
        names = self.words.get("features")
        if names != list(features):
            in_file = {*map(str, names)} if isinstance(names, list) else set[str]()
            differences = sorted(in_file ^ {*features})
            raise FileFormatError(
                f"Expected the features of this release, found others in {self.path}: "
                + (", ".join(differences[:5]) or "in another order"),
                hint="train it again",
            )


def read_model_file(path: str | Path, noun: str = PRICE) -> ModelFile:
    """Read the header and the arrays of a file of a learned model.

    noun  what the file is of, in messages

    Raises FileFormatError for a file of something else, or one that is cut off.
    """
    try:
        with np.load(Path(path), allow_pickle=False) as file:
            size = sum(info.file_size for info in file.zip.infolist())
            arrays = {name: file[name] for name in file.files} if size <= MOST_BYTES else {}
    except BROKEN as error:
        with Path(path).open("rb") as start:
            fault = "one that is cut off or damaged" if start.read(4) == ZIP else "something else"
        raise FileFormatError(f"Expected a file of {noun}, found {fault} in {path}") from error
    if size > MOST_BYTES:
        raise FileFormatError(
            f"Expected {MOST_BYTES} bytes of {noun} at most, found {size} in {path}"
        )
    try:
        words = json.loads(str(arrays.pop("about")))
    except (KeyError, ValueError, RecursionError) as error:
        raise FileFormatError(f"Expected the header of {noun} in {path}, found none") from error
    if not isinstance(words, dict) or "version" not in words:
        raise FileFormatError(f"Expected the header of {noun} in {path}, found another")
    return ModelFile(str(path), words, arrays, noun)


def write_model_file(
    path: str | Path, words: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write a header and arrays to a file."""
    with Path(path).open("wb") as file:
        np.savez_compressed(file, about=np.array(json.dumps(words)), **arrays)  # type: ignore[arg-type]


def origin_in(file: ModelFile) -> Origin:
    """Return where the model of a file comes from. Raises FileFormatError."""
    words = file.words.get("origin")
    kinds = {name: type(value) for name, value in asdict(Origin()).items()}
    if not isinstance(words, dict) or {n: type(v) for n, v in words.items()} != kinds:
        raise FileFormatError(
            f"Expected where {file.noun} comes from, found {words!r:.80} in {file.path}"
        )
    return Origin(**words)


def digest_of_arrays(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return the digest of arrays by name."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()[:16]
