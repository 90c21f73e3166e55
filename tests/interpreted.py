"""Kernels that are interpreted instead of compiled: the same loop IR, without a compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from codegen.ir import Function
from codegen.passes.parameters import prune_parameters
from codegen.pretty import pretty
from codegen.runtime.signature import Kind, Signature, signature_of
from codegen.verify import verify
from taco_py.compiler.driver import CompiledKernel, Report
from taco_py.compiler.ways.loops import lower_recipe
from taco_py.compiler.ways.recipe import LoweredRecipe, Recipe
from tests.codegen.interpreter import run


def interpreted(recipe: Recipe) -> CompiledKernel:
    """The kernel of `recipe`, interpreted before any pass. Raises ScheduleError."""
    lowered = lower_recipe(recipe)
    (function,) = prune_parameters(lowered.module).functions
    verify(function)
    return _kernel(recipe, lowered, function)


def _kernel(recipe: Recipe, lowered: LoweredRecipe, function: Function) -> CompiledKernel:
    signature = signature_of(function)
    bindings = dict(lowered.bindings)
    facts = lowered.facts
    return CompiledKernel(
        recipe,
        _callable(function, signature),
        tuple((p, bindings.get(p.name)) for p in signature.parameters),
        tuple((str(t), bool(o), bool(u)) for t, o, u in facts["requirements"]),
        facts["covers"],
        tuple(tuple(indices) for indices in facts["keys"]),
        facts["threaded"],
        pretty(function),
        Report(**facts["report"]),
        "interpreted",
        0.0,
    )


def _callable(function: Function, signature: Signature) -> Callable[..., Any]:
    """As the compiled function is called: fixed results are written, growing ones returned."""

    def call(*arguments: Any) -> tuple[Any, ...]:
        given = dict(zip(signature.parameters, arguments, strict=True))
        flat = {p.name: _flat(a) for p, a in given.items() if p.is_array}
        numbers = (Kind.SCALAR, Kind.THREADS)
        scalars = {p.name: a for p, a in given.items() if p.kind in numbers}
        state = run(function, flat, scalars)
        for parameter, array in given.items():
            if parameter.kind is Kind.OUTPUT:
                _flat(array)[...] = state.arrays[parameter.name]
        growing = [p.name for p in given if p.kind is Kind.GROWING]
        return tuple(state.arrays[name][: state.lengths[name]].copy() for name in growing)

    return call


def _flat(array: Any) -> Any:
    """The memory from an array's first element to its last, whatever its positive strides."""
    if not array.size:
        return np.zeros(0, array.dtype)
    sizes = zip(array.shape, array.strides, strict=True)
    count = 1 + sum((n - 1) * stride for n, stride in sizes) // array.itemsize
    return np.lib.stride_tricks.as_strided(array, (count,), (array.itemsize,))
