"""A computation over the user's operands as one over operands that are made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from codegen.records import dataclass
from taco_py.calls.call.computation import Computation
from taco_py.running.replay.find import ShortCall

Key = tuple[object, ...] | None
"""The key under which the fast path of calls is remembered, None for nowhere."""


@dataclass(frozen=True, slots=True, eq=False)
class Converted:
    """A computation over operands that are made of the user's.

    key        of calls like it
    fast_path  computes calls like the user's by the fast path of calls like it
    finished   makes the user's result of its result; None where that does not fit `out`
    lines      of explain() about the operands
    """

    computation: Computation
    key: Key
    fast_path: ShortCall
    finished: Callable[[Any], Any]
    lines: Callable[[], Sequence[str]]


def labelled(label: str, notes: Iterable[str]) -> list[str]:
    """Return lines of explain() behind their label, which stands in the first of them."""
    return [f"{'' if place else label:10}{note}\n" for place, note in enumerate(notes)]
