"""Trials as lines of JSON, for other stores and other programs."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from errno import ENOENT
from pathlib import Path

from taco_py.language.diagnostics.errors import FileFormatError, OperandTypeError
from taco_py.tuning.store.tuning_record import TuningRecord, as_json, from_json


def write_log(path: Path, records: Iterable[TuningRecord]) -> int:
    """Write a line for each trial; the file is there once it is whole. How many there are.

    Raises OSError that names the file.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(ENOENT, os.strerror(ENOENT), str(path))
    count = 0
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            for record in records:
                count += 1
                file.write(json.dumps(as_json(record)) + "\n")
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return count


def read_log(path: Path) -> Iterator[TuningRecord]:
    """Yield the trials of a file. Raises FileFormatError that names the line, and OSError."""
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                yield from_json(json.loads(line))
            except (ValueError, TypeError, KeyError, RecursionError, OperandTypeError) as error:
                raise FileFormatError(
                    f"Expected a trial in line {number} of {path}, found {line[:60]!r} ({error})",
                    hint="store.export writes such lines; nothing of the file was taken",
                ) from error
