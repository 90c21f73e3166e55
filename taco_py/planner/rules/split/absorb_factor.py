"""Multiply dense factors into a small one that has all of their indices.

    C[b,a,c] = sum(d, A[b,d,a] * B[c,d,b] * v[b])
    →   T[c,d,b] = B[c,d,b] * v[b];  C[b,a,c] = sum(d, A[b,d,a] * T[c,d,b])

What is left has fewer factors: often two, and so is a product of matrices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from codegen.names import Names
from taco_py.compiler.concrete.terms import split_terms, summed
from taco_py.language.legal.stored import is_full
from taco_py.language.notation.checks import all_indices
from taco_py.language.notation.dtypes import expression_dtype
from taco_py.language.notation.nodes import Access, Assignment
from taco_py.language.problem import TensorType
from taco_py.planner.algebra.products import as_product, flatten
from taco_py.planner.ir.goal import Request, real_statistics
from taco_py.planner.ir.nodes import Operand
from taco_py.planner.ir.program import Define
from taco_py.planner.rules.base import (
    Numbers,
    Phase,
    Rule,
    StepsBefore,
    Trait,
    result,
    with_steps_before,
)

REASON = "factors are multiplied into a small one that has all of their indices"


def absorb(
    assignment: Assignment, operands: Mapping[str, Operand], request: Request, names: Names
) -> StepsBefore | None:
    """Compute products of such factors first, where the factors that host them are small enough."""
    dtypes = {name: np.dtype(operand.type.dtype) for name, operand in operands.items()}
    (term, *more) = split_terms(flatten(assignment.value, dtypes))
    product = as_product(term.body, dtypes)
    if more or term.negative or product is None or len(product.factors) < 3:
        return None
    dtype = expression_dtype(term.body, dtypes)
    factors = [f for f in product.factors if isinstance(f, Access) and f.indices]
    plain = all(
        is_full(operands[f.tensor].type.format) and dtypes[f.tensor] == dtype for f in factors
    )
    if not plain or len(factors) < len(product.factors):
        return None
    sizes = real_statistics(assignment, operands, request.machine).sizes
    volumes = {f: float(prod(sizes[i] for i in f.indices)) for f in factors}
    points = prod(sizes[index] for index in all_indices(assignment))
    machine = request.machine
    large = points >= machine.calls.small_factor_iterations
    room = min(points / machine.calls.small_factor_ratio, request.memory) if large else 0
    groups = _groups(factors, assignment.target.indices, volumes, room)
    products = {
        group[0]: Assignment(Access(names.fresh("T"), group[0].indices), product.of(group))
        for group in groups
        if len(group) > 1
    }
    if not products:
        return None
    new = {
        part.target.tensor: _as_host(operands[host.tensor], request)
        for host, part in products.items()
    }
    hosts = [f for f in factors if any(f is group[0] for group in groups)]
    left = [products[f].target if f in products else f for f in hosts]
    value = left[0] if len(left) == 1 else product.of(left)
    return StepsBefore(
        replace(assignment, value=summed(value, term.reduced)),
        {**operands, **new},
        tuple(Define(part, REASON) for part in products.values()),
        REASON,
    )


def _groups(
    factors: Sequence[Access], output: Sequence[str], volumes: Mapping[Access, float], room: float
) -> list[list[Access]]:
    """Group each factor with the smallest factor that has all of its indices.

    An index that is summed over, and that no third factor has, is better summed over with them.
    """
    groups: list[list[Access]] = []
    for factor in sorted(factors, key=lambda f: -volumes[f]):
        indices = {i for i in factor.indices if i not in output}
        hosts = [
            group
            for group in groups
            if {*factor.indices} <= {*group[0].indices} and volumes[group[0]] <= room
            if indices <= {i for f in factors if f not in (factor, group[0]) for i in f.indices}
        ]
        if hosts:
            hosts[-1].append(factor)
        else:
            groups.append([factor])
    return groups


def _as_host(host: Operand, request: Request) -> Operand:
    """Return the facts of a product that is stored as its largest factor is."""
    type = TensorType(host.type.format, host.type.dtype, request.type.index_dtype)
    return Operand(type, host.shape, host.nnz, contiguous=(True,) * (len(host.shape) - 1))


RULE = Rule(
    "absorb_factor",
    Phase.SPLIT,
    with_steps_before(absorb),
    result,
    Numbers.ROUNDS,
    traits=Trait.FACTORS | Trait.INDICES,
)
