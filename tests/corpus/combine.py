"""Choose format combinations: all of them, or few that still meet every pair.

Most faults of a sparse compiler need two formats to meet (an iterator beside another, an operand
beside a result), so rows in which every pair of options occurs find nearly what all rows would, at
a hundredth of the compilations (Cohen et al. 1997, The AETG System).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import TypeVar

T = TypeVar("T")
Pair = tuple[int, int, int, int]


def all_rows(options: Sequence[Sequence[T]]) -> list[tuple[T, ...]]:
    """Every combination."""
    return list(product(*options))


def pairwise(options: Sequence[Sequence[T]]) -> list[tuple[T, ...]]:
    """Rows in which every two options of every two slots meet: greedy, and always the same ones.

    >>> len(pairwise(["ab", "ab", "ab"]))
    4
    """
    if len(options) < 2:
        return all_rows(options)
    missing = dict.fromkeys(
        (a, x, b, y)
        for a, b in combinations(range(len(options)), 2)
        for x in range(len(options[a]))
        for y in range(len(options[b]))
    )
    rows = []
    while missing:
        row = _best_row(options, missing)
        for pair in _pairs(row):
            missing.pop(pair, None)
        rows.append(tuple(options[slot][choice] for slot, choice in enumerate(row)))
    return rows


def each_once(options: Sequence[Sequence[T]], *, skip: int = 0) -> list[tuple[T, ...]]:
    """Rows in which every option from number `skip` on occurs; neighbouring slots are out of step.

    >>> each_once(["ab", "xyz"])
    [('a', 'y'), ('b', 'z'), ('a', 'x')]
    """
    count = max((len(slot) - skip for slot in options), default=0)
    return [
        tuple(
            slot[skip + (row + place) % (len(slot) - skip)] if len(slot) > skip else slot[-1]
            for place, slot in enumerate(options)
        )
        for row in range(max(count, 0))
    ]


def _best_row(options: Sequence[Sequence[T]], missing: dict[Pair, None]) -> list[int]:
    """Start from the first missing pair; give each other slot the choice that meets most missing
    pairs.
    """
    a, x, b, y = next(iter(missing))
    row = {a: x, b: y}
    for slot, choices in enumerate(options):
        if slot in row:
            continue

        def gain(choice: int, slot: int = slot) -> int:
            return sum(_ordered(slot, choice, other, row[other]) in missing for other in row)

        row[slot] = max(range(len(choices)), key=gain)
    return [row[slot] for slot in range(len(options))]


def _ordered(a: int, x: int, b: int, y: int) -> Pair:
    return (a, x, b, y) if a < b else (b, y, a, x)


def _pairs(row: Sequence[int]) -> list[Pair]:
    return [(a, row[a], b, row[b]) for a, b in combinations(range(len(row)), 2)]
