"""Kernels of products with epilogues, planned for large operands and interpreted on small ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from codegen.ir import Function, Prefetch
from codegen.machine.cpu import Processor
from codegen.machine.target import Target
from codegen.passes.order import run_passes
from codegen.variables import statements
from codegen.verify import verify
from taco_py.compiler.lower.bindings import Source
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.compiler.ways.recipe import Recipe
from taco_py.compiler.ways.ways import way_of
from taco_py.language.notation.checks import accesses
from taco_py.language.problem import Problem, TensorType
from taco_py.planner.ir.goal import Request
from taco_py.planner.ir.nodes import KernelStep, Operand
from taco_py.planner.ir.plan import Plan
from taco_py.planner.statements import plan_statements
from tests.codegen.interpreter import run
from tests.problems import assignment

LARGE = 1000
TARGET = Target(machine=Processor(vector_bytes=16), openmp=True)


def planned(
    texts: Sequence[str],
    results: Sequence[str],
    formats: Mapping[str, str] | None = None,
    dtypes: Mapping[str, str] | None = None,
    sizes: Mapping[str, int] | None = None,
    left_out: Sequence[str] = (),
) -> Plan:
    """The plan of statements over operands of LARGE sizes; dense ones of float64 unless said."""
    known = [assignment(text) for text in texts]
    kinds = {"k": 64, **(sizes or {})}
    facts, types = dict[str, Operand](), dict[str, TensorType]()
    for each in known:
        target = each.target.tensor
        types[target] = TensorType(tp.dense(len(each.target.indices)), "float64")
        for access in accesses(each):
            if access.tensor in types or access.tensor in facts:
                continue
            order = len(access.indices)
            form = tp.Format.parse((formats or {}).get(access.tensor, "d" * order))
            shape = tuple(kinds.get(index, LARGE) for index in access.indices)
            dtype = (dtypes or {}).get(access.tensor, "float64")
            nnz = float(np.prod(shape)) if form.is_dense else 5.0 * shape[0]
            facts[access.tensor] = Operand(TensorType(form, dtype), shape, nnz)
    request = Request(TensorType(tp.dense(0), "float64"), left_out=frozenset(left_out))
    return plan_statements(known, facts, types, request, results)


def interpreted(step: KernelStep, operands: Mapping[str, Any]) -> dict[str, Any]:
    """What a kernel makes of operands, dense arrays and CSR matrices, by the names of the plan's
    tensors; threads are many, and races are found."""
    problem = step.problem
    functions, bindings = _made(step.problem, step.schedule)
    *earlier, main = functions
    given = {name: operands[step.source(name)] for name, _ in problem.operands}
    sizes = {i: given[name].shape[mode] for i, name, mode in step.sizes}
    targets = (problem.assignment.target, *(side.target for side in problem.side))
    made = {
        target.tensor: np.full(
            [sizes[i] for i in target.indices], 0, problem.type_of(target.tensor).dtype
        )
        for target in targets
    }
    arrays, scalars = _arguments(main, bindings, {**given, **made}, sizes)
    state = run(main, arrays, {**scalars, "threads": 3}, tuple(earlier))
    names = {source.tensor: n for n, source in bindings.items() if source.what == "values"}
    return {name: state.arrays[names[name]].reshape(array.shape) for name, array in made.items()}


def arrays_foreseen(step: KernelStep) -> set[str]:
    """The tensors of a plan of which lines are asked for before they are read or written."""
    functions, bindings = _made(step.problem, step.schedule)
    asked = {
        s.array.name for each in functions for s in statements(each.body) if isinstance(s, Prefetch)
    }
    return {step.source(bindings[name].tensor) for name in asked & bindings.keys()}


@cache
def _made(
    problem: Problem, schedule: Schedule
) -> tuple[tuple[Function, ...], Mapping[str, Source]]:
    """The functions of a kernel after all passes, and where their arguments come from."""
    lower = way_of(schedule.make).lower
    assert lower is not None
    lowered = lower(Recipe(problem, schedule), TARGET)
    verify(lowered.module)
    module = run_passes(lowered.module, TARGET)
    verify(module)
    return module.functions, dict(lowered.bindings)


def _arguments(
    main: Function,
    bindings: Mapping[str, Source],
    tensors: Mapping[str, Any],
    sizes: Mapping[str, int],
) -> tuple[dict[str, Any], dict[str, Any]]:
    arrays = {
        each.name: _array(tensors[bindings[each.name].tensor], bindings[each.name])
        for each in main.arrays
    }
    scalars = {}
    for each in main.scalars:
        source = bindings[each.name]
        if source.what == "size":
            scalars[each.name] = sizes[source.index]
        else:
            tensor = tensors[source.tensor]
            scalars[each.name] = tensor.strides[source.level] // tensor.itemsize
    return arrays, scalars


def _array(tensor: Any, source: Source) -> Any:
    if not sp.issparse(tensor):
        return np.ravel(tensor)
    return {"pos": tensor.indptr, "crd": tensor.indices, "values": tensor.data}[source.what]
