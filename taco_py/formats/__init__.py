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
    named,
)

__all__ = [
    "COO", "CSC", "CSF", "CSR", "DCSR", "KINDS", "LETTERS",
    "Format", "KindProperties", "Level", "LevelKind", "dense", "named",
]  # fmt: skip
