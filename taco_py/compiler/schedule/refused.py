"""The error of a command that cannot be applied."""

from __future__ import annotations

from taco_py.language.diagnostics.errors import ScheduleError


def refused(command: object, reason: str, hint: str | None = None) -> ScheduleError:
    """Return the error of `command`, the precondition that failed, and the remedy."""
    return ScheduleError(f"{command} cannot be applied: {reason}", hint=hint)
