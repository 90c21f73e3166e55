"""A computation over the user's objects: checks, plan, run, results handed out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from taco_py.arguments.call_arguments import CallArguments
from taco_py.arguments.device_tensor import place_of
from taco_py.calls.call.computation import Computation
from taco_py.calls.call.fast_paths import remember, remember_on_device
from taco_py.calls.call.outputs import hand_out_results, placed_outs, run_outputs, writable_out
from taco_py.calls.call.plan_choice import PLAN_CHOICE
from taco_py.calls.call.prepare import note_fit, prepare_within, start
from taco_py.calls.call.views import shared_look
from taco_py.data.storage.tensor_data import Array
from taco_py.language.diagnostics.cautions import issue_warnings
from taco_py.language.notation.nodes import Assignment
from taco_py.running.replay.call_watch import WATCH
from taco_py.running.replay.helpers import Helper
from taco_py.running.replay.make_call import remember_shown


def compute_one(
    assignment: Assignment, call: CallArguments, watched: bool = True, **more: Any
) -> Any:
    """Plan and run an assignment over numbers, whose sums are explicit.

    more  fields of the `Computation`
    """
    return compute(Computation.of_one(assignment, call, **more), call.key, watched)


def compute(
    computation: Computation, key: tuple[object, ...] | None = None, watched: bool = True
) -> Any:
    """Plan and run statements; return the one output, or a tuple of those asked for.

    key      under which to remember the fast path of calls like this one
    watched  whether those who watch calls are told of it
    """
    objects, options, requested = computation.objects, computation.options, computation.requested
    issue_warnings(computation.cautions)
    if watched and WATCH.watchers:
        WATCH.tell(computation.last, objects, options, _watched(computation))
    place = place_of(objects.values()) if computation.place is None else computation.place
    look = _look(computation, place)
    if look is not None:
        if key is not None:
            remember_shown(key, look)
        return look.function()(*objects.values())
    accumulator_arrays = accumulators(computation)
    computation = replace(computation, objects={**accumulator_arrays, **objects}, place=place)
    stored = not (options.tuned or options.is_priced)  # later processes choose again
    computation, _ = with_chosen_plan(computation)
    options = computation.options
    prepared, usual = prepare_within(computation)
    key = key if usual else None
    out = writable_out(prepared, requested, options)
    execution = start(prepared, options, out, placed_outs(prepared, requested))
    results = run_outputs(prepared, execution, requested.outs)
    note_fit(key, execution, computation.objects)
    if key is not None and not execution.wide:
        if place and not requested.outs:
            remember_on_device(key, computation, prepared)
        elif options.is_native:
            remember(key, computation, prepared, execution, accumulator_arrays, stored)
    return hand_out_results(results, prepared, requested, computation.axes, place)


def with_chosen_plan(computation: Computation) -> tuple[Computation, str]:
    """Return a computation with a timed or tuned plan where requested, and explain()'s lines."""
    options, lines = PLAN_CHOICE.options(computation)
    return computation.with_options(options), lines


def _look(computation: Computation, place: str) -> Helper | None:
    """Return the function that shows an operand as the result, None where it must be computed."""
    is_modified = computation.outs or computation.axes or computation.squeezed or place
    if is_modified or not computation.is_single or not computation.requested.alone:
        return None
    return shared_look(computation.last, computation.objects, computation.options)


def _watched(computation: Computation) -> dict[str, Any]:
    """Return the further facts for watchers of calls, besides text, operands and options."""
    if not computation.is_single or computation.options.outputs is not None:
        return {"several": True}
    return {"squeezed": computation.squeezed, "out": next(iter(computation.outs.values()), None)}


def accumulators(computation: Computation) -> dict[str, Array]:
    """Return the arrays for results that are operands too: `y += value` into y, which is not
    passed."""
    first: dict[str, Assignment] = {}
    for assignment in computation.assignments:
        first.setdefault(assignment.target.tensor, assignment)
    return {
        name: out
        for name, out in computation.outs.items()
        if name not in computation.objects and first[name].operator is not None
    }
