"""Ways to make a kernel out of a problem."""

from __future__ import annotations

from typing import ClassVar

from codegen.records import dataclass


@dataclass(frozen=True, slots=True)
class Strategy:
    """`loops`: concrete notation, lowered. `tiles`: register tiles and blocks of a contraction of
    two dense tensors, through `polyhedral`. `library`: a routine for products of matrices.
    `transpose`: a dense tensor copied in another order, by tiles transposed in registers. `staged`:
    a sum of products of dense tensors likewise, from a stage in the first caches.

    width  columns of a tile at most, 0 for as many as suit the machine; a batch of small matrices
           wants tiles that these fill
    """

    kind: str
    width: int = 0

    LOOPS: ClassVar[Strategy]
    TILES: ClassVar[Strategy]
    LIBRARY: ClassVar[Strategy]
    TRANSPOSE: ClassVar[Strategy]
    STAGED: ClassVar[Strategy]


Strategy.LOOPS = Strategy("loops")
Strategy.TILES = Strategy("tiles")
Strategy.LIBRARY = Strategy("library")
Strategy.TRANSPOSE = Strategy("transpose")
Strategy.STAGED = Strategy("staged")
