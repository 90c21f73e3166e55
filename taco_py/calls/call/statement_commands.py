"""Schedules and contraction orders that a call has for its statements, by the names they assign.

schedule={"t": "reorder(i,j)"}, path={"y": [(1, 2), (0, 1)]}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from taco_py.arguments.options import CallOptions
from taco_py.calls.call.contraction_path import with_checked_path
from taco_py.calls.statements.sequence import Statements
from taco_py.language.diagnostics.errors import NotationError, ScheduleError
from taco_py.language.diagnostics.suggest import with_suggestion
from taco_py.language.notation.nodes import Assignment
from taco_py.planner.statements import StatementCommands


def with_commands_of_one(options: CallOptions, assignment: Assignment) -> CallOptions:
    """Return the options of a call of one statement, with its contraction order checked.

    Raises ScheduleError or NotationError for commands of another name.
    """
    return with_checked_path(with_named_commands(options, assignment), assignment)


def with_named_commands(options: CallOptions, assignment: Assignment) -> CallOptions:
    """Return the options of a call of one statement, with commands by name as plain options.

    Raises ScheduleError or NotationError for commands of another name.
    """
    if not (options.schedules or options.paths):
        return options
    name = assignment.target.tensor
    _check_names(options, (name,))
    return replace(
        options,
        schedule=dict(options.schedules).get(name, options.schedule),
        path=dict(options.paths).get(name, options.path),
        schedules=(),
        paths=(),
    )


def commands_of(
    options: CallOptions, statements: Statements, assignments: Mapping[str, Assignment]
) -> dict[str, StatementCommands]:
    """Return the commands for statements by their targets; of a name assigned twice, the last.

    assignments  those that are planned, by target

    Raises ScheduleError or NotationError for commands of no statement, or of none by name.
    """
    _check_by_name(options)
    targets = {name: target for target, name in statements.names.items()}
    _check_names(options, tuple(targets))
    schedules, paths = dict(options.schedules), dict(options.paths)
    commands = {}
    for name, target in targets.items():
        if name in schedules or name in paths:
            checked = with_checked_path(replace(options, path=paths.get(name)), assignments[target])
            commands[target] = StatementCommands(schedules.get(name), checked.path)
    return commands


def _check_by_name(options: CallOptions) -> None:
    """Raise where a call has one schedule, or one contraction order, for several statements."""
    if options.schedule is not None:
        raise ScheduleError(
            "Expected schedules by name for several statements, each of which has loops of its "
            "own, found one for all of them",
            hint='as in schedule={"y": "reorder(i,j)"}; "measure" and "tuned" are for all',
        )
    if options.path is not None:
        raise NotationError(
            "Expected paths by name for several statements, found one for all of them",
            hint='as in path={"y": [(0, 1), (0, 1)]}',
        )


def _check_names(options: CallOptions, names: tuple[str, ...]) -> None:
    """Raise where commands are for a name that no statement that is computed assigns."""
    for option, error in (("schedule", ScheduleError), ("path", NotationError)):
        for name, _ in options.schedules if option == "schedule" else options.paths:
            if name not in names:
                raise error(
                    f"Expected {option}= of {', '.join(names)}, found one of {name}",
                    hint=with_suggestion("leave it out", str(name), names),
                )
