"""Scheduling commands as values, and their text form.

    reorder(i,k,j)     loops over these indices nest in this order
    parallelize(i)     share the iterations of loop i among threads
    serial()           share no loop

A schedule is a tuple of commands; it prints, parses back, and is part of a kernel's identity.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from taco_py.concrete.terms import Term, reductions, split_terms
from taco_py.diagnostics.errors import ScheduleError
from taco_py.diagnostics.source import Source, Span
from taco_py.notation.checks import accesses, free_indices
from taco_py.notation.nodes import Assignment


@dataclass(frozen=True, slots=True)
class Reorder:
    """Nest the loops over `indices` in this order, the first outermost."""

    indices: tuple[str, ...]

    def __str__(self) -> str:
        return f"reorder({','.join(self.indices)})"


@dataclass(frozen=True, slots=True)
class Parallelize:
    """Share the iterations of the loop over `index` among threads."""

    index: str

    def __str__(self) -> str:
        return f"parallelize({self.index})"


@dataclass(frozen=True, slots=True)
class Serial:
    """Use one thread."""

    def __str__(self) -> str:
        return "serial()"


Command = Reorder | Parallelize | Serial


@dataclass(frozen=True, slots=True)
class Schedule:
    """Commands, applied in order.

    >>> str(Schedule.parse("reorder(i,k,j), parallelize(i)"))
    'reorder(i,k,j), parallelize(i)'
    """

    commands: tuple[Command, ...] = ()

    def __post_init__(self) -> None:
        commands = self.commands
        if not isinstance(commands, tuple) or not all(isinstance(c, Command) for c in commands):
            raise ScheduleError(
                f"Expected a tuple of scheduling commands, found {commands!r}",
                hint='Schedule.parse reads text, as in Schedule.parse("reorder(i,k,j)")',
            )

    @property
    def reorders(self) -> tuple[Reorder, ...]:
        return tuple(c for c in self.commands if isinstance(c, Reorder))

    @property
    def parallel(self) -> str | None:
        """The index whose loop is to be parallel, None where that is left open."""
        wanted = [c.index for c in self.commands if isinstance(c, Parallelize)]
        return wanted[-1] if wanted else None

    @property
    def serial(self) -> bool:
        return any(isinstance(c, Serial) for c in self.commands)

    @property
    def sharing(self) -> Schedule:
        """The commands that say which loop threads share, without those that order loops."""
        return Schedule(tuple(c for c in self.commands if not isinstance(c, Reorder)))

    @classmethod
    def parse(cls, text: str) -> Schedule:
        """`"reorder(i,k,j), parallelize(i)"`. Raises ScheduleError with the place of a mistake."""
        if not isinstance(text, str):
            raise ScheduleError(
                f"Expected a schedule's text, found {text!r}", hint='as in "reorder(i,k,j)"'
            )
        source = Source(text, "schedule")
        commands: list[Command] = []
        place = 0
        while text[place:].strip():
            match = _COMMAND.match(text, place)
            if match is None:
                raise ScheduleError(
                    "Expected a command such as reorder(i,j), found something else",
                    Span(source, place, len(text)),
                    f"the commands are {', '.join(_ARGUMENTS)}, with commas between them",
                )
            commands.append(_command(match, source))
            place = match.end()
        return cls(tuple(commands))

    def __str__(self) -> str:
        return ", ".join(map(str, self.commands))


OPEN = Schedule()
"""The schedule that leaves everything to be chosen."""

_COMMAND = re.compile(r"\s*(?P<name>\w+)\s*\((?P<arguments>[^()]*)\)\s*(?:,|$)")
_ARGUMENTS = {
    "reorder": "two or more different indices",
    "parallelize": "one index",
    "serial": "nothing",
}


def _command(match: re.Match[str], source: Source) -> Command:
    name = match["name"]
    arguments = tuple(a.strip() for a in match["arguments"].split(",") if a.strip())
    if name == "reorder" and len(set(arguments)) == len(arguments) > 1:
        return Reorder(arguments)
    if name == "parallelize" and len(arguments) == 1:
        return Parallelize(arguments[0])
    if name == "serial" and not arguments:
        return Serial()
    span = Span(source, match.start("name"), match.end("arguments") + 1)
    if name not in _ARGUMENTS:
        raise ScheduleError(
            f"Expected a scheduling command, found {name!r}",
            span,
            f"the commands are {', '.join(_ARGUMENTS)}",
        )
    found = ", ".join(arguments) or "nothing"
    raise ScheduleError(f"Expected {_ARGUMENTS[name]} for {name}, found {found}", span)


def orders_of(schedule: Schedule, assignment: Assignment) -> tuple[tuple[str, ...], ...]:
    """The loop order of each term: its indices as they first occur, rearranged by each `reorder`.

    A `reorder` concerns the terms that have all its indices. Raises ScheduleError if there is none.
    """
    terms = split_terms(assignment.value)
    orders = []
    used: set[Reorder] = set()
    for term in terms:
        inside = (i for a in accesses(term.body) for i in a.indices)
        order = tuple(dict.fromkeys((*assignment.target.indices, *inside)))
        for command in schedule.reorders:
            if set(command.indices) <= set(order):
                order = _rearranged(order, command.indices)
                used.add(command)
        orders.append(order)
        _check_inner_sums(term, order)
    for command in schedule.reorders:
        if command not in used:
            raise ScheduleError(
                f"Expected indices that one term of the assignment has, found {command}",
                hint="each reorder names loops of one nest",
            )
    return tuple(orders)


def _check_inner_sums(term: Term, order: tuple[str, ...]) -> None:
    """Raise ScheduleError where an inner sum's loop is not below those that the sum depends on."""
    for inner in reductions(term.body):
        place = order.index(inner.index) if inner.index in order else len(order)
        late = [i for i in free_indices(inner) if order.index(i) > place]
        if late:
            raise ScheduleError(
                f"Expected the loop over {inner.index} inside the one over {late[0]}, on which the "
                f"sum over {inner.index} depends, found the order {','.join(order)}",
                hint="an inner sum's own loops come after all others",
            )


def _rearranged(order: tuple[str, ...], wanted: tuple[str, ...]) -> tuple[str, ...]:
    supply = iter(wanted)
    return tuple(next(supply) if i in wanted else i for i in order)
