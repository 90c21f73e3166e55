"""Squares of elements that are transposed in registers.

In stages of distance d = 1, 2, 4 …, rows r and r + d exchange lanes:

    a0 a1 a2 a3      a0 b0 a2 b2      a0 b0 c0 d0
    b0 b1 b2 b3  1   a1 b1 a3 b3  2   a1 b1 c1 d1
    c0 c1 c2 c3  →   c0 d0 c2 d2  →   a2 b2 c2 d2
    d0 d1 d2 d3      c1 d1 c3 d3      a3 b3 c3 d3
"""

from __future__ import annotations

from codegen.ir import Declare, Shuffle, Stmt, Var


def transposed(rows: list[Var], code: list[Stmt]) -> list[Var]:
    """Return the columns of a square of as many vectors as each has lanes.

    `code` gets the statements that compute them.
    """
    lanes = len(rows)
    distance = 1
    while distance < lanes:
        exchanged: list[Var] = list(rows)
        for row in range(lanes):
            if row & distance:
                continue
            one, other = rows[row], rows[row + distance]
            for place, picks in (
                (row, _exchanged(lanes, distance, 0)),
                (row + distance, _exchanged(lanes, distance, distance)),
            ):
                exchanged[place] = Var(f"{rows[place].name}_{distance}", rows[place].type)
                code.append(Declare(exchanged[place], Shuffle(one, other, picks), True))
        rows = exchanged
        distance *= 2
    return rows


def _exchanged(lanes: int, distance: int, start: int) -> tuple[int, ...]:
    """Return the lanes of two rows that form one row of the next stage.

    Lanes n with n & distance == 0 of the first row from `start` on, and lanes of the second row
    between them.
    """
    return tuple((n - distance + lanes if n & distance else n) + start for n in range(lanes))
