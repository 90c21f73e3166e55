"""A contraction of arrays as products of matrices on views of them, without a copy.

    C[b,i,j,l] += A[b,i,k] * B[b,k,j,l]     for b:  C_b[i, jl] = A_b[i, k] * B_b[k, jl]

Loops of one class (rows, columns or depth) that are neighbours in memory in both arrays they step
through are one dimension of the matrices. A matrix must have steps of one element along a dimension
and may have any along the other; what does not fit into matrices becomes loops around them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product as combinations
from math import prod

from codegen.records import dataclass

Steps = tuple[int, int, int]
"""Elements from one iteration to the next in the result, left and right; 0 where the array does
not have the loop."""
IN_ALL, ROWS, COLUMNS, DEPTH = (
    (True,) * 3,
    (True, True, False),
    (True, False, True),
    (False, True, True),
)
LARGEST = 2**31 - 1
"""The BLAS counts in 32 bits."""


@dataclass(frozen=True, slots=True)
class Loop:
    """`size` iterations; `users` says which of result, left and right have the loop."""

    size: int
    steps: Steps
    users: tuple[bool, bool, bool]


@dataclass(frozen=True, slots=True)
class Matrix:
    """How the routine reads a matrix: `leading` elements from one column to the next, or from one
    row to the next where it is `transposed`."""

    transposed: bool
    leading: int


@dataclass(frozen=True, slots=True)
class Products:
    """What is to be called: `outer` loops around products of one size, stored by columns.

    swapped  the routine computes the result's transpose: its left operand is our right one
    """

    rows: int
    columns: int
    depth: int
    left: Matrix
    right: Matrix
    leading: int
    swapped: bool
    outer: tuple[Loop, ...]

    @property
    def calls(self) -> int:
        return prod(loop.size for loop in self.outer)

    @property
    def rounds(self) -> int:
        """Return how often each element of the result is added to."""
        return prod(loop.size for loop in self.outer if loop.users == DEPTH)


def as_products(loops: Sequence[Loop]) -> Products | None:
    """Return the contraction with these loops as the largest products there are; None where there
    are none without a copy."""
    loops = [loop for loop in loops if loop.size != 1]
    classes = [
        _merged([loop for loop in loops if loop.users == users]) for users in (ROWS, COLUMNS, DEPTH)
    ]
    batch = [loop for loop in loops if loop.users == IN_ALL]
    candidates = [
        products
        for dimensions in combinations(*(_choices(groups) for groups in classes))
        for products in _products(dimensions, classes, batch)
    ]
    return max(candidates, key=lambda p: (p.rows * p.columns * p.depth, -p.rounds), default=None)


def _choices(groups: Sequence[Loop]) -> Sequence[Loop | None]:
    """Return the dimension that a class may be; None where it has no loop."""
    return groups or (None,)


def _merged(loops: Sequence[Loop]) -> list[Loop]:
    """Return the loops with those put together that are neighbours in memory in every array."""
    ordered = sorted(loops, key=lambda loop: max(loop.steps))
    groups: list[Loop] = []
    for loop in ordered:
        if groups and all(
            step == size_step
            for step, size_step in zip(
                loop.steps, (groups[-1].size * s for s in groups[-1].steps), strict=True
            )
        ):
            last = groups.pop()
            groups.append(Loop(last.size * loop.size, last.steps, loop.users))
        else:
            groups.append(loop)
    return groups


def _products(
    dimensions: Sequence[Loop | None], classes: Sequence[Sequence[Loop]], batch: Sequence[Loop]
) -> Iterator[Products]:
    """Yield the products over the chosen dimensions, where the routine takes such matrices."""
    m, n, k = (loop or Loop(1, (0, 0, 0), IN_ALL) for loop in dimensions)
    outer = [loop for groups in classes for loop in groups if loop not in (m, n, k)]
    loops = tuple(sorted((*batch, *outer), key=lambda loop: loop.users == DEPTH))
    if max(m.size, n.size, k.size) > LARGEST:
        return
    for swapped in (False, True):
        first, second = (n, m) if swapped else (m, n)
        one, other = (2, 1) if swapped else (1, 2)
        left, right = _matrix(first, k, one), _matrix(k, second, other)
        result = _matrix(first, second, 0)
        if left and right and result and not result.transposed:
            yield Products(
                first.size, second.size, k.size, left, right, result.leading, swapped, loops
            )


def _matrix(rows: Loop, columns: Loop, place: int) -> Matrix | None:
    """Return the matrix over two loops of the array at `place`; None without a unit stride."""
    for inner, outer, transposed in ((rows, columns, False), (columns, rows, True)):
        step, distance = inner.steps[place], outer.steps[place]
        leading = max(1, inner.size) if outer.size == 1 else distance
        if (step == 1 or inner.size == 1) and max(1, inner.size) <= leading <= LARGEST:
            return Matrix(transposed, leading)
    return None
