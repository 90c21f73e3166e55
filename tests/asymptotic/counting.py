"""Kernels that count: how often the body of each loop of a lowered statement runs.

The loop IR is rewritten so that every place where a loop binds its index counts one more, and run
by the interpreter.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from codegen import build
from codegen.ir import Block, Declare, For, Function, Var
from codegen.tree import rewrite
from codegen.types import INT64
from taco_py.compiler.asymptotic.protocols import Directed
from taco_py.compiler.concrete.concretize import concretize
from taco_py.compiler.concrete.nodes import Statement
from taco_py.compiler.concrete.verify import verify
from taco_py.compiler.iteration.graph import all_iterators, build_graph
from taco_py.compiler.lower.bindings import Source
from taco_py.compiler.lower.lower import lower
from taco_py.data.storage.pack import pack_coo
from taco_py.data.storage.tensor_data import TensorData
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access
from taco_py.language.problem import Problem
from tests.asymptotic.exact_counts import Patterns
from tests.codegen.interpreter import run


def statement_of(problem: Problem, orders: tuple[str, ...]) -> Statement:
    """The concrete notation of a problem whose loops run in these orders, a letter an index."""
    statement = concretize(problem, tuple(map(tuple, orders)))
    verify(problem, statement)
    return statement


def directed_of(problem: Problem, statement: Statement) -> Directed:
    """The protocols that the compiler uses: levels that store coordinates are stepped through."""
    iterators = all_iterators(problem, statement)
    return Directed(statement, {a: frozenset(levels) for a, levels in iterators.items()})


def counted(problem: Problem, statement: Statement, patterns: Patterns) -> Counter[str]:
    """How often loops over each index ran, in a kernel run on tensors with these patterns."""
    lowered = lower(problem, build_graph(problem, statement), "evaluate")
    every = [*accesses(problem.assignment)]
    if problem.result.format.is_dense:
        every.append(problem.assignment.target)
    indices = {i for a in (problem.assignment.target, *every) for i in a.indices}
    scalars: dict[str, Any] = {counter(index).name: 0 for index in indices}
    tensors = {a.tensor: tensor(problem, a, patterns) for a in every}
    arrays: dict[str, Any] = {}
    for name, source in lowered.bindings:
        if source.what == "size":
            scalars[name] = patterns.sizes[source.index]
        elif source.tensor in tensors:
            target = scalars if source.what == "stride" else arrays
            target[name] = part(tensors[source.tensor], source)
    state = run(counting(lowered.function, indices), arrays, scalars)
    return Counter({index: state.scalars[counter(index).name] for index in sorted(indices)})


def part(data: TensorData, source: Source) -> Any:
    """The array or number of a stored tensor that a kernel's parameter is."""
    if source.what == "values":
        return np.ravel(data.values)
    if source.what == "stride":
        return data.values.strides[data.format.mode_order[source.level]] // data.values.itemsize
    return getattr(data.levels[source.level], source.what)


def tensor(problem: Problem, access: Access, patterns: Patterns) -> TensorData:
    """A tensor with ones wherever its pattern, or everything if it is dense, has an entry."""
    shape = tuple(patterns.sizes[i] for i in access.indices)
    entries = patterns.stored.get(access.tensor)
    found = sorted(entries if entries is not None else product(*map(range, shape)))
    coordinates = [np.array([e[mode] for e in found], np.int64) for mode in range(len(shape))]
    form = problem.type_of(access.tensor).format
    return pack_coo(coordinates, np.ones(len(found)), shape, form)


def counter(index: str) -> Var:
    """The scalar that counts the rounds of loops over `index`."""
    return Var(f"rounds_{index}", INT64)


def counting(function: Function, indices: set[str]) -> Function:
    """The function with one more counted wherever a loop binds one of `indices`."""

    def count(stmt: Any) -> Any:
        match stmt:
            case Declare(var=var) if var.name in indices:
                return Block((stmt, build.increment(counter(var.name))))
            case For(var=var, body=body) if var.name in indices:
                return replace(stmt, body=Block((build.increment(counter(var.name)), *body.body)))
        return stmt

    return rewrite(function, count)
