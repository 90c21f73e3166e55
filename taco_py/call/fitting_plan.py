"""Another plan where the one that is expected to take the least time takes too much memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from taco_py.call.prepare import Prepared, prepare
from taco_py.diagnostics.errors import TacoError
from taco_py.execute.run import Execution
from taco_py.execute.within_limit import exceeds
from taco_py.kernels import KERNELS
from taco_py.notation.einsum import Squeezed
from taco_py.notation.nodes import Assignment
from taco_py.replay.find import fit_key
from taco_py.values.settings import Settings

MOST_PLANS = 12
"""Plans that are tried."""


def prepare_within(
    assignment: Assignment, objects: Mapping[str, Any], settings: Settings, squeezed: Squeezed = ()
) -> tuple[Prepared, bool]:
    """Prepare a call whose plan fits into the limit of memory, where there is one that does.

    (A B) x, A B a dense temporary   →   A (B x)   or one kernel

    Returns what is prepared, and whether its plan is the one that there is without a limit.
    """
    prepared = prepare(assignment, objects, settings, squeezed)
    if not KERNELS.memory.on:
        return prepared, True
    found = _fitting(prepared, settings, partial(prepare, assignment, objects, squeezed=squeezed))
    return found, found is prepared


def note_fit(
    key: tuple[object, ...] | None, execution: Execution, objects: Mapping[str, Any]
) -> None:
    """Remember of calls with this key that operands of these sizes fit into the limit of memory."""
    if key is not None and execution.fits:
        KERNELS.memo.put(fit_key(key, (*objects.values(),)), True)


def _fitting(
    prepared: Prepared, settings: Settings, again: Callable[[Settings], Prepared]
) -> Prepared:
    """Try the plan with one decision of its log the other way, and with all of them.

    again  prepares the call with other settings
    """
    limit = KERNELS.memory.limit
    if (
        limit is None
        or settings.schedule is not None
        or _exceeds(prepared, settings, limit) is None
    ):
        return prepared
    for other in _others(prepared, settings):
        try:
            found = again(other)
        except TacoError:  # a rule that is left out may be needed
            continue
        if _exceeds(found, settings, limit) is None:
            return found
    return prepared


def _exceeds(prepared: Prepared, settings: Settings, limit: int) -> Prepared | None:
    """The plan where it surely takes more, None else."""
    tensors = {name: given.data for name, given in prepared.given.items()}
    threads = settings.threads or KERNELS.cores
    return prepared if exceeds(prepared.plan, tensors, threads, limit) else None


def _others(prepared: Prepared, settings: Settings) -> Iterator[Settings]:
    """Settings that lead to other plans."""
    taken = [key for key, entry in prepared.plan.log.decisions.items() if entry.taken]
    for key in taken[:MOST_PLANS]:
        yield replace(settings, reversed=settings.reversed | {key})
    if len(taken) > 1:
        yield replace(settings, reversed=settings.reversed | {*taken})
