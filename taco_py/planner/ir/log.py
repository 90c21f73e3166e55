"""What the search for a program has taken and refused, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import field

from codegen.records import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """One rule at one site.

    rule    its name
    target  the tensor whose assignment it rewrites
    accepted   whether the program was rewritten
    reason     what the rule did, or the precondition that failed
    before, after   steps that both programs are expected to take; None where the rule asks for none
    """

    rule: str
    target: str
    accepted: bool
    reason: str = ""
    before: float | None = None
    after: float | None = None

    def __str__(self) -> str:
        prices = ""
        if self.before is not None and self.after is not None:
            prices = f"{self.before:.2g} → {self.after:.2g}, "
        verdict = "taken" if self.accepted else "refused"
        return (
            f"{self.rule:20} {self.target}: {prices}{verdict}{self.reason and ': ' + self.reason}"
        )


Decision = tuple[str, str, int]
"""A rule, a tensor that is assigned to, and the number among the decisions about both, from 0."""


@dataclass(slots=True)
class Log:
    """Entries in the order in which rules were tried.

    decisions  the entry of each comparison of prices
    """

    entries: list[Entry] = field(default_factory=list)
    decisions: dict[Decision, Entry] = field(default_factory=dict)
    _entries: set[Entry] = field(init=False, default_factory=set, compare=False, repr=False)
    _decided: Counter[tuple[str, str]] = field(
        init=False, default_factory=Counter, compare=False, repr=False
    )

    def next_decision(self, rule: str, target: str) -> Decision:
        """Return the next decision about a rule and a tensor."""
        return rule, target, self._decided[rule, target]

    def decide(self, decision: Decision, entry: Entry) -> None:
        """Append the entry of a comparison of prices."""
        self.decisions[decision] = entry
        rule, target, number = decision
        self._decided[rule, target] = number + 1
        self.add(entry)

    def add(self, entry: Entry) -> None:
        """Append an entry unless the same one is there."""
        if entry not in self._entries:
            self._entries.add(entry)
            self.entries.append(entry)

    def of(self, rule: str, accepted: bool = True) -> Iterator[Entry]:
        """Yield the entries of one rule."""
        return (
            entry for entry in self.entries if entry.rule == rule and entry.accepted is accepted
        )
