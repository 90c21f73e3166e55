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
from taco_py.formats.remapped import BCSR, BSR, Blocked, RemappedFormat, remapped

__all__ = [
    "BCSR",
    "BSR",
    "COO",
    "CSC",
    "CSF",
    "CSR",
    "DCSR",
    "KINDS",
    "LETTERS",
    "Blocked",
    "Format",
    "KindProperties",
    "Level",
    "LevelKind",
    "RemappedFormat",
    "dense",
    "named",
    "remapped",
]  # fmt: skip
