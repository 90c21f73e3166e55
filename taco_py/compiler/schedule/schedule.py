"""Schedules: commands in order. They print, and are part of a kernel's identity.

reorder(i,k,j), parallelize(i,CPUThread,NoRaces)    commands of a user; the text parses back
loops(i,k,j), make(tiles,8)                         the first commands of a planned kernel
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile

from codegen.records import dataclass
from taco_py.compiler.schedule.commands import (
    Command,
    CompilerCommand,
    Distribute,
    Fission,
    LoopFuse,
    Make,
    MergeBy,
    Nest,
    Parallelize,
    Precompute,
    Reorder,
    Serial,
    Structural,
    Threads,
    Unroll,
    Vectorize,
)
from taco_py.compiler.schedule.parser import parse_commands
from taco_py.compiler.schedule.refused import refused
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.notation.nodes import Access
from taco_py.language.notation.tree import map_accesses
from taco_py.language.notebook.markup import table
from taco_py.language.provenance.relations import Bound, Pos, Relation


@dataclass(frozen=True, slots=True)
class Schedule:
    """Commands, applied in order, that determine how a kernel's loops run.

    >>> s = tp.Schedule.parse("reorder(i,k,j), parallelize(i)")
    >>> str(s)
    'reorder(i,k,j), parallelize(i,CPUThread,NoRaces)'
    >>> len(s.then(tp.Schedule.parse("vectorize(j)")).commands)
    3

    commands  of `tp.schedule`'s builder, or of a text by `parse`
    """

    commands: tuple[Command, ...] = ()

    def __post_init__(self) -> None:
        commands = self.commands
        if not isinstance(commands, tuple) or not all(isinstance(c, Command) for c in commands):
            raise ScheduleError(
                f"Expected a tuple of scheduling commands, found {commands!r}",
                hint='Schedule.parse reads text, as in Schedule.parse("reorder(i,k,j)")',
            )

    # ------------------------------------------------------------ of a planned kernel

    @classmethod
    def of_orders(cls, orders: Sequence[tuple[str, ...]]) -> Schedule:
        """Return a schedule with a loop order for each term: `loops(i,k,j), loops(i,j)`."""
        return cls(tuple(map(Nest, orders)))

    @property
    def orders(self) -> tuple[tuple[str, ...], ...]:
        """Return the loop order of each term."""
        return tuple(c.indices for c in self.commands if isinstance(c, Nest))

    @property
    def make(self) -> Make:
        """Return the way that the kernel is computed."""
        return next((c for c in self.commands if isinstance(c, Make)), _LOOPS)

    @property
    def threads(self) -> int | None:
        """Return the number of threads that run the kernel, None where its work decides."""
        return next((c.count for c in self.commands if isinstance(c, Threads)), None)

    @property
    def of_code(self) -> Schedule:
        """Return the commands that generated code depends on."""
        if self.threads is None:
            return self
        return Schedule(tuple(c for c in self.commands if not isinstance(c, Threads)))

    @property
    def compiler_commands(self) -> tuple[CompilerCommand, ...]:
        """Return the commands that only the planner writes."""
        return tuple(c for c in self.commands if isinstance(c, CompilerCommand))

    @property
    def on_loops(self) -> Schedule:
        """Return the commands on the loops: all but `loops(…)`, `make(…)`, `threads(…)`."""
        return Schedule(tuple(c for c in self.commands if not isinstance(c, CompilerCommand)))

    def with_way(self, make: Make) -> Schedule:
        """Return the schedule with the kernel computed in another way."""
        way = () if make == _LOOPS else (make,)
        team = tuple(c for c in self.commands if isinstance(c, Threads))
        nests = self.of_orders(self.orders).commands
        return Schedule((*nests, *way, *team, *self.on_loops.commands))

    # ------------------------------------------------------------ of any

    @property
    def parallel(self) -> str | None:
        """Return the variable whose loop is to be parallel, None where that is left open."""
        indices = [c.index for c in self.commands if isinstance(c, Parallelize)]
        return indices[-1] if indices else None

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """Return the promises about the ranges of variables."""
        return tuple(c for c in self.commands if isinstance(c, Bound))

    @property
    def workspaces(self) -> tuple[str, ...]:
        """Return the names of workspaces that the commands give."""
        names = (c.workspace for c in self.commands if isinstance(c, Precompute))
        return tuple(name for name in names if name)

    @property
    def serial(self) -> bool:
        """Tell whether all loops are to run on one thread."""
        return any(isinstance(c, Serial) for c in self.commands)

    @property
    def shapes(self) -> bool:
        """Tell whether a command determines the loops, not only the way they run."""
        return any(isinstance(c, _SHAPING) for c in self.commands)

    @property
    def merges(self) -> bool:
        """Tell whether a command determines how operands merge, which only some loop orders
        allow."""
        return any(isinstance(c, MergeBy) for c in self.commands)

    @property
    def marked(self) -> frozenset[str]:
        """Return the variables whose loops commands mark."""
        return frozenset(c.index for c in self.commands if isinstance(c, _MARKING))

    @property
    def sharing(self) -> Schedule:
        """Return the commands on the execution of loops."""
        return Schedule(tuple(c for c in self.on_loops.commands if not isinstance(c, _SHAPING)))

    @property
    def parted(self) -> tuple[Schedule, Schedule]:
        """Return the reorderings at its beginning, and the rest."""
        count = 0
        while count < len(self.commands) and isinstance(self.commands[count], Reorder):
            count += 1
        return Schedule(self.commands[:count]), Schedule(self.commands[count:])

    @property
    def distributed(self) -> tuple[tuple[Distribute, ...], Schedule]:
        """Return the terms that are multiplied out first, and the rest.

        Raises ScheduleError where another command on loops comes before one.
        """
        first = tuple(takewhile(_leaves_loops, self.commands))
        rest = self.commands[len(first) :]
        for command in rest:
            if isinstance(command, Distribute):
                raise refused(
                    command,
                    "other commands have been applied to the loops of its term",
                    "distribute comes first",
                )
        serial = tuple(c for c in first if not isinstance(c, Distribute))
        return tuple(c for c in first if isinstance(c, Distribute)), Schedule((*serial, *rest))

    def then(self, other: Schedule) -> Schedule:
        """Return these commands, followed by the commands of `other`."""
        return Schedule((*self.commands, *other.commands))

    def renamed(self, indices: Mapping[str, str], tensors: Mapping[str, str]) -> Schedule:
        """Rename the loops and the operands that commands refer to."""
        return Schedule(tuple(_renamed(c, indices, tensors) for c in self.commands))

    def reading(
        self, tensors: Mapping[str, str], accesses: Mapping[Access, str] | None = None
    ) -> Schedule:
        """Rename operands where copies of them are read.

        tensors   the name of the copy, by operand
        accesses  the accesses that read a copy, where others of the same tensor may not
        """
        return Schedule(tuple(_reading(c, tensors, accesses) for c in self.commands))

    @classmethod
    def parse(cls, text: str) -> Schedule:
        """Read commands from text: "reorder(i,k,j), parallelize(i)".

        text  commands with commas between them

        Raises ScheduleError with the place of a mistake.
        """
        if not isinstance(text, str):
            raise ScheduleError(
                f"Expected a schedule's text, found {text!r}", hint='as in "reorder(i,k,j)"'
            )
        return cls(parse_commands(text))

    def __str__(self) -> str:
        return ", ".join(map(str, self.commands))

    def _repr_html_(self) -> str:
        """Show the schedule in a notebook: a command on each line."""
        return table((str(place), command) for place, command in enumerate(self.commands, 1))


def _leaves_loops(command: Command) -> bool:
    return isinstance(command, Distribute | Serial)


def _reading(
    command: Command, tensors: Mapping[str, str], accesses: Mapping[Access, str] | None
) -> Command:
    def renamed(access: Access) -> Access:
        name = tensors.get(access.tensor) if accesses is None else accesses.get(access)
        return access if name is None else replace(access, tensor=name)

    match command:
        case Pos(tensor=tensor, indices=indices):
            name = tensors.get(tensor, tensor)
            if indices and accesses is not None:
                name = accesses.get(Access(tensor, indices), tensor)
            return replace(command, tensor=name)
        case Precompute(expression=expression) | Distribute(expression=expression):
            return replace(command, expression=map_accesses(expression, renamed))
    return command


_MARKING = Parallelize | Vectorize | Unroll | MergeBy


def _renamed(command: Command, indices: Mapping[str, str], tensors: Mapping[str, str]) -> Command:
    def renamed(access: Access) -> Access:
        return Access(tensors[access.tensor], tuple(indices[i] for i in access.indices))

    match command:
        case Precompute(expression, over, copies):
            return replace(
                command,
                expression=map_accesses(expression, renamed),
                indices=tuple(indices[i] for i in over),
                copies=tuple(indices[i] for i in copies),
            )
        case Nest(order):
            return Nest(tuple(indices[i] for i in order))
        case _ if isinstance(command, _MARKING | Fission | LoopFuse):
            return replace(command, index=indices[command.index])
    return command


_LOOPS = Make()
_SHAPING = Distribute | Reorder | Relation | Structural

OPEN = Schedule()
"""The schedule that leaves every choice open."""
