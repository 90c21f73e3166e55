"""Which of two is faster, from pairs of times taken in turns: told as soon as it is clear.

A pair is won by the one that took less. Wald's test of "wins 4 of 5" against "wins 1 of 5" adds
log 4 for each win and takes it off for each loss; it ends beyond log 49, for an error of 2 %: three
wins more than losses. What takes more than twice as long loses twice: two such pairs end it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from math import ceil, log

WINS = 0.8
ERROR = 0.02
"""The share of comparisons that may end wrongly."""
SURE = 1e-5
"""The same of the last one, after which nobody looks again."""
HOPELESS = 2.0
"""Times as slow that no noise explains, once both were run before."""
STEP = log(WINS / (1 - WINS))


class Verdict(Enum):
    """What pairs of times say of the first of two."""

    FASTER = "faster"
    SLOWER = "slower"
    OPEN = "open"


def fewest_pairs(error: float = ERROR) -> int:
    """Count the pairs that one of two has to win for a verdict."""
    return ceil(log((1 - error) / error) / STEP)


def verdict(
    pairs: Sequence[tuple[float, float]], margin: float = 0.0, error: float = ERROR
) -> Verdict:
    """Decide by the pairs which of two functions is faster.

    margin  the share by which the first has to be faster in a pair to win it; it loses one as soon
            as it is slower
    error   the share of comparisons that may end wrongly
    """
    total, bound = 0.0, log((1 - error) / error)
    for mine, other in pairs:
        if mine > HOPELESS * other:
            total -= 2 * STEP
        elif mine < other * (1 - margin):
            total += STEP
        elif mine > other:
            total -= STEP
        if total >= bound:
            return Verdict.FASTER
        if total <= -bound:
            return Verdict.SLOWER
    return Verdict.OPEN
