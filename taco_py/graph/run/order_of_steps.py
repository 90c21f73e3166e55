"""The order in which the steps of a program, and the statements of a step, hold the fewest bytes.

q = x @ A; k = x @ B; s = sort(q); t = sort(k); sum(s) + sum(t)
→  q, s, k, t: each product is given up before the next one is made
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import prod
from typing import Any, Protocol

import numpy as np

from codegen.records import dataclass
from taco_py.data.interop.scipy_arrays import is_scipy_sparse
from taco_py.data.storage.tensor_data import arrays_of
from taco_py.data.tensors.tensor import Tensor
from taco_py.graph.extents import compiled
from taco_py.graph.nodes import Graph, Node
from taco_py.graph.orchestrate.candidate_kernels import Kernel
from taco_py.graph.orchestrate.dag import mask_of
from taco_py.graph.orchestrate.memory_order import order_by_memory, peak_bytes
from taco_py.graph.position_operands import is_positions
from taco_py.graph.run.partition_by_stages import base_of
from taco_py.graph.view_operators import is_view
from taco_py.language.notation.checks import operand_names
from taco_py.language.notation.nodes import Assignment

MOST_STATES = 2000
"""Sets of steps that are tried: some 20 ms."""

PAYS = 0.75
"""The share of its bytes below which another order of statements is taken: the planner may join
those that stand side by side."""

LEAST = 1 << 20
"""Bytes that another order of statements saves at least."""


class OrderedStep(Protocol):
    """What of a step decides when it can run: the primitives that it computes, what it makes."""

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Return the primitives."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the values that it makes."""


@dataclass(frozen=True, slots=True)
class StepOrder:
    """Numbers of steps in the order in which they run.

    peak     the bytes of the values that exist at a time, at most
    as_given the same for the order in which they were
    total    the bytes of all values that steps make
    """

    numbers: tuple[int, ...]
    peak: int
    as_given: int
    total: int


def order_steps(graph: Graph, steps: Sequence[OrderedStep], sizes: Mapping[str, int]) -> StepOrder:
    """Order steps so that the values between them take the fewest bytes at a time.

    sizes  the bytes of the values that steps make; what shares the memory of others has none
    """
    makers = {name: step for step in steps for name in step.outputs}
    values = {name: number for number, name in enumerate(makers)}
    memory = _Memory(graph, makers)
    kernels = []
    earlier: set[str] = set()  # what is made later is a view that a step reads through
    for number, step in enumerate(steps):
        read = memory.of(name for node in step.nodes for name in node.inputs) & earlier
        inputs = mask_of(values[name] for name in read - {*step.outputs})
        outputs = mask_of(values[name] for name in step.outputs)
        kernels.append(Kernel(1 << number, inputs, outputs))
        earlier |= {*step.outputs}
    results = mask_of(values[n] for n in memory.of(graph.outputs) if n in values)
    return _ordered(kernels, {values[name]: sizes.get(name, 0) for name in values}, results)


def _ordered(kernels: Sequence[Kernel], sizes: Mapping[int, int], results: int) -> StepOrder:
    as_given = peak_bytes(kernels, sizes, results)
    order = order_by_memory(kernels, sizes, results, MOST_STATES)
    best = kernels if order.peak >= as_given else order.kernels
    numbers = tuple(kernel.members.bit_length() - 1 for kernel in best)
    return StepOrder(numbers, min(as_given, order.peak), as_given, sum(sizes.values()))


@dataclass(frozen=True, slots=True)
class _Memory:
    """Which values' memory there has to be for a value to be read."""

    graph: Graph
    makers: Mapping[str, OrderedStep]

    def of(self, names: Iterable[str]) -> set[str]:
        """Return values with the values that they are views of."""
        nodes = self.graph.by_name
        values: set[str] = set()
        waiting = [*names]
        while waiting:
            name = waiting.pop()
            if name in values:
                continue
            values.add(name)
            base = base_of(nodes, name)
            waiting.append(base)
            if base in nodes and base in self.makers and is_view(nodes[base]):
                waiting += nodes[base].inputs
        return values


# ---------------------------------------------------------------- sizes


def dense_bytes(graph: Graph, names: Collection[str], operands: Sequence[Any]) -> dict[str, int]:
    """Return the bytes that values take where they are dense, at the sizes of operands."""
    nodes = [node for node in graph.nodes if node.name in names and not is_view(node)]
    extents = [extent for node in nodes for extent in node.shape]
    sizes = iter(compiled(extents, [leaf.name for leaf in graph.inputs])(*operands))
    return {
        node.name: _stored([int(next(sizes)) for _ in node.shape], node)
        * np.dtype(node.dtype).itemsize
        for node in nodes
    }


def _stored(sizes: Sequence[int], node: Node) -> int:
    """Return the number of elements of a value; of positions an entry each."""
    return prod(sizes[:-1] if is_positions(node) else sizes)


def bytes_of(value: Any) -> int:
    """Return the bytes of the arrays of a value."""
    if isinstance(value, Tensor):
        return sum(array.nbytes for array in arrays_of(value.data))
    if is_scipy_sparse(value):
        stored = (getattr(value, name, None) for name in ("data", "indices", "indptr"))
        coords = getattr(value, "coords", ()) if value.format == "coo" else ()
        return sum(array.nbytes for array in (*stored, *coords) if isinstance(array, np.ndarray))
    return int(getattr(value, "nbytes", 0))


# ---------------------------------------------------------------- statements


def order_statements(
    assignments: Sequence[Assignment], results: Collection[str], sizes: Mapping[str, int]
) -> tuple[Assignment, ...]:
    """Order statements by memory where that holds much less; else they stay as they are.

    sizes  the bytes of what statements make
    """
    values = {assignment.target.tensor: number for number, assignment in enumerate(assignments)}
    kernels = [
        Kernel(
            1 << number,
            mask_of(values[name] for name in operand_names(assignment) if name in values),
            1 << number,
        )
        for number, assignment in enumerate(assignments)
    ]
    value_sizes = {number: sizes.get(name, 0) for name, number in values.items()}
    order = _ordered(kernels, value_sizes, mask_of(values[name] for name in results))
    if order.peak > PAYS * order.as_given or order.as_given - order.peak < LEAST:
        return tuple(assignments)
    return tuple(assignments[number] for number in order.numbers)
