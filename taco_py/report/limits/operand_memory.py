"""Which operands share memory, so that no byte is counted twice that comes into a cache once.

s = a[i] * b[i]      a and b one array      →   {"a": "a", "b": "a"}
y[i] = W[i,k] * f[k] W a sliding window     →   {"W": "", "f": "f"}, "" for it lies upon itself
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from codegen.records import dataclass
from taco_py.data.storage.tensor_data import Array, TensorData
from taco_py.planner.ir.nodes import KernelStep, TakeSize
from taco_py.planner.ir.plan import Plan

FOLDED = ""
"""The name of memory whose bytes nobody counts: several elements may have the same."""


@dataclass(frozen=True, slots=True)
class OperandMemory:
    """The name of the memory behind each operand, one for all that overlap.

    default  of operands that are not named; None where each has memory of its own
    """

    names: Mapping[str, str]
    default: str | None = None

    def of(self, operand: str) -> str:
        """Return the name of an operand's memory, FOLDED where its elements may lie upon each
        other."""
        return self.names.get(operand, operand if self.default is None else self.default)


SEPARATE = OperandMemory({})
"""Operands of which each has memory of its own."""
UNKNOWN = OperandMemory({}, FOLDED)
"""Operands of which nobody knows whether they share memory."""


def operand_memory(tensors: Mapping[str, TensorData]) -> OperandMemory:
    """Return which operands overlap, by the addresses from their first byte to their last."""
    spans = sorted(
        (*span, name)
        for name, data in tensors.items()
        for array in _arrays(data)
        if (span := _span(array)) is not None
    )
    groups = {name: name for name in tensors}
    end, before = -1, ""
    for first, last, name in spans:
        if first < end and groups[name] != groups[before]:
            gone, joint = groups[name], groups[before]
            groups = {name: joint if root == gone else root for name, root in groups.items()}
        if last > end:
            end, before = last, name
    folded = (name for name, data in tensors.items() if _is_folded(data.values))
    return OperandMemory({**groups, **dict.fromkeys(folded, FOLDED)})


def step_memory(step: KernelStep, plan: Plan, memory: OperandMemory) -> dict[str, str]:
    """Return the memory behind each operand of a kernel: that of what a view was taken of."""
    sources: dict[str, str] = {}
    for other in plan.steps:
        if not isinstance(other, KernelStep | TakeSize):
            sources[other.target] = sources.get(other.source, other.source)
    targets = {other.target for other in plan.kernels}
    memory_of = {}
    for name, _ in step.problem.operands:
        source = step.source(name)
        root = sources.get(source, source)
        memory_of[name] = root if root in targets else memory.of(root)
    return memory_of


def _arrays(data: TensorData) -> Iterator[Array]:
    """Yield all arrays of a tensor."""
    yield data.values
    for level in data.levels:
        yield from (array for array in (level.pos, level.crd) if array is not None)


def _span(array: Array) -> tuple[int, int] | None:
    """Return the addresses of the first byte and behind the last; None where there are none."""
    if not isinstance(array, np.ndarray) or not array.size:
        return None
    ways = [(n - 1) * stride for n, stride in zip(array.shape, array.strides, strict=True)]
    start = array.__array_interface__["data"][0]
    low = start + sum(way for way in ways if way < 0)
    return low, start + sum(way for way in ways if way > 0) + array.itemsize


def _is_folded(array: Array) -> bool:
    """Tell whether elements of an array may lie upon each other, or nobody can see where they
    lie."""
    if not isinstance(array, np.ndarray):
        return True
    reach = array.itemsize
    steps = zip(array.strides, array.shape, strict=True)
    for stride, size in sorted((abs(stride), size) for stride, size in steps if size > 1):
        if stride < reach:
            return True
        reach += stride * (size - 1)
    return False
