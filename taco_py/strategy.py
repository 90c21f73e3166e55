"""Ways to make a kernel out of a problem."""

from __future__ import annotations

from enum import Enum


class Strategy(Enum):
    """LOOPS: concrete notation, lowered. TILES: register tiles and blocks of a contraction of two
    dense tensors, through `polyhedral`."""

    LOOPS = "loops"
    TILES = "tiles"
