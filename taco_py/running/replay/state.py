"""What is known while the text of a short way is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.arguments.operands import BoundOperand
from taco_py.arguments.result_table import ResultKind
from taco_py.compiler.driver import CompiledKernel
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access, Assignment
from taco_py.language.problem import TensorType
from taco_py.planner.ir.nodes import (
    Fuse,
    KernelStep,
    Squeeze,
    TakeSide,
    TakeSize,
    TakeValues,
    Unfuse,
)
from taco_py.planner.ir.plan import Plan
from taco_py.running.execute.result_places import (
    KernelArray,
    kernel_arrays,
    takes_strides,
    tensor_of,
)
from taco_py.running.replay.calls_together import KernelCall
from taco_py.running.replay.operand_text import Reading
from taco_py.running.replay.taken_again import NewArray


@dataclass(frozen=True, slots=True)
class ResultSpec:
    """One of the results of a call.

    tensor  the target of a statement
    target  the step of the plan that makes it
    out     the name and the dtype of the array that it is written to, None if it is returned
    half    the 16-bit type that it is rounded to, or ""
    axes    in the order in which they are wanted, () for that of the statement
    """

    tensor: str
    target: str
    kind: ResultKind
    out: tuple[str, np.dtype[Any]] | None = None
    half: str = ""
    axes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """An array of the call that a kernel may write one of its arrays into.

    strided  whether its elements may lie apart, but for those of the last mode
    """

    array: KernelArray
    out: str
    strided: bool


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """What a call does.

    statements    the assignments in order
    objects       the user's operands, by name
    kernels       one for each kernel of the plan
    results       what the call hands out
    alone         whether the one result is returned by itself, not in a tuple
    accumulators  operands that are arrays for results, as `y` is in y += value: their arguments
    """

    statements: tuple[Assignment, ...]
    objects: Mapping[str, Any]
    operands: Mapping[str, BoundOperand]
    plan: Plan
    kernels: tuple[CompiledKernel, ...]
    results: tuple[ResultSpec, ...]
    alone: bool = True
    accumulators: Mapping[str, str] = field(default_factory=dict)

    @property
    def assignment(self) -> Assignment:
        """Return the last assignment."""
        return self.statements[-1]

    @property
    def outs(self) -> dict[str, np.dtype[Any]]:
        """Return the dtypes of the arrays that results are written to, by the names of the
        arguments."""
        return dict(result.out for result in self.results if result.out is not None)

    def kind_of(self, target: str) -> str:
        """Return how a tensor is handed out; "" for one that is none of the results."""
        return next((result.kind.kind for result in self.results if result.target == target), "")

    def type_of(self, name: str) -> TensorType | None:
        """Return the type that a kernel takes the tensor `name` as, None if none does."""
        for step in self.plan.kernels:
            for operand, type in step.problem.operands:
                if step.source(operand) == name:
                    return type
        return self.operands[name].operand.type if name in self.operands else None

    def is_transformed(self, name: str) -> bool:
        """Tell whether a step that is no kernel reads the tensor `name`."""
        exempt = KernelStep | Fuse | Unfuse | TakeSize | TakeSide
        steps = (step for step in self.plan.steps if not isinstance(step, exempt))
        return any(step.source == name for step in steps)

    def needs_distinct(self, name: str) -> bool:
        """Tell whether a step that is no kernel relies on its coordinates being distinct."""
        steps = (step for step in self.plan.steps if isinstance(step, TakeValues))
        return any(step.source == name and step.distinct for step in steps)

    def needs_order(self, name: str) -> bool:
        """Tell whether a kernel relies on the order of its coordinates."""
        return any(
            step.source(operand) == name and (ordered or unique)
            for step, kernel in zip(self.plan.kernels, self.kernels, strict=True)
            for operand, ordered, unique in kernel.requirements
        )

    @property
    def direct(self) -> bool:
        """Tell whether the last kernel may write into `out`."""
        last, first = self.plan.steps[-1], self.results[0]
        if not self.alone or first.out is None or first.target != last.target:
            return False
        return isinstance(last, KernelStep) and last.problem.result.dtype == first.out[1]

    @property
    def placed(self) -> dict[str, Place]:
        """Return the arrays of the call that kernels may write into, by the result's tensor."""
        if self.direct:
            return {}
        outs = {result.target: result.out for result in self.results if result.out is not None}
        kernels = {
            step.target: (step, kernel)
            for step, kernel in zip(self.plan.kernels, self.kernels, strict=True)
        }
        places: dict[str, Place] = {}
        for target, array in kernel_arrays(self.plan, outs):
            step, kernel = kernels[array.target]
            tensor, type = tensor_of(step, array)
            out, dtype = outs[target]
            if type.dtype == dtype:
                strided = takes_strides(kernel, tensor, type.format.order)
                places[target] = Place(array, out, strided)
        return places


@dataclass(slots=True)
class CallState:
    """What the lines written so far have made and looked at.

    readings  of each tensor that exists so far, by name
    shapes    the variables with the sizes of what statements make
    more      what the text calls, by the name it has there
    checked   conditions that have been written
    place_variables  of arrays of kernels and of their places in arrays of the call, by results
    side      the array of each side result and its sizes, by the kernel's target and its number
    new       the lines that make arrays for dense results, by tensor
    calls     the lines that call kernels which may run beside others, by the number of the step
    """

    task: Task
    readings: dict[str, Reading] = field(default_factory=dict)
    shapes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    checked: set[str] = field(default_factory=set)
    side: dict[tuple[str, int], tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    place_variables: dict[str, tuple[str, str]] = field(default_factory=dict)
    new: dict[str, NewArray] = field(default_factory=dict)
    calls: dict[int, KernelCall] = field(default_factory=dict)

    def accesses(self, statement: Assignment) -> Iterator[tuple[Access, tuple[str, ...]]]:
        """Yield the accesses of a statement with the sizes of their modes."""
        off = {s.source: s.axes for s in self.task.plan.steps if isinstance(s, Squeeze)}
        for access in accesses(statement):
            name = access.tensor
            sizes = self.shapes[name] if name in self.shapes else self.readings[name].sizes
            axes = off.get(name, ())
            yield access, tuple(size for axis, size in enumerate(sizes) if axis not in axes)

    def sizes(self, statement: Assignment | None = None) -> dict[str, str]:
        """Return the variable that has the size of each index of a statement, by default the last
        one."""
        size_of: dict[str, str] = {}
        for access, sizes in self.accesses(statement or self.task.assignment):
            for index, size in zip(access.indices, sizes, strict=True):
                size_of.setdefault(index, size)
        return size_of

    def disagreeing(self) -> Iterator[str]:
        """Yield the tests that two uses of an index in one statement differ in its size."""
        for statement in self.task.statements:
            sizes = self.sizes(statement)
            yield from sizes_disagree(self.accesses(statement), sizes)
            target = statement.target
            self.shapes[target.tensor] = tuple(sizes[index] for index in target.indices)

    def give_up(self, wrong: Sequence[str]) -> Iterator[str]:
        """Return None where one of the conditions holds that are not known to be false."""
        conditions = [
            condition for condition in dict.fromkeys(wrong) if condition not in self.checked
        ]
        self.checked.update(conditions)
        if conditions:
            yield "if ("
            yield "    " + "\n            or ".join(conditions)
            yield "):"
            yield "    return None"

    def fused_shape(self) -> str:
        """Return the text that unfuses the modes of the result, "" where the plan fused none."""
        if len(self.task.statements) > 1:
            return ""
        indices = self.task.assignment.target.indices
        last = self.task.plan.kernels[-1].problem.assignment.target.indices
        sizes = self.sizes()
        return (
            f".reshape({tuple_text(sizes[i] for i in indices)})" if len(last) < len(indices) else ""
        )

    def out_apart(self, out: str = "out") -> Iterator[str]:
        """Return the test that an array for a result shares no memory with the operands."""
        for name in self.task.objects:
            for array in filter(None, self.readings[name].arrays.split(", ")):
                several = array.startswith("*")
                yield f"apart({out}, {array})" if several else f"not meets({out}, {array})"


def says_order(reading: Reading, ordered: bool, unique: bool) -> str:
    """Return the expression for whether coordinates are as asked, "" where they have to be put
    so."""
    if unique:
        return reading.canonical
    return reading.ordered if ordered else "True"


def sizes_disagree(
    uses: Iterator[tuple[Access, tuple[str, ...]]], sizes: Mapping[str, str]
) -> Iterator[str]:
    """Return the test that two uses of an index differ in size."""
    for access, mode_sizes in uses:
        for index, size in zip(access.indices, mode_sizes, strict=True):
            if size != sizes[index]:
                yield f"{size} != {sizes[index]}"


def tuple_text(parts: Iterable[str]) -> str:
    """Return a tuple.

    >>> listed(["a0_0"])
    '(a0_0, )'
    """
    return f"({''.join(f'{part}, ' for part in parts)})"
