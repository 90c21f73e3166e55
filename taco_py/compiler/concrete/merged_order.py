"""One order for the loops of a statement and the loops that fill a workspace for it."""

from __future__ import annotations

from collections.abc import Sequence


def merge_orders(makes: Sequence[str], reads: Sequence[str]) -> tuple[str, ...] | None:
    """Merge two loop orders to one that contains both in order; None where they disagree.

    Loops of the first come before others.

    >>> merge_orders("ijk", "ik"), merge_orders("ijk", "ki") (('i', 'j', 'k'), None)
    """
    if not makes or not reads:
        return (*makes, *reads)
    if makes[0] == reads[0]:
        first, rest = makes[0], merge_orders(makes[1:], reads[1:])
    elif makes[0] not in reads:
        first, rest = makes[0], merge_orders(makes[1:], reads)
    elif reads[0] not in makes:
        first, rest = reads[0], merge_orders(makes, reads[1:])
    else:
        return None
    return None if rest is None else (first, *rest)
