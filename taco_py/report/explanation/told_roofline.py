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
from taco_py.report.limits.roofline_picture import shown

SECONDS = 0.2
"""For which a call is timed again and again."""


def told_roofline(
    plan: Plan,
    kernels: Sequence[CompiledKernel],
    tensors: Mapping[str, TensorData] | None,
    limit: int,
) -> Iterator[str]:
    """Describe the bound of a plan, its reason, the expected time, and the last measured time."""
    try:
        found = whole_roofline(plan, kernels, tensors, limit)
    except CompilerError as error:
        yield f"roofline  not known: {error.message}"
        return
    first = found.limiting
    if first is None or not found.seconds:
        return
    said = [f"at most {_rate(found, found.seconds)} here, for {first.why}"]
    if found.expected is not None:
        said.append(f"expected {_rate(found, found.expected)}")
    if found.measured is not None:
        said.append(f"measured last {_rate(found, found.measured)}")
    by = f"; {found.processor} measured {found.when}" if found.when else ""
    yield f"roofline  {'; '.join(said)}{by}"


def whole_roofline(
    plan: Plan,
    kernels: Sequence[CompiledKernel],
    tensors: Mapping[str, TensorData] | None,
    limit: int,
) -> Roofline:
    """Return the bounds of a plan, with its expected and its last measured time.

    Raises CompilerError where the processor cannot be measured.
    """
    found = roofline_of(plan, kernels, tensors, limit)
    facts = facts_with(plan, tensors)
    measured = None if tensors is None else last_seconds(kernels, tensors, limit)
    return replace(found, expected=expected_of(plan, facts), measured=measured)


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
    return whole_roofline(plan, kernels, tensors, limit)


def _least_time(call: Callable[[], object]) -> float:
    """Return the seconds of the fastest call of some, after one that is not timed."""
    call()
    best, end = inf, perf_counter() + SECONDS
    while perf_counter() < end or best == inf:
        begin = perf_counter()
        call()
        best = min(best, perf_counter() - begin)
    return best


def _rate(found: Roofline, seconds: float) -> str:
    """Return operations a second, or bytes a second where there are no operations."""
    amount, unit = (found.flops, "F/s") if found.flops else (found.bytes, "B/s")
    return shown(amount / seconds if seconds else 0.0, unit)
