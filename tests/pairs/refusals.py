"""The refusals that a user accepts, each with the kinds of features that meet and the reason."""

from __future__ import annotations

from typing import NamedTuple


class Refusal(NamedTuple):
    """kinds of features that a call has at least, a part of the message, and the reason"""

    kinds: frozenset[str]
    message: str
    reason: str


def _of(kinds: str, message: str, reason: str) -> Refusal:
    return Refusal(frozenset(filter(None, kinds.split(" & "))), message, reason)


REFUSALS: tuple[Refusal, ...] = (
    _of("out=", "Expected no out=, for the result is", "an array holds no sparse result"),
    _of("semiring & fill", "with a fill value that is the zero of", "what is absent is the zero"),
    _of(
        "semiring & type",
        "Expected operands that",
        "complex numbers have no order",
    ),
    _of("type & dtype=", "that can be cast to", "casting= allows it"),
    _of("type & out=", "that can be cast to", "casting= allows it"),
    _of("type & dtype=", "of a dtype that", "casting= allows it"),
    _of("schedule", "Expected a loop", "the text has no such loop"),
    _of("schedule", "Expected an index", "the text has no such index"),
    _of("schedule", "on which the sum over", "a reduction in an operator stays in its loops"),
    _of(
        "schedule & target",
        "no hash tables over several indices",
        "a GPU stores a sparse result in the order of its loops (docs/gpu.md)",
    ),
    _of("static", "Expected static sizes of the indices", "the text has no such index"),
    _of("verb", "that read their operands as they are stored", "files convert no operands"),
    _of("verb", "in a traced function, found it", "a graph chooses how values are computed"),
    _of("format=", "Expected no out=", "an array holds no sparse result"),
)
