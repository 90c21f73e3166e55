"""Add up many numbers of 32 bits in 64, where loops scatter them into elements of an array.

    y[i] = sum(j, A[i,j])          by loops(j,i), A of float32, stored by columns, 1000 to a row
    → y_float64[i] = sum(j, A[i,j])    by loops(j,i), A read as float64;  y is y_float64 in float32

A sum in a scalar is added up so by each kernel (`codegen.passes.sums.long_sums`), as NumPy's is in
pairs; one in an element of an array has the error of all its additions, up to n / 2^24 of n terms.
Only values that follow their operands continuously are computed in another type: a comparison of
rounded numbers might have another answer. Arrays of a device are converted on the host, so there
sums stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from codegen.passes.sums.long_sums import WIDER
from taco_py.compiler.concrete.terms import Term, split_terms
from taco_py.compiler.ways.ways import way_of
from taco_py.language.legal.stored import is_full, is_sparse, sparse_indices_of
from taco_py.language.notation.checks import accesses, rename
from taco_py.language.notation.nodes import Access, Call, Expr
from taco_py.language.notation.operators import ADD, KEEP
from taco_py.language.notation.tree import children
from taco_py.language.problem import Problem
from taco_py.planner.context import Context
from taco_py.planner.ir.goal import real_statistics
from taco_py.planner.ir.nodes import Cast, KernelStep
from taco_py.planner.ir.program import Program
from taco_py.planner.price import as_sum
from taco_py.planner.rules.base import (
    Numbers,
    Outcome,
    Phase,
    Refusal,
    Rewrite,
    Rule,
    Site,
    kernels,
)

LEAST_TERMS = 64
"""Additions to an element, in the mean, from which their errors count: 64 have one of 2^-18."""
CONTINUOUS = frozenset(
    (
        "add", "sub", "mul", "div", "quotient", "neg", "abs", "min", "max", "square", "sqrt",
        "exp", "log", "tanh", "filled", "value", "stored", "present",
    )
)  # fmt: skip
"""Operators that make no other number of two that differ by rounding."""


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Compute a scattered sum in the wider type, and convert it."""
    kernel = program.kernel(site.target)
    problem = kernel.problem
    wider = WIDER.get(problem.result.dtype)
    if wider is None or not _may_widen(kernel) or not _is_continuous(problem.assignment.value):
        return None
    stats = real_statistics(problem.assignment, program.facts, context.goal.machine)
    elements = max(1.0, stats.volume(problem.assignment.target.indices))
    entries = (
        stats.iterations(as_sum(problem, term).body, frozenset(stats.sizes))
        for term in _scattered(kernel)
    )
    if max(entries, default=0.0) < LEAST_TERMS * elements:
        return None
    if context.goal.machine.is_gpu:
        return Refusal("the conversion would take the result off the device")
    target = program.fresh(f"{kernel.target}_{wider.name}")
    reason = f"many terms of {problem.result.dtype} are added to each of its elements"
    wide = replace(kernel, target=target, problem=_widened(problem, target, wider.name))
    cast = Cast(kernel.target, target, problem.result.format, problem.result.dtype, reason)
    facts = replace(program.facts[kernel.target], type=wide.problem.result)
    steps = tuple(
        new for step in program.steps for new in ((wide, cast) if step is kernel else (step,))
    )
    return Rewrite(replace(program.with_facts({target: facts}), steps=steps), reason)


def _may_widen(kernel: KernelStep) -> bool:
    """Tell whether a kernel in loops assigns one dense result that sparse operands scatter into."""
    problem = kernel.problem
    target, result = problem.assignment.target, problem.result
    if not way_of(kernel.schedule.make).in_loops or problem.assignment.operator is not None:
        return False
    if not target.indices or result.stored or problem.side or not is_full(result.format):
        return False
    return {*target.indices} <= sparse_indices_of(problem)


def _scattered(kernel: KernelStep) -> Iterator[Term]:
    """Yield the sums whose loops add to an element of the result repeatedly."""
    terms = split_terms(kernel.problem.assignment.value)
    target = kernel.problem.assignment.target.indices
    for term, order in zip(terms, kernel.schedule.orders, strict=False):
        if term.operator != ADD or not term.reduced or not order:
            continue
        if order[0] not in target or _repeats(kernel.problem):
            yield term


def _repeats(problem: Problem) -> bool:
    """Tell whether a list of entries repeats a coordinate of the result."""
    target = {*problem.assignment.target.indices}

    def lists(access: Access) -> bool:
        form = problem.type_of(access.tensor).format
        stored = form.stored(access.indices)
        pairs = zip(stored, form.levels, strict=True)
        return is_sparse(form) and any(i in target and not level.unique for i, level in pairs)

    return any(map(lists, accesses(problem.assignment.value)))


def _is_continuous(expr: Expr) -> bool:
    if isinstance(expr, Call):
        if expr.operator == KEEP:
            value, condition = expr.args
            return isinstance(condition, Access) and _is_continuous(value)
        if expr.operator.name not in CONTINUOUS:
            return False
    return all(map(_is_continuous, children(expr)))


def _widened(problem: Problem, target: str, wider: str) -> Problem:
    """Return the problem of another target, with narrow operands read in the wider type."""
    narrow = {wide: type.name for wide, type in WIDER.items() if np.can_cast(type.name, wider)}
    name = problem.assignment.target.tensor
    return replace(
        problem,
        assignment=rename(problem.assignment, tensors={name: target}),
        operands=tuple(
            (operand, type.read_as(narrow[type.dtype]) if type.dtype in narrow else type)
            for operand, type in problem.operands
        ),
        result=replace(problem.result, dtype=wider),
    )


RULE = Rule("widen_scatter", Phase.KERNEL, apply, kernels, Numbers.WIDER_TYPE)
