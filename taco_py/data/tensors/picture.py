"""A Tensor as HTML: format, shape, density, and an SVG picture of its entries.

Each square of the picture is a block of the matrix, the darker the more of it is stored. Of more
than two modes all but the last are rows; a vector is one row.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from taco_py.data.storage.pack import unpack
from taco_py.language.notebook.markup import side_by_side, table

if TYPE_CHECKING:
    from taco_py.data.storage.tensor_data import Array, TensorData
    from taco_py.data.tensors.tensor import Tensor

SQUARES = 48
"""The largest number of rows or columns of a picture."""
LONG = 6
"""The largest ratio of sides for which the picture has the matrix's shape."""
SIDE = 5
"""The side of a square in pixels."""


def html(T: Tensor) -> str:  # noqa: N803
    """Write a table of a Tensor's properties, beside a picture of its entries."""
    size = prod(T.shape)
    rows: list[tuple[str, Any]] = [
        ("format", T.format), ("shape", " × ".join(map(str, T.shape)) or "scalar"),
        ("dtype", T.dtype), ("stored", f"{T.nnz} of {size}"),
        ("density", f"{T.nnz / size if size else 0:.3g}"),
    ]  # fmt: skip
    if T.data.fill:
        rows.append(("fill value", T.fill_value))
    return side_by_side(table(rows), spy(T.data))


def spy(data: TensorData) -> str:
    """Draw the entries as SVG; return nothing for a scalar or without elements."""
    if not data.shape or not prod(data.shape):
        return ""
    counts, cover = _counted(data)
    rows, columns = counts.shape
    squares = "".join(
        f'<rect x="{SIDE * c}" y="{SIDE * r}" width="{SIDE}" height="{SIDE}" '
        f'opacity="{max(0.15, min(1.0, counts[r, c] / cover[r, c])):.2f}"/>'
        for r, c in zip(*np.nonzero(counts), strict=True)
    )
    width, height = SIDE * columns, SIDE * rows
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="stored elements">'
        f'<rect width="{width}" height="{height}" fill="none" stroke="currentColor"/>'
        f'<g fill="currentColor">{squares}</g></svg>'
    )


def squares_of(sides: tuple[int, int]) -> list[int]:
    """Return rows and columns of the picture, proportional unless one side is much longer.

    >>> squares_of((60, 120)), squares_of((3, 10**6))
    ([24, 48], [3, 48])
    """
    longest = max(sides)
    if longest > LONG * min(sides):
        return [min(side, SQUARES) for side in sides]
    return [max(1, round(side * min(1.0, SQUARES / longest))) for side in sides]


def _counted(data: TensorData) -> tuple[Array, Array]:
    """Count the entries in each block of the matrix, and its elements."""
    split = len(data.shape) - 1
    sides = prod(data.shape[:split]), data.shape[-1]
    squares = squares_of(sides)
    columns, _ = unpack(data, drop_fill=True)
    outer = np.zeros(len(columns[0]), np.float64)
    for column, size in zip(columns[:split], data.shape[:split], strict=True):
        outer = outer * size + column
    cells = [
        np.minimum(column * (count / side), count - 1).astype(np.int64)
        for column, count, side in zip((outer, columns[-1]), squares, sides, strict=True)
    ]
    counts = np.bincount(cells[0] * squares[1] + cells[1], minlength=squares[0] * squares[1])
    extents = [
        np.diff(np.linspace(0, side, count + 1)) for count, side in zip(squares, sides, strict=True)
    ]
    return counts.reshape(squares), extents[0][:, None] * extents[1]
