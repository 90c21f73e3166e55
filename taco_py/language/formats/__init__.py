"""Storage formats as data."""

from taco_py.language.formats.diagonals import DIA, SDIA
from taco_py.language.formats.format import (
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
    format_named,
)
from taco_py.language.formats.level_kind import KINDS, LevelKind
from taco_py.language.formats.padded_rows import ELL, NM, SELL
from taco_py.language.formats.remapped import BCSR, BSR, Blocked, RemappedFormat
from taco_py.language.formats.remapped_names import remapped
from taco_py.language.formats.runs import RLE
from taco_py.language.formats.symmetric import SYM

__all__ = [
    "BCSR", "BSR", "COO", "CSC", "CSF", "CSR", "DCSC", "DCSR", "DIA", "DOK", "ELL", "HASH",
    "KINDS", "LETTERS", "NM", "RLE", "SDIA", "SELL", "SYM", "Blocked", "Format", "Level",
    "LevelKind", "RemappedFormat", "dense", "format_named", "remapped",
]  # fmt: skip
