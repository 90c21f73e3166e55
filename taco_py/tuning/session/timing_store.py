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
from taco_py.data.kept_calibration import calibration_identity
from taco_py.data.kernels import KERNELS


@dataclass(frozen=True, slots=True)
class TimedChoice:
    """A choice by its name, with the seconds that it took, or why it was not timed."""

    label: str
    seconds: float | None
    reason: str = ""


Times = tuple[str, tuple[TimedChoice, ...]]
"""The name of the choice that was taken, and all that were looked at."""


def note_key(identity: object, operands: Mapping[str, BoundOperand]) -> str:
    """Return the key that times are kept under.

    identity  what tells calls apart already
    """
    machine = f"{KERNELS.cores} {_fullness(operands)!r}{calibration_identity()}"
    return f"measured {identity!r} {machine}"


def _fullness(operands: Mapping[str, BoundOperand]) -> list[tuple[str, list[int]]]:
    """Count, for each mode of a sparse operand, the entries of its fullest coordinate, in bits."""
    fullness = []
    for name, operand in operands.items():
        entries = operand.operand.entries
        modes = range(len(operand.data.shape)) if entries is not None else ()
        counted = [mode for mode in modes if entries is not None and entries.has_counts(mode)]
        most = [entries.spread(mode).most.bit_length() for mode in counted if entries is not None]
        fullness.append((name, most))
    return fullness


def recalled(key: str, labels: Collection[str]) -> Times | None:
    """Return the times of an earlier process; None where it took no plan with one of the labels."""
    times = _parsed(KERNELS.note(key))
    return times if times is not None and times[0] in labels else None


def keep(key: str, selected: str, choices: Sequence[TimedChoice]) -> None:
    """Store the times."""
    rows = [[choice.label, choice.seconds, choice.reason] for choice in choices]
    KERNELS.write_note(key, json.dumps({"taken": selected, "tried": rows}))


def _parsed(note: str | None) -> Times | None:
    """Return the times of a note; None where it is no such note."""
    if note is None:
        return None
    try:
        content = json.loads(note)
        return str(content["taken"]), tuple(_choice_of(row) for row in content["tried"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _choice_of(row: Any) -> TimedChoice:
    label, seconds, reason = row
    return TimedChoice(str(label), None if seconds is None else float(seconds), str(reason))
