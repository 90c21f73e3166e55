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


REFUSALS: tuple[Refusal, ...] = ()
