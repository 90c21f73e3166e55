"""What products and conversions took in each format: arrays, in a file that trees learn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import FileFormatError
from taco_py.tuning.formats.format_features import FEATURES
from taco_py.tuning.prices.forest import Rows
from taco_py.tuning.prices.price_data import read_arrays

ARRAYS = ("features", "expected", "measured", "matrix", "forms", "columns", "quantity")


@dataclass(frozen=True, slots=True, eq=False)
class FormatData:
    """Formats that were measured.

    features  of each measurement, a row
    expected  the analytic gain over CSR, or the analytic seconds
    measured  the same as it was measured
    matrix    of each measurement, the number of its matrix
    forms     the format of each, as text, so that its features can be counted again
    columns   of the dense operand of each
    quantity  what each is: GAIN, SECONDS or CONVERSION
    machine   the processor, its compiler and the day; "" where that is unknown
    """

    features: NDArray[np.float32]
    expected: Rows
    measured: Rows
    matrix: NDArray[np.int32]
    forms: NDArray[np.str_]
    columns: NDArray[np.int32]
    quantity: NDArray[np.int32]
    machine: tuple[str, str, str] = ("", "", "")

    def of_matrices(self, some: NDArray[np.bool_]) -> FormatData:
        """Return some of the measurements, a truth for each."""
        arrays = {name: getattr(self, name)[some] for name in ARRAYS}
        return FormatData(**arrays, machine=self.machine)

    def save(self, path: str | Path) -> None:
        """Write a file of the arrays."""
        arrays = {field.name: getattr(self, field.name) for field in fields(self)}
        with Path(path).open("wb") as file:
            np.savez_compressed(file, names=np.array([*FEATURES]), **arrays)


def no_formats() -> FormatData:
    """Return the data of no measurement."""
    rows = np.zeros((0, len(FEATURES)), np.float32)
    none, numbers = np.zeros(0, np.int32), np.zeros(0)
    return FormatData(rows, numbers, numbers, none, np.zeros(0, np.str_), none, none)


def join_formats(parts: Sequence[FormatData]) -> FormatData:
    """Return the data of all parts, which ran on one machine.

    Raises FileFormatError for times of several processors or compilers.
    """
    if not parts:
        return no_formats()
    machines = {part.machine[:2] for part in parts}
    if len(machines) > 1:
        raise FileFormatError(
            f"Expected times of one processor and compiler, found {len(machines)}",
            hint="train a model for each",
        )
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in ARRAYS
    }
    machine = (*machines.pop(), max(part.machine[2] for part in parts))
    return FormatData(**arrays, machine=machine)


def load_formats(path: str | Path, any_features: bool = False) -> FormatData:
    """Return the data of a file; nothing in the file is run.

    any_features  whether its features may be others than `FEATURES`

    Raises FileFormatError.
    """
    arrays = read_arrays(path, "what formats took")
    names = [str(name) for name in arrays.pop("names", ())]
    if names != [*FEATURES] and not any_features:
        raise FileFormatError(
            f"Expected the features of this release, found others in {path}",
            hint="count them again: python -m benchmarks.format_data count",
        )
    missing = [field.name for field in fields(FormatData) if field.name not in arrays]
    if missing:
        raise FileFormatError(f"Expected the array {missing[0]} in {path}, found none")
    values = {field.name: arrays[field.name] for field in fields(FormatData)}
    if values["machine"].shape != (3,):
        raise FileFormatError(f"Expected processor, compiler and day in {path}, found others")
    return FormatData(**{**values, "machine": tuple(map(str, values["machine"]))})
