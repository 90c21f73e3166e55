"""Storage formats as data."""

from taco_py.formats.format import (
    COO,
    CSC,
    CSF,
    CSR,
    DCSR,
    LETTERS,
    Format,
    Level,
    dense,
    named,
)
from taco_py.formats.level_kind import KINDS, LevelKind

__all__ = [
    "COO", "CSC", "CSF", "CSR", "DCSR", "KINDS", "LETTERS",
    "Format", "Level", "LevelKind", "dense", "named",
]  # fmt: skip
