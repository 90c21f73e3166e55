"""The key of tuned plans that an assignment over operands has. Nothing is planned for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf
from typing import Any

from taco_py.arguments.options import CallOptions
from taco_py.calls.call.prepare import check
from taco_py.data.kernels import KERNELS
from taco_py.language.notation.einsum import Squeezed
from taco_py.language.notation.nodes import Assignment
from taco_py.tuning.store.fingerprint import target_here
from taco_py.tuning.store.problem_text import Computation
from taco_py.tuning.store.tuning_record import TuningKey, key_for


def key_of_call(
    assignment: Assignment,
    objects: Mapping[str, Any],
    settings: CallOptions,
    squeezed: Squeezed = (),
) -> TuningKey:
    """Return the key of an assignment over numbers, as `compute` has it."""
    checked = check(assignment, objects, settings, squeezed)
    made, target = checked.elaborated, checked.target
    kind = f"{made.kinds[target].kind} {made.dtypes[target].name}"
    computation = Computation(
        (checked.assignment,),
        {name: each.operand for name, each in checked.operands.items()},
        {target: (kind, made.types[target])},
        squeezed,
        tuple(_told(settings)),
        settings.static,
    )
    return key_for(computation, target_here(settings.target))


def _told(settings: CallOptions) -> Iterator[str]:
    """Yield the options that plans depend on, a line each."""
    yield f"threads {settings.threads or KERNELS.cores}"
    if settings.format is not None:
        yield "format asked for"
    if not settings.libraries:
        yield "no libraries"
    if settings.path is not None:
        yield f"path {' '.join(','.join(map(str, step)) for step in settings.path)}"
    if not settings.contract:
        yield "one kernel"
    if settings.memory < inf:
        yield f"memory {settings.memory:g}"
    yield from (f"forbid {name}" for name in sorted(settings.forbid))
    yield from (f"allow {name}" for name in sorted(settings.allow))
