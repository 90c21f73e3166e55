"""Matrices whose rows have as many places each, or each slice of rows: ELL, SELL, n:m.

    ELL        (i,j) -> (i, #j in i, j)                 ddp   a place is a coordinate, or free
    SELL(8)    (i,j) -> (i/8, #j in i, i%8, j)          drdp  as many places a row in each slice
    NM(2,4)    (i,j) -> (i, j/4, #j%4 in i,j/4, j%4)    dddp  two places for each four columns

Free places hold the coordinate -1, and nothing is computed with them.
(SELL: Kreutzer, Hager, Wellein, Fehske and Bishop 2014, A Unified Sparse Matrix Data Format.)
"""

from __future__ import annotations

from taco_py.language.diagnostics.errors import FormatError
from taco_py.language.formats.format import Format
from taco_py.language.formats.remapped import RemappedFormat, sizes_of_blocks
from taco_py.language.formats.stored_modes import Quotient, Remainder, Slot, Whole

ROW, COLUMN = Whole(0), Whole(1)
ELL = RemappedFormat("ELL", Format.parse("ddp"), (ROW, Slot(COLUMN, (ROW,)), COLUMN), (1,))
"""As many places a row as the fullest has entries."""


def SELL(rows: int = 8) -> RemappedFormat:  # noqa: N802 - the field's name
    """Return the format of matrices in slices of so many rows, the places of which lie together.

    >>> print(SELL(4), SELL(4).mapping)
    SELL(4) (i,j) -> (i/4, #j in i, i%4, j)
    >>> str(SELL().inner)
    'drdp'

    rows  of a slice, each of which has as many places as the fullest has entries

    Raises FormatError for sizes below 1.
    """
    (size,) = sizes_of_blocks((rows,), "SELL(8)")
    modes = (Quotient(0, size), Slot(COLUMN, (ROW,)), Remainder(0, size), COLUMN)
    return RemappedFormat(f"SELL({size})", Format.parse("drdp"), modes, (0, 1))


def NM(n: int, m: int) -> RemappedFormat:  # noqa: N802
    """Return the format of matrices with at most n entries in each m neighbouring columns of a row.

    >>> print(NM(2, 4), NM(2, 4).mapping)
    NM(2,4) (i,j) -> (i, j/4, #j%4 in i, j/4, j%4)
    >>> str(NM(1, 2).inner)
    'dddp'

    n  places of a group
    m  columns of a group

    Raises FormatError for sizes below 1, and for n above m.
    """
    most, size = sizes_of_blocks((n, m), "NM(2, 4)")
    if most > size:
        raise FormatError(
            f"Expected at most {size} entries in {size} columns, found {most}",
            hint="as in NM(2, 4)",
        )
    group, inside = Quotient(1, size), Remainder(1, size)
    modes = (ROW, group, Slot(inside, (ROW, group), most), inside)
    return RemappedFormat(f"NM({most},{size})", Format.parse("dddp"), modes)
