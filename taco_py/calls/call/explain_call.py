"""Where the schedule that a call has chosen stands among all others, for `explain`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from taco_py.arguments.call_arguments import CallArguments
from taco_py.arguments.options import CallOptions
from taco_py.calls.call.compute import planned_text, told_view
from taco_py.calls.call.libraries import libraries_of
from taco_py.calls.call.planner_request import open_goal
from taco_py.calls.call.prepare import prepare
from taco_py.calls.call.views import shared_look
from taco_py.language.notation.einsum import Squeezed
from taco_py.language.notation.half_types import computed_dtype
from taco_py.language.notation.nodes import Assignment
from taco_py.language.problem import TensorType

SECONDS = 1.0
"""What explain() searches for where nobody says how long."""


def explained(
    assignment: Assignment,
    call: CallArguments,
    seconds: float | None = None,
    squeezed: Squeezed = (),
) -> str:
    """What is planned, and where it stands."""
    objects, options = call.objects, call.options
    if not squeezed and shared_look(assignment, objects, options) is not None:
        return told_view(assignment)
    told = planned_text(assignment, objects, options, squeezed)
    return "\n".join(
        filter(None, (told, standing(assignment, objects, options, seconds, squeezed)))
    )


def standing(
    assignment: Assignment,
    objects: Mapping[str, Any],
    options: CallOptions,
    seconds: float | None = None,
    squeezed: Squeezed = (),
) -> str:
    """Return candidates → after the depth filter → after domination → chosen; "" where the user
    chose, or where there is no time for it.

    seconds  for this search; None for as many as the plan had, or SECONDS
    """
    from taco_py.report.explanation.standing import report

    chosen = options.schedule is not None and options.schedule.shapes
    if seconds is None:
        seconds = SECONDS if options.schedule_budget is None else options.schedule_budget
    if chosen or options.chosen_by_data or seconds == 0:
        return ""
    prepared = prepare(assignment, objects, options, squeezed)
    operands = {name: given.operand for name, given in prepared.given.items()}
    type = TensorType(prepared.kind.format, computed_dtype(prepared.dtype).name)
    request = replace(open_goal(options, type), libraries=libraries_of(options))
    return report(prepared.assignment, operands, request, prepared.plan, seconds)
