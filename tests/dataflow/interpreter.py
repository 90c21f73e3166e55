"""Dataflow graphs carried out by NumPy: every value an array with an axis for each index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from taco_py.compiler.dataflow.nodes import (
    Compute,
    Dataflow,
    Load,
    ParallelMap,
    Pass,
    Pick,
    Prefetch,
    Reduce,
    Role,
    Store,
)
from taco_py.language.notation.nodes import Literal

UFUNCS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def interpret(
    graph: Dataflow, operands: Mapping[str, Any], sizes: Mapping[str, int]
) -> dict[str, Any]:
    """Return the results of a graph for operands by name."""
    run = _Run(graph, tuple(sizes), dict(sizes))
    for buffer in graph.buffers:
        if buffer.role is Role.OPERAND:
            run.arrays[buffer.name] = run.spread(operands[buffer.name], buffer.indices)
    for map in graph.maps:
        run.map(map)
    return {b.name: run.squeezed(b.name, b.indices) for b in graph.buffers if b.role is Role.RESULT}


@dataclass
class _Run:
    """The arrays of buffers and values so far; an index that one does not have has size 1.

    Near buffers have the indices of slabs here, so that all slabs are computed at once.
    """

    graph: Dataflow
    order: tuple[str, ...]
    sizes: dict[str, int]
    arrays: dict[str, Any] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)

    def spread(self, array: Any, indices: tuple[str, ...]) -> Any:
        places = [self.order.index(index) for index in indices]
        turned = np.transpose(array, np.argsort(places))
        shape = [self.sizes[i] if i in indices else 1 for i in self.order]
        return turned.reshape(shape)

    def squeezed(self, name: str, indices: tuple[str, ...]) -> Any:
        array = self.arrays[name]
        axes = tuple(n for n, i in enumerate(self.order) if i not in indices)
        stored = [i for i in self.order if i in indices]
        return np.transpose(np.squeeze(array, axes), [stored.index(i) for i in indices])

    def map(self, map: ParallelMap) -> None:
        slab = {index.name for index in map.slab}
        for one in map.passes:
            self.one_pass(one, slab)

    def one_pass(self, one: Pass, slab: set[str]) -> None:
        loops = slab | {*one.over}
        for step in one.body:
            match step:
                case Load(value, _, buffer, _):
                    self.values[value] = self.arrays[buffer]
                case Pick():
                    self.values[step.value] = self.picked(step)
                case Compute(value, dtype, operator, args):
                    self.values[value] = np.asarray(
                        operator.evaluate(*(self.argument(arg) for arg in args)), dtype
                    )
                case Reduce(value, _, operator, arg):
                    axes = tuple(self.order.index(index) for index in one.over)
                    inside = self.full(self.argument(arg), {*one.over})
                    self.values[value] = UFUNCS[operator.name].reduce(inside, axes, keepdims=True)
                case Store():
                    self.store(step, loops, slab)
                case Prefetch():
                    pass

    def picked(self, step: Pick) -> Any:
        axis = self.order.index(step.index)
        array, place = self.arrays[step.buffer], self.values[step.place]
        count = array.shape[axis]
        one = tuple(1 if n == axis else size for n, size in enumerate(array.shape))
        shape = np.broadcast_shapes(one, place.shape)
        wide = tuple(count if n == axis else size for n, size in enumerate(shape))
        places = np.broadcast_to(place, shape)
        inside = (places >= 0) & (places < count)
        element = np.take_along_axis(
            np.broadcast_to(array, wide), np.where(inside, places, 0), axis
        )
        return np.where(inside, element, step.otherwise.value)

    def store(self, step: Store, loops: set[str], slab: set[str]) -> None:
        near = self.graph.buffer(step.buffer).memory.value == "near"
        kept = {*step.indices} | (slab if near else set())
        value = self.full(self.argument(step.arg), loops)
        if step.operator is None:
            assert loops <= kept, "each element is stored once"
            self.arrays[step.buffer] = value
            return
        ufunc = UFUNCS[step.operator.name]
        axes = tuple(self.order.index(index) for index in loops - kept)
        total = ufunc.reduce(value, axes, keepdims=True) if axes else value
        old = self.arrays.get(step.buffer)
        self.arrays[step.buffer] = total if old is None else ufunc(old, total)

    def argument(self, arg: str | Literal) -> Any:
        return np.asarray(arg.value) if isinstance(arg, Literal) else self.values[arg]

    def full(self, array: Any, loops: set[str]) -> Any:
        """Return an array that has all of some loops."""
        shape = [
            self.sizes[index] if index in loops else size
            for index, size in zip(self.order, np.broadcast_shapes(
                np.shape(array) or (1,) * len(self.order), (1,) * len(self.order)
            ), strict=True)
        ]  # fmt: skip
        return np.broadcast_to(array, shape)
