"""Products shared among threads of ours, each part by one thread of the library.

    C = A B, two threads    →    C[:, :n/2] = A B[:, :n/2]  beside  C[:, n/2:] = A B[:, n/2:]

The library's own threads look for work long after a product, on the cores of the kernels that come
next, and wait for each other in its middle, whoever else computes there: a step of training with
both takes up to twice as long. Ours sleep; each part is done when it is done. Many matrices are
shared whole, which the library takes one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from codegen.libraries.gemm import Products
from codegen.records import dataclass

SHARED = 2**22
"""Multiplications from which a second thread pays: waking it takes some 50 µs."""
ALONE = 2**18
"""Multiplications up to which the library itself uses one thread."""
STEP = 16
"""Rows and columns of a part are a multiple: a vector of those that the library's kernels take at
once. More would leave threads without work: of 512 columns, by 48, one has 288 and one 224."""


@dataclass(frozen=True, slots=True)
class Share:
    """A part of products: rows and columns from the first on, and some of the matrices."""

    row: int
    rows: int
    column: int
    columns: int
    begin: int
    end: int


def shares_of(products: Products, adds: bool, threads: int) -> tuple[Share, ...]:
    """Divide products among threads.

    adds  whether matrices are added up in one result, so that none may be computed beside another
    """
    full = Share(0, products.rows, 0, products.columns, 0, products.calls)
    work = products.rows * products.columns * products.depth * products.calls
    if threads == 1 or work < SHARED:
        return (full,)
    if not adds and products.calls >= 2 * threads:
        cuts = [products.calls * k // threads for k in range(threads + 1)]
        return tuple(
            Share(0, products.rows, 0, products.columns, begin, end)
            for begin, end in pairwise(cuts)
        )
    if products.columns >= products.rows:
        cut = [(0, products.rows, *part) for part in _parts(products.columns, threads)]
    else:
        cut = [(*part, 0, products.columns) for part in _parts(products.rows, threads)]
    return tuple(Share(*part, 0, products.calls) for part in cut)


def _parts(size: int, threads: int) -> Iterator[tuple[int, int]]:
    """Yield the beginning and size of each part."""
    step = -(-size // threads)
    step += -step % STEP
    for begin in range(0, size, step):
        yield begin, min(step, size - begin)
