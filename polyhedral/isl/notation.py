"""A nest in ISL's notation."""

from __future__ import annotations

from collections.abc import Mapping

from codegen.records import dataclass
from polyhedral.affine import Affine
from polyhedral.band_schedule import Row, Schedule
from polyhedral.model import Nest, Statement


@dataclass(frozen=True, slots=True)
class Notation:
    """The names of a nest in ISL's notation."""

    nest: Nest

    @property
    def header(self) -> str:
        """Return `[p0, p1] -> `; nothing without parameters.

        ISL may parse `[] ->` as the tuple of a space.
        """
        parameters = ", ".join(self._parameters().values())
        return f"[{parameters}] -> " if parameters else ""

    def instance(self, statement: Statement, letter: str) -> str:
        """Return an instance as text: `S0[i0, i1]`."""
        position = [other.name for other in self.nest.statements].index(statement.name)
        return f"S{position}[{', '.join(self.loops(statement, letter).values())}]"

    def loops(self, statement: Statement, letter: str) -> dict[str, str]:
        return {name: f"{letter}{place}" for place, name in enumerate(statement.variables)}

    def value(self, value: Affine, statement: Statement, letter: str) -> str:
        names = {**self._parameters(), **self.loops(statement, letter)}
        return _sum(value, names)

    def row(self, row: Row, statement: Statement, letter: str) -> str:
        parts = [(self.value(value, statement, letter), size) for value, size in row.quotients]
        return " + ".join(
            value if size == 1 else f"floor(({value})/{size})" for value, size in parts
        )

    def domain(self, statement: Statement, letter: str) -> str:
        """Return the condition under which an instance runs."""
        parts = []
        for loop in statement.loops:
            name = self.loops(statement, letter)[loop.name]
            parts += [f"{self.value(b, statement, letter)} <= {name}" for b in loop.lower]
            parts += [f"{name} < {self.value(b, statement, letter)}" for b in loop.upper]
        parts += [f"{self.value(guard, statement, letter)} >= 0" for guard in statement.guards]
        return " and ".join([*parts, *self.context_conditions()]) or "true"

    @property
    def domains(self) -> str:
        """Return the instances of all statements that run, as the text of a union of sets."""
        parts = (
            f"{self.instance(statement, 'i')} : {self.domain(statement, 'i')}"
            for statement in self.nest.statements
        )
        return f"{self.header}{{ {'; '.join(parts)} }}"

    def context_conditions(self) -> list[str]:
        """Return the conditions on the parameters."""
        names = self._parameters()
        return [f"{_sum(condition, names)} >= 0" for condition in self.nest.context]

    def _parameters(self) -> dict[str, str]:
        return {name: f"p{place}" for place, name in enumerate(self.nest.parameters)}


def _sum(value: Affine, names: Mapping[str, str]) -> str:
    terms = [f"{factor}*{names[name]}" for name, factor in value.terms]
    return " + ".join([*terms, str(value.constant)])


def schedule_map(names: Notation, schedule: Schedule) -> str:
    parts = [
        f"{names.instance(statement, 'i')} -> [{', '.join(rows)}]"
        for statement in names.nest.statements
        for rows in [[names.row(row, statement, "i") for row in schedule.of(statement.name)]]
    ]
    return f"{names.header}{{ {'; '.join(parts)} }}"
