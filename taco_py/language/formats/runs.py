"""Matrices whose rows are runs of equal values: run-length encoding.

RLE    (i,j) -> (i, #run of j, j)    dri   the first and last column of each run, and one value
"""

from __future__ import annotations

from taco_py.language.formats.format import Format
from taco_py.language.formats.remapped import RemappedFormat
from taco_py.language.formats.stored_modes import PlainMode, Run

RLE = RemappedFormat("RLE", Format.parse("dri"), (PlainMode(0), Run(1, (0,)), PlainMode(1)))
"""Runs of adjacent columns with one value, in each row."""
