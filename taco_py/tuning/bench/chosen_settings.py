"""CallOptions of a call whose plan is timed on its operands, looked up in the store, or
chosen by a learned price."""

from __future__ import annotations

from taco_py.arguments.options import CallOptions
from taco_py.calls.call.computation import Computation


def resolve_settings(computation: Computation) -> tuple[CallOptions, str]:
    """Return the options that a call is carried out with, and the lines of explain() on their
    origin."""
    if computation.options.measure:
        from taco_py.tuning.bench.measured_schedule import lines_of, measured

        times = measured(computation)
        return times.settings, "\n".join(lines_of(times)) + "\n"
    if computation.options.tuned:
        from taco_py.tuning.bench.tuned_schedule import resolved

        plan = resolved(computation)
        return plan.settings, "\n".join(plan.lines) + "\n"
    if computation.options.is_priced:
        from taco_py.tuning.bench.priced_schedule import priced

        plan = priced(computation)
        return plan.settings, "\n".join(plan.lines) + "\n"
    return computation.options, ""
