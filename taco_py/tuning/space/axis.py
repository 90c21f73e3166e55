"""What a point of the space chooses at an axis: an edit of settings, or of a kernel's schedule.

    plan: libraries         called · none
    kernel y: share         as planned · serial() · parallelize(i,CPUThread,NoRaces) · …
    kernel y: inner loop    as planned · unroll(j,4) · …

Each option has a `kind`, its name without indices, by which what it is worth is learned.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from codegen.records import dataclass
from taco_py.compiler.schedule.commands import Command, Make, Threads

USUAL = "as planned"
"""The first option of each axis, which changes nothing."""
PLAN, KERNEL = "plan: ", "kernel "
"""What names of axes begin with."""


@dataclass(frozen=True, slots=True)
class Option:
    """What may be chosen at an axis.

    changes  fields of `CallOptions` with their values; sets and static sizes are added to others
    derive   commands that derive or order loops
    mark     commands on loops as they are then
    drops    kinds of planned commands that these take the place of
    make     the way that the kernel is made, None for the planned one
    threads  that run the kernel, None for as many as are planned
    words    that say it without its axis, where `schedule="measure"` tries it
    """

    name: str
    kind: str = ""
    changes: tuple[tuple[str, Any], ...] = ()
    derive: tuple[Command, ...] = ()
    mark: tuple[Command, ...] = ()
    drops: tuple[type, ...] = ()
    make: Make | None = None
    threads: Threads | None = None
    words: str = ""

    @property
    def feature(self) -> str:
        """Return the feature by which its worth is learned."""
        return self.kind or self.name


AS_PLANNED = Option(USUAL)


@dataclass(frozen=True, slots=True)
class Axis:
    """Options of which a point has one, the first where it does not say."""

    name: str
    options: tuple[Option, ...]

    def option(self, name: str) -> Option | None:
        """Return the option of a name."""
        return next((option for option in self.options if option.name == name), None)


Point = tuple[tuple[str, str], ...]
"""The names of axes with those of their options, sorted; usual options are left out."""


def point_of(choices: dict[str, str]) -> Point:
    """Return the point of choices by the names of axes."""
    return tuple(sorted((axis, name) for axis, name in choices.items() if name != USUAL))


NO_OPTIONS = "as auto plans it"
"""The label of the point whose options are all the usual ones."""


def label_of(point: Point, features: Iterable[str] = ()) -> str:
    """Return a point in words, with the features of its options.

    "kernel y: share = serial(); plan: libraries = none [serial + no libraries]"
    """
    words = "; ".join(f"{axis} = {name}" for axis, name in point)
    learned = " + ".join(features)
    return f"{words}{learned and f' [{learned}]'}" if words else NO_OPTIONS
