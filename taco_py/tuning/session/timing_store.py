"""What was found by timing, kept beside the kernels for later processes.

    (assignment, formats and dtypes, sizes and numbers of entries as numbers of bits, how full rows
    are, threads, and what kernels depend on: this version, the compiler, the processor)
    → {"taken": "in one kernel", "tried": [["in one kernel", 0.0012, ""], …], "facts": [53, …]}

Operands of one key may differ by a factor of two in each of their sizes. `facts` are those of the
operands that were timed, in quarters of bits, so that a choice is known to be for others.

A note is written in one piece, and what cannot be read as one is as if it were not there; it goes
with the kernels when these are cleared, or are too many. (`codegen.toolchain.store`.)
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from math import log2
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


PARTS = 4
"""Parts of a bit by which facts of operands are told apart."""


@dataclass(frozen=True, slots=True)
class NotedTimes:
    """The times of some operands: the fastest choice, all choices, and the operands' facts."""

    label: str
    timings: tuple[TimedChoice, ...]
    facts: tuple[int, ...]

    def are_of(self, facts: Sequence[int]) -> bool:
        """Tell whether they are of operands with these facts, or with neighbours of them."""
        pairs = zip(self.facts, facts, strict=False)
        return len(facts) == len(self.facts) and all(abs(a - b) <= 1 for a, b in pairs)


def facts_of(operands: Mapping[str, BoundOperand]) -> tuple[int, ...]:
    """Return sizes, numbers of entries, and the entries of rows, in parts of bits."""
    numbers = list[float]()
    for operand in operands.values():
        numbers += [*operand.data.shape, operand.data.nnz]
        entries = operand.operand.entries
        modes = range(len(operand.data.shape)) if entries is not None else ()
        for mode in modes:
            if entries is not None and entries.has_counts(mode):
                spread = entries.spread(mode)
                numbers += [spread.distinct, spread.most, spread.square]
    return tuple(round(PARTS * log2(1.0 + number)) for number in numbers)


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


def recalled(key: str, labels: Collection[str]) -> NotedTimes | None:
    """Return the times of an earlier process; None where it took no plan with one of the labels."""
    times = _parsed(KERNELS.note(key))
    return times if times is not None and times.label in labels else None


def keep(key: str, selected: str, choices: Sequence[TimedChoice], facts: Sequence[int]) -> None:
    """Store the times of operands with these facts."""
    rows = [[choice.label, choice.seconds, choice.reason] for choice in choices]
    content = {"taken": selected, "tried": rows, "facts": [*facts]}
    KERNELS.write_note(key, json.dumps(content))


def _parsed(note: str | None) -> NotedTimes | None:
    """Return the times of a note; None where it is no such note."""
    if note is None:
        return None
    try:
        content = json.loads(note)
        timings = tuple(_choice_of(row) for row in content["tried"])
        facts = tuple(int(fact) for fact in content["facts"])
        return NotedTimes(str(content["taken"]), timings, facts)
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _choice_of(row: Any) -> TimedChoice:
    label, seconds, reason = row
    return TimedChoice(str(label), None if seconds is None else float(seconds), str(reason))
