"""What is known while the text of a short way is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.driver import CompiledKernel
from taco_py.notation.checks import accesses
from taco_py.notation.nodes import Access, Assignment
from taco_py.plan.ir.nodes import Fuse, KernelStep, Squeeze, TakeSize, TakeValues, Unfuse
from taco_py.plan.ir.plan import Plan
from taco_py.problem import TensorType
from taco_py.replay.operand_text import Reading
from taco_py.values.operands import Given
from taco_py.values.result_table import ResultKind


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """What a call does.

    objects  the user's operands, by name
    kernels  one for each kernel of the plan
    out      the dtype of the array that the result is written to, None if it is returned
    begin    the operand that is `out` itself, as `y` is in y += value, or ""
    axes     of the result in the order in which they are wanted, () for that of `assignment`
    half     the 16-bit type that the result is rounded to, or ""
    """

    assignment: Assignment
    objects: Mapping[str, Any]
    given: Mapping[str, Given]
    plan: Plan
    kernels: tuple[CompiledKernel, ...]
    kind: ResultKind
    out: np.dtype[Any] | None = None
    begin: str = ""
    axes: tuple[int, ...] = ()
    half: str = ""

    def type_of(self, name: str) -> TensorType | None:
        """The type that a kernel takes the tensor `name` as, None if none does."""
        for step in self.plan.kernels:
            for operand, type in step.problem.operands:
                if step.source(operand) == name:
                    return type
        return self.given[name].operand.type if name in self.given else None

    def is_transformed(self, name: str) -> bool:
        """Whether a step that is no kernel reads the tensor `name`."""
        others = KernelStep | Fuse | Unfuse | TakeSize
        steps = (step for step in self.plan.steps if not isinstance(step, others))
        return any(step.source == name for step in steps)

    def needs_distinct(self, name: str) -> bool:
        """Whether a step that is no kernel relies on its coordinates being distinct."""
        steps = (step for step in self.plan.steps if isinstance(step, TakeValues))
        return any(step.source == name and step.distinct for step in steps)

    def needs_order(self, name: str) -> bool:
        """Whether a kernel relies on the order of its coordinates."""
        return any(
            step.source(operand) == name and (ordered or unique)
            for step, kernel in zip(self.plan.kernels, self.kernels, strict=True)
            for operand, ordered, unique in kernel.requirements
        )

    @property
    def direct(self) -> bool:
        """Whether the last kernel may write into `out`."""
        last = self.plan.steps[-1]
        return isinstance(last, KernelStep) and last.problem.result.dtype == self.out


@dataclass(slots=True)
class CallState:
    """What the lines written so far have made and looked at.

    readings  of each tensor that exists so far, by name
    more      what the text calls, by the name it has there
    checked   conditions that have been written
    """

    task: Task
    readings: dict[str, Reading] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    checked: set[str] = field(default_factory=set)

    def accesses(self) -> Iterator[tuple[Access, tuple[str, ...]]]:
        """The accesses of the user's operands with the sizes of their modes, but for modes of size
        1 that are taken off."""
        off = {s.source: s.axes for s in self.task.plan.steps if isinstance(s, Squeeze)}
        for access in accesses(self.task.assignment):
            sizes = self.readings[access.tensor].sizes
            axes = off.get(access.tensor, ())
            yield access, tuple(size for axis, size in enumerate(sizes) if axis not in axes)

    def sizes(self) -> dict[str, str]:
        """The variable that has the size of each index."""
        found: dict[str, str] = {}
        for access, sizes in self.accesses():
            for index, size in zip(access.indices, sizes, strict=True):
                found.setdefault(index, size)
        return found

    def give_up(self, wrong: Sequence[str]) -> Iterator[str]:
        """Return None where one of the conditions holds that are not known to be false."""
        found = [condition for condition in dict.fromkeys(wrong) if condition not in self.checked]
        self.checked.update(found)
        if found:
            yield "if ("
            yield "    " + "\n            or ".join(found)
            yield "):"
            yield "    return None"

    def fused_shape(self) -> str:
        """What gives the result the modes that the assignment says, where the plan fused some."""
        wanted = self.task.assignment.target.indices
        last = self.task.plan.kernels[-1].problem.assignment.target.indices
        sizes = self.sizes()
        return f".reshape({listed(sizes[i] for i in wanted)})" if len(last) < len(wanted) else ""

    def out_apart(self) -> Iterator[str]:
        """That `out` surely shares no memory with arrays of the user's operands."""
        for name in self.task.objects:
            for array in filter(None, self.readings[name].arrays.split(", ")):
                several = array.startswith("*")
                yield f"apart(out, {array})" if several else f"not meets(out, {array})"


def says_order(reading: Reading, ordered: bool, unique: bool) -> str:
    """The expression for whether coordinates are as asked, "" where they have to be put so."""
    if unique:
        return reading.canonical
    return reading.ordered if ordered else "True"


def sizes_disagree(
    found: Iterator[tuple[Access, tuple[str, ...]]], sizes: Mapping[str, str]
) -> Iterator[str]:
    """That two uses of an index differ in its size."""
    for access, own in found:
        for index, size in zip(access.indices, own, strict=True):
            if size != sizes[index]:
                yield f"{size} != {sizes[index]}"


def listed(parts: Iterable[str]) -> str:
    """A tuple.

    >>> listed(["a0_0"])
    '(a0_0, )'
    """
    return f"({''.join(f'{part}, ' for part in parts)})"
