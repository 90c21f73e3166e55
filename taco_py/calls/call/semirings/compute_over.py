"""Computations over semirings, under masks: rewritten over numbers, and merged into arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from taco_py.arguments.call_arguments import CallArguments
from taco_py.arguments.operands import read_operand
from taco_py.calls.call.computation import Computation
from taco_py.calls.call.compute import compute
from taco_py.calls.call.outputs import writable_out
from taco_py.calls.call.prepare import prepare_computation
from taco_py.calls.call.semirings.over_semirings import to_arithmetic
from taco_py.calls.call.semirings.over_statements import arithmetic_statements
from taco_py.language.diagnostics.errors import OperandError
from taco_py.running.replay.call_watch import WATCH


def arithmetic(computation: Computation) -> tuple[Computation, bool]:
    """Return a computation over a semiring, under a mask, as one over numbers.

    Returns it, and whether its operands are those that the user passed.
    """
    over = computation.over
    if over is None:
        return computation, True
    computation = replace(computation, over=None)
    if not computation.is_single:
        return arithmetic_statements(computation, over)
    (source,) = computation.assignments
    formats = computation.requested.formats
    options = replace(computation.options, format=formats.get(source.target.tensor))
    call = CallArguments(computation.objects, options, None, over, ())
    assignment, call = to_arithmetic(source, call, computation.squeezed)
    options = call.options if computation.options.format else replace(call.options, format=None)
    computation = replace(
        computation, assignments=(assignment,), objects=call.objects, options=options
    )
    return computation, call.key is not None


def compute_over(computation: Computation, key: tuple[object, ...] | None = None) -> Any:
    """Compute statements, over a semiring or under a mask where the call has one.

    key  under which to remember the fast path of calls like this one
    """
    over = computation.over
    if over is None:
        return compute(computation, key)
    outs, names = computation.outs, computation.requested.outputs
    last = next(e for e in reversed(computation.assignments) if e.target.tensor in names)
    accumulates = last.operator is not None
    if accumulates and over.replace:
        raise OperandError(
            "Expected replace=False where a result is added to, for that keeps what the mask "
            "leaves out",
            last.span,
            hint="write = in the place of += to have it replaced",
        )
    if WATCH.watchers:
        out = next(iter(outs.values()), None)
        said: dict[str, Any] = {"squeezed": computation.squeezed, "out": out, "mask": over.mask}
        said |= {"semiring": over.semiring, "several": not computation.is_single}
        WATCH.tell(last, computation.objects, computation.options, said)
    inner, is_plain = arithmetic(computation)
    key = key if is_plain else None
    if outs and over.mask is not None and over.keeps(accumulates):
        writable_out(prepare_computation(inner), inner.requested, inner.options)
        requested = replace(inner.requested, outs={}, alone=True)
        result = compute(replace(inner, requested=requested, place=""), key=None, watched=False)
        (out,) = outs.values()
        merged = over.merged(out, result, read_operand(over.mask.array, "the mask"))
        return merged if inner.requested.alone else (merged,)
    return compute(inner, key, watched=False)
