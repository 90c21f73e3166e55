"""Texts as calls: computed, explained, and as the computation that is planned for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from taco_py.arguments.call_arguments import CallArguments
from taco_py.arguments.options import CallOptions
from taco_py.arguments.semiring_mask import SemiringMask
from taco_py.calls.call.computation import Computation
from taco_py.calls.call.conversions.apply_conversions import (
    compute_converted,
    explain_converted,
    plainly_converted,
)
from taco_py.calls.call.devices.placed import placed
from taco_py.calls.statements.read_text import CheckedStatement, statements_of
from taco_py.data.tensors.traced_operands import explicit_options, taken_over, taker_of


def compute_text(
    text: str,
    objects: Mapping[str, Any],
    keywords: Mapping[str, Any],
    over: SemiringMask | None,
    key: tuple[object, ...] | None,
) -> Any:
    """Compute the statements of a text.

    keywords  the arguments of the call by parameter, options among them as the user gave them
    key       under which to remember the fast path for calls like this one
    """
    masks = () if over is None else over.arrays
    if key is None and (taker := taker_of((*objects.values(), *masks))) is not None:
        said = explicit_options(keywords, over)
        return taken_over(taker, "tp.evaluate", (text, objects), said)
    objects, where = placed(objects, keywords["target"], masks)
    read = statements_of(text, objects)
    options = CallOptions.of({**keywords, "target": where})
    return compute_read(read, CallArguments(objects, options, keywords["out"], over, key))


def compute_read(read: Sequence[CheckedStatement], call: CallArguments) -> Any:
    """Compute statements that were read."""
    return compute_converted(Computation.of_text(read, call), call.key)


def plain_computation(read: Sequence[CheckedStatement], call: CallArguments) -> Computation:
    """Return the computation over indices and numbers alone that is planned for a call."""
    return plainly_converted(Computation.of_text(read, call))[0]


def explain_text(text: str, call: CallArguments, seconds: float | None) -> str:
    """Describe the plan of a text, its standing, and the operands that are made before it runs.

    seconds  of the comparison with the frontier, None for as many as the search may take
    """
    return explain_read(statements_of(text, call.objects), call, seconds)


def explain_read(
    read: Sequence[CheckedStatement], call: CallArguments, seconds: float | None
) -> str:
    """Describe the plan of statements that were read."""
    return explain_converted(Computation.of_text(read, call), seconds)
