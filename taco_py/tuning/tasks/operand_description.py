"""What an operand is like, without its values: enough to make one like it, the same every time.

{"shape": [1000, 800], "format": "csr_array", "density": 0.01, "rows": "power", "seed": 3}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from math import prod
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.data.interop.scipy_arrays import KINDS
from taco_py.data.storage.borrow import as_dtype
from taco_py.language.diagnostics.errors import OperandError
from taco_py.language.diagnostics.suggest import with_suggestion
from taco_py.language.formats import Format, format_named

ARRAY = "ndarray"
RANDOM, EVEN, POWER, BAND = "random", "even", "power", "band"
ROWS = (RANDOM, EVEN, POWER, BAND)
"""How entries are spread over rows: by chance; as many in each; a power law; near a diagonal."""
INDEX_TYPES = ("int32", "int64")
Degrees = tuple[tuple[tuple[float, float], ...], ...]


@dataclass(frozen=True, slots=True)
class OperandDescription:
    """Describe an operand: what it is made of, or the file that it is in.

    shape     size of each mode, () for a number
    dtype     of its values
    format    "ndarray", a class of scipy.sparse as "csr_array", or levels of a Tensor as "ds"
    order     "C" or "F": how an ndarray lies in memory
    density   part of its elements that are stored, of a sparse operand
    nnz       how many are stored, in the place of `density`
    rows      "random", "even", "power" or "band": how entries are spread over the first mode
    exponent  of the power law; width of the band as a part of the last mode
    degrees   for each mode, how many coordinates have about how many entries; () where it is not
              known. It goes before `rows`
    run       mean length of runs of neighbours in the last mode
    index     type of stored coordinates; "" for int32 where that is enough
    seed      of what is random
    file      to read the operand from; then shape, density and the like are the file's
    """

    shape: tuple[int, ...] = ()
    dtype: str = "float64"
    format: str = ARRAY
    order: str = "C"
    density: float | None = None
    nnz: int | None = None
    rows: str = RANDOM
    exponent: float = 1.0
    degrees: Degrees = ()
    run: float = 1.0
    index: str = ""
    seed: int = 0
    file: str = ""

    @property
    def is_sparse(self) -> bool:
        """Tell whether it stores some elements alone."""
        if self.format == ARRAY:
            return False
        return self.format in KINDS or not self.levels.is_dense

    @property
    def levels(self) -> Format:
        """Return the format of a Tensor. Raises FormatError."""
        return format_named(self.format, len(self.shape))

    @property
    def entries(self) -> int:
        """Count how many elements are stored."""
        if self.nnz is not None:
            return self.nnz
        volume = prod(self.shape)
        return volume if self.density is None else min(volume, round(self.density * volume))

    def as_json(self) -> dict[str, Any]:
        """Return the fields that differ from the defaults, as JSON has them."""
        values = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if value != field.default or (field.name == "shape" and not self.file):
                values[field.name] = _with_lists(value)
        return values


def _with_lists(value: Any) -> Any:
    """Return tuples as lists."""
    return [_with_lists(item) for item in value] if isinstance(value, tuple) else value


class KeyedError(OperandError):
    """An error with the keys that lead to its place: ("operands", "A", "density")."""

    def __init__(self, message: str, path: tuple[str, ...], hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.path = path


def described(table: Any) -> OperandDescription:
    """Return the description that JSON or TOML has. Raises KeyedError."""
    if not isinstance(table, Mapping):
        raise KeyedError(
            f"Expected a table that describes an operand, found {table!r}",
            (),
            "as in A = { shape = [1000, 800], format = 'csr_array', density = 0.01 }",
        )
    names = [field.name for field in fields(OperandDescription)]
    for name in table:
        if name not in names:
            raise KeyedError(
                f"Expected one of {', '.join(names)}, found {name!r}",
                (name,),
                with_suggestion("leave it out", name, names),
            )
    values = {name: _CHECKS[name](value, name) for name, value in table.items()}
    description = OperandDescription(**values)
    _check_whole(description, values)
    return description


def _check_whole(operand: OperandDescription, values: Mapping[str, Any]) -> None:
    """Raise KeyedError for fields that do not go together."""
    if operand.file:
        wrong = sorted({"shape", "density", "nnz", "degrees", "run", "rows", "seed"} & set(values))
        if wrong:
            raise KeyedError(f"Expected no {wrong[0]} beside file, which has its own", (wrong[0],))
        return
    if "shape" not in values:
        raise KeyedError("Expected shape or file, found neither", (), "as in shape = [1000, 800]")
    if operand.format in KINDS and len(operand.shape) != 2:
        raise KeyedError(
            f"Expected two sizes for {operand.format}, found {len(operand.shape)}",
            ("shape",),
        )
    try:
        sparse = operand.is_sparse
    except Exception as error:
        raise KeyedError(
            f"Expected 'ndarray', one of {', '.join(KINDS)} or a format of {len(operand.shape)} "
            f"levels, found {operand.format!r}",
            ("format",),
            getattr(error, "hint", None),
        ) from error
    if sparse and operand.density is None and operand.nnz is None:
        raise KeyedError(
            f"Expected density or nnz for the format {operand.format!r}, found neither",
            ("format",),
        )
    if not sparse and (operand.density is not None or operand.nnz is not None):
        raise KeyedError(
            f"Expected a sparse format beside density and nnz, found {operand.format!r}",
            ("density",) if operand.nnz is None else ("nnz",),
            "as in format = 'csr_array', or 'ds' for a Tensor",
        )
    if operand.nnz is not None and operand.nnz > prod(operand.shape):
        raise KeyedError(
            f"Expected at most {prod(operand.shape)} entries, found {operand.nnz}", ("nnz",)
        )
    if operand.degrees and len(operand.degrees) != len(operand.shape):
        raise KeyedError(
            f"Expected a list for each of {len(operand.shape)} modes, found {len(operand.degrees)}",
            ("degrees",),
        )


# ---------------------------------------------------------------- values of keys


def _expected(what: str, value: Any, name: str) -> KeyedError:
    return KeyedError(f"Expected {what}, found {value!r}", (name,))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: Any, least: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _shape(value: Any, name: str) -> tuple[int, ...]:
    if not isinstance(value, list | tuple) or not all(_is_whole(size) for size in value):
        raise _expected("a list of sizes from 0", value, name)
    return tuple(value)


def _dtype(value: Any, name: str) -> str:
    try:
        return str(as_dtype(value, "dtype").name)
    except (TypeError, ImportError) as error:
        raise _expected("the name of a dtype, as 'float32'", value, name) from error


def _word(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise _expected("a text", value, name)
    return value


def _one_of(*words: str) -> Any:
    def check(value: Any, name: str) -> str:
        if value not in words:
            raise KeyedError(
                f"Expected one of {', '.join(map(repr, words))}, found {value!r}",
                (name,),
                with_suggestion("", str(value), words) or None,
            )
        return str(value)

    return check


def _part(value: Any, name: str) -> float:
    if not _is_number(value) or not 0 <= value <= 1:
        raise _expected("a number from 0 to 1", value, name)
    return float(value)


def _natural_number(value: Any, name: str) -> int:
    if not _is_whole(value):
        raise _expected("a whole number from 0", value, name)
    return int(value)


def _positive(value: Any, name: str) -> float:
    if not _is_number(value) or not 0 < value < np.inf:
        raise _expected("a positive number", value, name)
    return float(value)


def _degrees(value: Any, name: str) -> Degrees:
    try:
        degrees = tuple(
            tuple((float(count), float(length)) for count, length in mode) for mode in value
        )
    except (TypeError, ValueError) as error:
        raise _expected("a list of [coordinates, entries] for each mode", value, name) from error
    if any(not (0 <= n < np.inf) for mode in degrees for pair in mode for n in pair):
        raise _expected("numbers from 0", value, name)
    return degrees


_CHECKS = {
    "shape": _shape, "dtype": _dtype, "format": _word, "order": _one_of("C", "F"),
    "density": _part, "nnz": _natural_number, "rows": _one_of(*ROWS), "exponent": _positive,
    "degrees": _degrees, "run": _positive, "index": _one_of(*INDEX_TYPES), "seed": _natural_number,
    "file": _word,
}  # fmt: skip
