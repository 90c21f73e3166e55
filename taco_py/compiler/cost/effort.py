"""How long loop orders may be searched for, what is known already, and what was cut short.

A plan asks for the best order of the same loops many times, while it compares ways to split an
assignment; each search is made once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import field
from math import inf
from time import monotonic
from typing import TypeVar

from codegen.records import dataclass

T = TypeVar("T")


@dataclass(slots=True)
class Effort:
    """The searches of one plan.

    seconds  that they may take together; each finds something even when none are left
    rows     whether kernels may look up rows of operands that they would merge
    clock    tells the time in seconds
    results  what was found, by what was asked
    near     for many loops the order near which the best was found last
    cuts     what ran out after what: "of search nodes ran out after 120 of 5040 orders of i,j,k,l"
    parts    what searches were limited to from the beginning
    """

    seconds: float | None = None
    rows: bool = True
    clock: Callable[[], float] = monotonic
    results: dict[Hashable, object] = field(default_factory=dict)
    near: dict[Hashable, tuple[str, ...]] = field(default_factory=dict)
    cuts: list[str] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    end: float = field(init=False)

    def __post_init__(self) -> None:
        self.end = inf if self.seconds is None else self.clock() + self.seconds

    @property
    def over(self) -> bool:
        """Tell whether no time is left."""
        return self.seconds is not None and self.clock() >= self.end

    @property
    def left(self) -> float:
        """Return the seconds that are left."""
        return inf if self.seconds is None else max(0.0, self.end - self.clock())

    def recall(self, key: Hashable, find: Callable[[], T]) -> T:
        """Return the cached result of `find`, which is called one time for each key."""
        full_key = self.rows, key
        if full_key not in self.results:
            self.results[full_key] = find()
        result: T = self.results[full_key]  # type: ignore[assignment]
        return result

    def cut(self, after: str) -> None:
        """Note that a search ended early: the time ran out, or else the nodes that it may visit."""
        limit = f"of {self.seconds:g} s" if self.over else "of search nodes"
        self.cuts.append(f"{limit} ran out {after}")

    @property
    def notes(self) -> tuple[str, ...]:
        """Describe the searches that ended early or omitted candidates, for explain()."""
        return tuple(dict.fromkeys((*self.cuts, *self.parts)))
