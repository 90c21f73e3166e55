"""A plan's sparse result in two phases: its structure first, its values as often as they change.

A last kernel that makes the sparse result itself has a variant that only assembles, and one that is
given the structure. The kernels before it are run as they are, for their results are not kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from taco_py.data.storage.check import check_lengths
from taco_py.data.storage.tensor_data import TensorData, with_index_dtype
from taco_py.language.diagnostics.errors import StructureError
from taco_py.language.fill import Fill
from taco_py.language.phase import ASSEMBLE, COMPUTE
from taco_py.planner.ir.nodes import KernelStep
from taco_py.planner.ir.plan import Plan
from taco_py.running.execute.assemble_result import plain
from taco_py.running.execute.run import (
    ASSEMBLE_AGAIN,
    Execution,
    begin,
    compute,
    index_dtype_of,
    run_all,
    run_step,
    shape_of,
)


def assemble(plan: Plan, execution: Execution) -> dict[str, TensorData]:
    """Return the structure of each result, with values of zero."""
    last = _before_last(plan, execution)
    if last is None:
        results = run_all(plan, execution)
        return {n: replace(data, values=np.zeros_like(data.values)) for n, data in results.items()}
    return {last.target: compute(last, execution, None, ASSEMBLE)}


def recompute(
    plan: Plan, execution: Execution, patterns: Mapping[str, TensorData]
) -> dict[str, TensorData]:
    """Return the values of each result for its structure, whose index arrays it shares.

    Raises StructureError where the operands make another structure.
    """
    last = _before_last(plan, execution)
    if last is None:
        results = run_all(plan, execution)
        return {name: _on_pattern(data, patterns[name]) for name, data in results.items()}
    (pattern,) = patterns.values()
    operands = {name: execution.tensors[last.source(name)] for name, _ in last.problem.operands}
    shape, form = shape_of(last, operands), last.problem.result.format
    if pattern.shape != shape or str(pattern.format) != str(plain(form)):
        raise _of_another_kind(shape, str(plain(form)), pattern)
    require_fill(pattern, last.problem.result.fill)
    check_lengths(pattern)
    try:
        values = compute(last, execution, None, COMPUTE, _as_counted(last, execution, pattern))
    except StructureError:
        _on_pattern(compute(last, execution, None), pattern)  # says where they differ
        raise
    return {last.target: replace(pattern, values=values.values)}


def _before_last(plan: Plan, execution: Execution) -> KernelStep | None:
    """Return the kernel that makes the one, sparse result, when all that it needs has been made;
    None and nothing done where there is no such kernel."""
    *before, last = plan.steps
    if len(plan.program.results) > 1:
        return None
    if not isinstance(last, KernelStep) or last.problem.result.format.is_dense:
        return None
    begin(plan, execution)
    for step in before:
        execution.tensors[step.target] = run_step(step, execution)
    return last


def _as_counted(last: KernelStep, execution: Execution, pattern: TensorData) -> TensorData:
    """Return the pattern in the index type that the kernel will have."""
    index_dtype = last.problem.result.index_dtype
    if index_dtype != index_dtype_of(pattern) == "int64":
        execution.wide.add(last.target)
        index_dtype = "int64"
    return with_index_dtype(pattern, index_dtype)


def _on_pattern(result: TensorData, pattern: TensorData) -> TensorData:
    """Return the values of `result` with the index arrays of `pattern`, which say the same."""
    require_fill(pattern, result.fill)
    if pattern.shape != result.shape or str(pattern.format) != str(result.format):
        raise _of_another_kind(result.shape, str(result.format), pattern)
    if pattern.values.shape != result.values.shape:
        raise StructureError(
            f"Expected a pattern of {result.values.size} entries, as these operands make, found "
            f"one of {pattern.values.size}",
            hint=ASSEMBLE_AGAIN,
        )
    for number, (level, other_level) in enumerate(zip(result.levels, pattern.levels, strict=True)):
        for name in ("pos", "crd"):
            one, other = getattr(level, name), getattr(other_level, name)
            if one is not None and (other is None or not np.array_equal(one, other)):
                raise StructureError(
                    f"Expected the pattern that these operands make, found other coordinates "
                    f"({name} of level {number})",
                    hint=ASSEMBLE_AGAIN,
                )
    return replace(pattern, values=result.values)


def require_fill(pattern: TensorData, fill: Fill) -> None:
    """Raise StructureError for a pattern whose other elements have another value."""
    if pattern.fill != fill:
        raise StructureError(
            f"Expected a pattern with the fill value {fill or 0}, found {pattern.fill or 0}",
            hint="make it by assemble() with the same operands",
        )


def _of_another_kind(shape: tuple[int, ...], form: str, pattern: TensorData) -> StructureError:
    return StructureError(
        f"Expected a pattern of shape {shape} in the format {form}, found shape {pattern.shape} "
        f"in {str(pattern.format) or 'no format, a scalar'}",
        hint="make it by assemble() with the same operands",
    )
