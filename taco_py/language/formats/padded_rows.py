"""Matrices whose rows, or rows of a slice, have equally many places: ELL, SELL, n:m.

    ELL        (i,j) -> (i, #j in i, j)                 ddp   a place holds a coordinate, or is free
    SELL(8)    (i,j) -> (i/8, #j in i, i%8, j)          drdp  equally many places a row within each
                                                              slice
    NM(2,4)    (i,j) -> (i, j/4, #j%4 in i,j/4, j%4)    dddp  two places for every four columns

Free places hold the coordinate -1 and are skipped.
(SELL: Kreutzer, Hager, Wellein, Fehske and Bishop 2014, A Unified Sparse Matrix Data Format.)
"""

from __future__ import annotations

from taco_py.language.diagnostics.errors import FormatError
from taco_py.language.formats.format import Format
from taco_py.language.formats.remapped import RemappedFormat, sizes_of_blocks
from taco_py.language.formats.stored_modes import PlainMode, Quotient, Remainder, Slot

ROW, COLUMN = PlainMode(0), PlainMode(1)
ELL = RemappedFormat("ELL", Format.parse("ddp"), (ROW, Slot(COLUMN, (ROW,)), COLUMN), (1,))
"""Every row has as many places as the fullest row has entries."""


def SELL(rows: int = 8) -> RemappedFormat:  # noqa: N802 - the field's name
    """Return the format of matrices in slices of rows, the places of which are stored together.

    >>> print(SELL(4), SELL(4).mapping)
    SELL(4) (i,j) -> (i/4, #j in i, i%4, j)
    >>> str(SELL().inner)
    'drdp'

    rows  the number of rows of a slice; each has as many places as its fullest row has entries

    Raises FormatError for sizes below 1.
    """
    (size,) = sizes_of_blocks((rows,), "SELL(8)")
    modes = (Quotient(0, size), Slot(COLUMN, (ROW,)), Remainder(0, size), COLUMN)
    return RemappedFormat(f"SELL({size})", Format.parse("drdp"), modes, (0, 1))


def NM(n: int, m: int) -> RemappedFormat:  # noqa: N802
    """Return the format of matrices with at most n entries in m adjacent columns of a row.

    >>> print(NM(2, 4), NM(2, 4).mapping)
    NM(2,4) (i,j) -> (i, j/4, #j%4 in i, j/4, j%4)
    >>> str(NM(1, 2).inner)
    'dddp'

    n  the number of places of a group
    m  the number of columns of a group

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
