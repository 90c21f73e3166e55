"""Storage formats as data."""

from taco_py.formats.format import (
    COO,
    CSC,
    CSF,
    CSR,
    DCSR,
    KINDS,
    LETTERS,
    Format,
    KindProperties,
    Level,
    LevelKind,
    dense,
)

__all__ = [
    "COO", "CSC", "CSF", "CSR", "DCSR", "KINDS", "LETTERS",
    "Format", "KindProperties", "Level", "LevelKind", "dense",
]  # fmt: skip
