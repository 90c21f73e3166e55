"""What was found by timing, kept beside the kernels for later processes.

    (assignment, formats and dtypes, sizes and numbers of entries as numbers of bits, how full rows
    are, threads, and what kernels depend on: this version, the compiler, the processor)
    → {"taken": "in one kernel", "tried": [["in one kernel", 0.0012, ""], …]}

A note is written in one piece, and what cannot be read as one is as if it were not there; it goes
with the kernels when these are cleared, or are too many. (`codegen.toolchain.store`.)
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from codegen.records import dataclass
from taco_py.arguments.operands import BoundOperand
from taco_py.data.kernels import KERNELS


@dataclass(frozen=True, slots=True)
class Tried:
    """A choice by its name, with the seconds that it took, or why it was not timed."""

    label: str
    seconds: float | None
    why: str = ""


Times = tuple[str, tuple[Tried, ...]]
"""The name of the choice that was taken, and all that were looked at."""


def note_key(told: object, given: Mapping[str, BoundOperand]) -> str:
    """Return the key that times are kept under.

    told  what tells calls apart already
    """
    return f"measured {told!r} {KERNELS.cores} {_fullness(given)!r}"


def _fullness(given: Mapping[str, BoundOperand]) -> list[tuple[str, list[int]]]:
    """Count, for each mode of a sparse operand, the entries of its fullest coordinate, in bits."""
    found = []
    for name, operand in given.items():
        entries = operand.operand.entries
        modes = range(len(operand.data.shape)) if entries is not None else ()
        known = [mode for mode in modes if entries is not None and entries.has_counts(mode)]
        most = [entries.spread(mode).most.bit_length() for mode in known if entries is not None]
        found.append((name, most))
    return found


def recalled(key: str, labels: Collection[str]) -> Times | None:
    """Return the times of an earlier process; None where it took no plan with one of the labels."""
    times = _parsed(KERNELS.note(key))
    return times if times is not None and times[0] in labels else None


def keep(key: str, taken: str, tried: Sequence[Tried]) -> None:
    """Store the times."""
    rows = [[each.label, each.seconds, each.why] for each in tried]
    KERNELS.write_note(key, json.dumps({"taken": taken, "tried": rows}))


def _parsed(note: str | None) -> Times | None:
    """Return the times of a note; None where it is no such note."""
    if note is None:
        return None
    try:
        whole = json.loads(note)
        return str(whole["taken"]), tuple(_tried(row) for row in whole["tried"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _tried(row: Any) -> Tried:
    label, seconds, why = row
    return Tried(str(label), None if seconds is None else float(seconds), str(why))
