"""CallOptions of a call whose plan is timed on its operands, or looked up in the store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taco_py.arguments.options import CallOptions
from taco_py.language.notation.einsum import Squeezed
from taco_py.language.notation.nodes import Assignment


def chosen(
    assignment: Assignment, objects: Mapping[str, Any], settings: CallOptions, squeezed: Squeezed
) -> tuple[CallOptions, str]:
    """Return the settings that a call is carried out with, and what explain() says of how they
    came."""
    if settings.measure:
        from taco_py.tuning.bench.measured_schedule import lines_of, measured

        times = measured(assignment, objects, settings, squeezed)
        return times.settings, "\n".join(lines_of(times)) + "\n"
    if settings.tuned:
        from taco_py.tuning.bench.tuned_schedule import resolved

        plan = resolved(assignment, objects, settings, squeezed)
        return plan.settings, "\n".join(plan.told) + "\n"
    return settings, ""
