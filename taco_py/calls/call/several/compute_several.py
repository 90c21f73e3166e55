"""Several statements over the user's objects: checks, plan, run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from taco_py.arguments.device_tensor import place_of
from taco_py.arguments.options import CallOptions
from taco_py.arguments.results import hand_out
from taco_py.calls.call.compute import check_out, remember
from taco_py.calls.call.prepare import Prepared, prepare_statements, start
from taco_py.calls.call.several.requested_outputs import RequestedOutputs
from taco_py.calls.statements.read_text import Understood
from taco_py.data.kernels import KERNELS
from taco_py.data.storage.tensor_data import Array, on_host
from taco_py.language.diagnostics.cautions import issue_warnings
from taco_py.language.diagnostics.errors import OutputError
from taco_py.running.execute.run import run_all
from taco_py.running.replay.call_watch import WATCH
from taco_py.running.replay.find import no_short_way
from taco_py.running.replay.make_call import compiled_kernels
from taco_py.running.replay.state import Task, Wanted


def compute_several(
    read: Sequence[Understood],
    objects: Mapping[str, Any],
    options: CallOptions,
    asked: RequestedOutputs,
    key: tuple[object, ...] | None = None,
) -> Any:
    """Plan and run statements; the result of the one output, or a tuple of those asked for.

    key  under which to remember the short way for calls like this one
    """
    cautions = tuple(caution for each in read for caution in each.cautions)
    issue_warnings(cautions)
    if WATCH.watchers:
        WATCH.tell(read[-1].assignment, objects, options, {"several": True})
    begun = _begun(read, objects, asked.outs)
    objects = {**objects, **begun}
    prepared = prepare_statements(
        [each.assignment for each in read],
        objects,
        options,
        asked.outputs,
        asked.formats,
    )
    for name, array in asked.outs.items():
        _check_out(array, prepared, name, options)
    check_outs_apart(asked.outs)
    execution = start(prepared, options, None)
    made = run_all(prepared.plan, execution)
    if key is not None and KERNELS.memo.get(key) in (None, no_short_way):
        task = None if execution.wide else task_of(prepared, objects, asked, begun)
        if task is not None:
            remember(key, task, options, execution.threads, cautions)
    found: list[Any] = []
    place = place_of(objects.values())
    for name, target in prepared.checked.statements.outputs.items():
        data, out = made[target], asked.outs.get(name)
        if out is not None:
            np.copyto(out, on_host(data).values, casting="unsafe")
            found.append(out)
        else:
            found.append(hand_out(data, prepared.kinds[target], place))
    return found[0] if asked.alone else tuple(found)


def _begun(
    read: Sequence[Understood], objects: Mapping[str, Any], outs: Mapping[str, Array]
) -> dict[str, Array]:
    """Return the operands that begin as arrays for results: `y += value`, where y is no operand."""
    first: dict[str, Understood] = {}
    for each in read:
        first.setdefault(each.assignment.target.tensor, each)
    return {
        name: out
        for name, out in outs.items()
        if name not in objects and first[name].assignment.operator is not None
    }


def check_outs_apart(outs: Mapping[str, Array]) -> None:
    """Raise OutputError where arrays for two results share memory."""
    for (one, first), (other, second) in combinations(outs.items(), 2):
        if np.may_share_memory(first, second):
            raise OutputError(
                f"Expected memory of its own for each result, found {one} and {other} in arrays "
                "that share theirs",
                hint="pass an array for each",
            )


def _check_out(out: Array, prepared: Prepared, name: str, options: CallOptions) -> None:
    """Raise OutputError where an array cannot hold a result."""
    target = prepared.checked.statements.outputs[name]
    facts = prepared.checked.elaborated.operands[target]
    dtype = np.dtype(facts.type.dtype)
    check_out(out, prepared.kinds[target], facts.shape, dtype, options.casting)


def task_of(
    prepared: Prepared,
    objects: Mapping[str, Any],
    asked: RequestedOutputs,
    begun: Collection[str] = (),
) -> Task | None:
    """What calls like the one that was prepared do; None where operands were converted for it.

    begun  the operands that are arrays for results
    """
    plan, outs = prepared.plan, asked.outs
    if not prepared.checked.reads_as_passed:
        return None
    kernels = compiled_kernels(prepared.kernels, [step.target for step in plan.kernels])
    if kernels is None:
        return None
    *before, last = prepared.checked.elaborated.assignments
    kinds = prepared.kinds
    kind = kinds[last.target.tensor]
    whole = (last, objects, prepared.given, plan, kernels, kind)
    if asked.alone:
        out = next((each.dtype for each in outs.values()), None)
        return Task(*whole, out, next(iter(begun), ""), before=tuple(before))
    names = {name: f"out_{place}" for place, name in enumerate(outs)}
    wanted = tuple(
        Wanted(target, kinds[target], (names[name], outs[name].dtype) if name in outs else None)
        for name, target in prepared.checked.statements.outputs.items()
    )
    arguments = {name: names[name] for name in begun}
    return Task(*whole, before=tuple(before), several=wanted, begun=arguments)
