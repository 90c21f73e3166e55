"""Computations over operands that are made of the user's: computed, explained, and as planned.

    y[i] = A[i,j] * x[j], A in BSR(3,3)  →  y[i0,i1] = A[i0,j0,i1,j1] * x[j0,j1]   stored modes
    y[i] = max(j, A[j,i]), under mask=   →  the same, A in CSR                     plain formats
    y[i] = x[i+1] - x[i]                 →  y[i] = x_at_i_1[i] - x_at_i[i]         derived operands

Each conversion is a function; those that apply are applied in this order, and then a semiring and a
mask are written as numbers. A later call like one that was made before makes the operands and takes
the fast path of the inner call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taco_py.calls.call.computation import Computation
from taco_py.calls.call.conversions.block_modes import stored_modes
from taco_py.calls.call.conversions.conversion import Key
from taco_py.calls.call.conversions.derived_operands import derived_operands
from taco_py.calls.call.conversions.plain_formats import conversion_lines, plain_formats
from taco_py.calls.call.semirings.compute_over import arithmetic, compute_over
from taco_py.data.kernels import KERNELS
from taco_py.running.replay.find import call_fast_path

CONVERSIONS = (stored_modes, plain_formats, derived_operands)
"""From a computation and its key to the one over operands that are made; None where it stays."""


def compute_converted(
    computation: Computation, key: Key, conversions: Sequence[Any] = CONVERSIONS
) -> Any:
    """Compute statements over operands that conversions make of the user's.

    key  under which to remember the fast path of calls like this one
    """
    for place, convert in enumerate(conversions):
        converted = convert(computation, key)
        if converted is None:
            continue
        inner = converted.computation
        operands = (*inner.objects.values(), *inner.masks, *inner.outs.values())
        result = call_fast_path(converted.key, operands)
        if result is None:
            result = compute_converted(inner, converted.key, conversions[place + 1 :])
        result = converted.finished(result)
        if result is None:
            continue
        if key is not None and converted.key is not None:
            KERNELS.memo.put(key, converted.fast_path)
        return result
    return compute_over(computation, key)


def plainly_converted(computation: Computation) -> tuple[Computation, list[str]]:
    """Return statements over indices alone and numbers, with the lines of explain() on their
    operands."""
    lines = list[str]()
    for convert in CONVERSIONS:
        converted = convert(computation, None)
        if converted is not None:
            lines += converted.lines()
            computation = converted.computation
        elif convert is stored_modes:
            lines += conversion_lines(computation)
    return arithmetic(computation)[0], lines


def explain_converted(computation: Computation, seconds: float | None, before: str = "") -> str:
    """Describe the plan of statements, and the operands that are made before it runs.

    seconds  of the comparison with the frontier, None for as many as the search may take
    before   lines that stand before those of the plan
    """
    from taco_py.calls.call.explain_call import explained

    plain, lines = plainly_converted(computation)
    return "".join(lines) + before + explained(plain, seconds)
