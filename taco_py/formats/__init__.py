"""Storage formats as data."""

from taco_py.formats.diagonals import DIA, SDIA
from taco_py.formats.format import (
    COO,
    CSC,
    CSF,
    CSR,
    DCSC,
    DCSR,
    DOK,
    HASH,
    LETTERS,
    Format,
    Level,
    dense,
    named,
)
from taco_py.formats.level_kind import KINDS, LevelKind
from taco_py.formats.padded_rows import ELL, NM, SELL
from taco_py.formats.remapped import BCSR, BSR, Blocked, RemappedFormat
from taco_py.formats.runs import RLE
from taco_py.formats.symmetric import SYM
from taco_py.formats.written import remapped

__all__ = [
    "BCSR", "BSR", "COO", "CSC", "CSF", "CSR", "DCSC", "DCSR", "DIA", "DOK", "ELL", "HASH",
    "KINDS", "LETTERS", "NM", "RLE", "SDIA", "SELL", "SYM", "Blocked", "Format", "Level",
    "LevelKind",     "RemappedFormat", "dense", "named", "remapped",
]  # fmt: skip
