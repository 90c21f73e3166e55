"""Matrices stored by diagonals: full ones, or those of slices of rows.

    DIA      (i,j) -> (#j-i, i, j)                  dbo   from the first entry of each to the last
    SDIA(8)  (i,j) -> (i/8, #j-i in i/8, i%8, j)    drmo  the diagonals of each slice

j is computed from i and the offset of the diagonal, which is stored once.
"""

from __future__ import annotations

from taco_py.language.formats.format import Format
from taco_py.language.formats.remapped import RemappedFormat, sizes_of_blocks
from taco_py.language.formats.stored_modes import Difference, PlainMode, Quotient, Remainder, Slot

ROW, COLUMN = PlainMode(0), PlainMode(1)
DIA = RemappedFormat("DIA", Format.parse("dbo"), (Slot(Difference(1, 0)), ROW, COLUMN), (0,))
"""Diagonals with an entry, each from its first to its last entry."""
DIA_OF_COLUMNS = RemappedFormat(
    "DIA of columns", Format.parse("ddo"), (Slot(Difference(1, 0)), COLUMN, ROW), (0,)
)
"""Diagonals with an element for each column, as in scipy's dia arrays."""


def SDIA(rows: int = 8) -> RemappedFormat:  # noqa: N802
    """Return the format of matrices in slices of rows, each of which stores its own diagonals.

    >>> print(SDIA(8), SDIA(8).mapping)
    SDIA(8) (i,j) -> (i/8, #j-i in i/8, i%8, j)
    >>> str(SDIA(4).inner)
    'drmo'

    rows  the number of rows of a slice

    Raises FormatError for sizes below 1.
    """
    (size,) = sizes_of_blocks((rows,), "SDIA(8)")
    quotient = Quotient(0, size)
    slot = Slot(Difference(1, 0), (quotient,))
    modes = (quotient, slot, Remainder(0, size), COLUMN)
    return RemappedFormat(f"SDIA({size})", Format.parse("drmo"), modes, (0, 1))
