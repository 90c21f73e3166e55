"""Problems of slabs as kernels of C and of an emulated GPU, called on NumPy's arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from taco_py.compiler.concrete.terms import split_terms
from taco_py.compiler.driver import CompiledKernel, compile_recipe
from taco_py.compiler.schedule.commands import Make
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.compiler.ways.recipe import Recipe
from taco_py.language.notation.checks import accesses, all_indices
from taco_py.language.problem import Problem

EMULATED = "cuda-emulated"


def compiled(problem: Problem, make: Make, target: str = "c") -> CompiledKernel:
    """The kernel of a problem by a way of slabs."""
    terms = split_terms(problem.assignment.value)
    schedule = Schedule.of_orders(tuple(() for _ in terms)).with_way(make)
    return compile_recipe(Recipe(problem, schedule, target=target))


def run(
    problem: Problem, kernel: CompiledKernel, sizes: Mapping[str, int], operands: Mapping[str, Any]
) -> dict[str, Any]:
    """The results of a kernel, in arrays that hold something else before.

    sizes  of the letters with which the indices of each mode begin
    """
    results = {
        target.tensor: np.full([sizes[index[0]] for index in target.indices], 77, type.dtype)
        for target, type in [
            (problem.assignment.target, problem.result),
            *((side.target, side.type) for side in problem.side),
        ]
    }
    arrays = {**operands, **results}
    arguments: list[Any] = []
    for _, source in kernel.parameters:
        if source is None:  # how many threads
            arguments.append(2)
        elif source.what == "size":
            arguments.append(sizes[source.index[0]])
        elif source.what == "values":
            arguments.append(arrays[source.tensor])
        else:
            array = arrays[source.tensor]
            arguments.append(array.strides[source.level] // array.itemsize)
    kernel.call(*arguments)
    return results


def operands_of(problem: Problem, sizes: Mapping[str, int], seed: int) -> dict[str, Any]:
    """Random operands: small whole numbers of integer types."""
    numbers = np.random.default_rng(seed)
    operands: dict[str, Any] = {}
    for output in (problem.assignment, *(side.assignment for side in problem.side)):
        for name, type in problem.operands:
            for access in (a for a in accesses(output.value) if a.tensor == name):
                shape = tuple(sizes[index[0]] for index in access.indices)
                if name == "p":
                    values = np.arange(shape[0])
                elif np.dtype(type.dtype).kind == "f":
                    values = numbers.uniform(-1, 1, shape)
                else:
                    values = numbers.integers(-3, 4, shape)
                operands.setdefault(name, values.astype(type.dtype))
    assert all(index[0] in sizes for index in all_indices(problem.assignment))
    return operands
