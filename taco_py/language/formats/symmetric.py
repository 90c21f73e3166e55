"""Symmetric matrices, of which one triangle is stored.

    SYM    (i,j) -> (max(i,j), min(i,j), i<j, i, j)    dswyy    the rows of the lower triangle

Loops visit an entry of the triangle twice, as (r, c) and as (c, r); kernels read it once.
"""

from __future__ import annotations

from taco_py.language.formats.format import Format
from taco_py.language.formats.remapped import RemappedFormat
from taco_py.language.formats.stored_modes import Folded, PlainMode

SYM = RemappedFormat(
    "SYM",
    Format.parse("dswyy"),
    (Folded("larger"), Folded("smaller"), Folded("turn"), PlainMode(0), PlainMode(1)),
)
"""The lower triangle of a symmetric matrix, with its diagonal, in CSR."""
