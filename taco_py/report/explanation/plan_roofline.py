"""The line of explain() about what is possible at most here, and what is expected of that.

roofline  at most 78.9 GF/s here, for its operations take as long in registers; expected 30 GF/s;
          measured last 71.2 GF/s
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from time import perf_counter

from taco_py.compiler.driver import CompiledKernel
from taco_py.data.storage.tensor_data import TensorData
from taco_py.language.diagnostics.errors import CompilerError
from taco_py.planner.ir.plan import Plan
from taco_py.report.explanation.summary import expected_of
from taco_py.report.limits.last_measured import last_seconds, note_seconds
from taco_py.report.limits.roofline import Roofline, facts_with, roofline_of
from taco_py.report.limits.roofline_picture import format_rate

SECONDS = 0.2
"""For which a call is timed again and again."""


def describe_roofline(
    plan: Plan,
    kernels: Sequence[CompiledKernel],
    tensors: Mapping[str, TensorData] | None,
    limit: int,
) -> Iterator[str]:
    """Describe the bound of a plan, its reason, the expected time, and the last measured time."""
    try:
        roofline = full_roofline(plan, kernels, tensors, limit)
    except CompilerError as error:
        yield f"roofline  not known: {error.message}"
        return
    first = roofline.limiting
    if first is None or not roofline.seconds:
        return
    said = [f"at most {_rate(roofline, roofline.seconds)} here, for {first.reason}"]
    if roofline.expected is not None:
        said.append(f"expected {_rate(roofline, roofline.expected)}")
    if roofline.measured is not None:
        said.append(f"measured last {_rate(roofline, roofline.measured)}")
    by = f"; {roofline.processor} measured {roofline.when}" if roofline.when else ""
    yield f"roofline  {'; '.join(said)}{by}"


def full_roofline(
    plan: Plan,
    kernels: Sequence[CompiledKernel],
    tensors: Mapping[str, TensorData] | None,
    limit: int,
) -> Roofline:
    """Return the bounds of a plan, with its expected and its last measured time.

    Raises CompilerError where the processor cannot be measured.
    """
    roofline = roofline_of(plan, kernels, tensors, limit)
    facts = facts_with(plan, tensors)
    measured = None if tensors is None else last_seconds(kernels, tensors, limit)
    return replace(roofline, expected=expected_of(plan, facts), measured=measured)


def timed_roofline(
    plan: Plan,
    kernels: Sequence[CompiledKernel],
    tensors: Mapping[str, TensorData] | None,
    limit: int,
    call: Callable[[], object] | None,
) -> Roofline:
    """Return the same with the time of a call, which explain() knows from then on.

    call  made again and again, where there is one
    """
    if call is not None:
        note_seconds(kernels, tensors or {}, limit, _least_time(call))
    return full_roofline(plan, kernels, tensors, limit)


def _least_time(call: Callable[[], object]) -> float:
    """Return the seconds of the fastest call of some, after one that is not timed."""
    call()
    best, end = inf, perf_counter() + SECONDS
    while perf_counter() < end or best == inf:
        begin = perf_counter()
        call()
        best = min(best, perf_counter() - begin)
    return best


def _rate(roofline: Roofline, seconds: float) -> str:
    """Return operations a second, or bytes a second where there are no operations."""
    amount, unit = (roofline.flops, "F/s") if roofline.flops else (roofline.bytes, "B/s")
    return format_rate(amount / seconds if seconds else 0.0, unit)
