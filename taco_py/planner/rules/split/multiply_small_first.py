"""Multiply small dense factors that vary along the innermost loop by each other first.

    s = sum(a, b, c, A[a,b,c] * v[a,c] * w[c,a])
    →   T[a,c] = v[a,c] * w[c,a];  s = sum(a, b, c, A[a,b,c] * T[a,c])

The array that all loops run through is then multiplied once, by neighbours, and indices that lie
together in both can be fused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

import numpy as np

from codegen.names import Names
from taco_py.compiler.concrete.terms import split_terms, summed
from taco_py.language.formats import dense
from taco_py.language.notation.dtypes import expression_dtype
from taco_py.language.notation.nodes import Access, Assignment
from taco_py.language.problem import TensorType
from taco_py.planner.algebra.products import as_product, flatten, typed_first
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
from taco_py.planner.rules.layout.copy_small_across import walked_order

REASON = "small factors that vary along the innermost loop are multiplied by each other first"


def small_first(
    assignment: Assignment, operands: Mapping[str, Operand], request: Request, names: Names
) -> StepsBefore | None:
    """Compute the product of such factors first, where it is small enough."""
    order = walked_order(assignment, operands, request)
    dtypes = {name: np.dtype(operand.type.dtype) for name, operand in operands.items()}
    (term, *_) = split_terms(flatten(assignment.value, dtypes))
    product = as_product(term.body, dtypes)
    if order is None or product is None or term.negative:
        return None
    sizes = real_statistics(assignment, operands, request.machine).sizes
    volume = prod(sizes[index] for index in order)
    dtype = expression_dtype(term.body, dtypes)
    few = [
        factor
        for factor in product.factors
        if isinstance(factor, Access) and order[-1] in factor.indices
        if {*factor.indices} != {*order} and dtypes[factor.tensor] == dtype
    ]
    small_indices = {index for factor in few for index in factor.indices}
    stored = tuple(index for index in order if index in small_indices)
    count = prod(sizes[index] for index in stored)
    machine = request.machine
    least = max(machine.calls.small_factor_iterations, machine.calls.small_factor_ratio * count)
    if len(few) < 2 or volume < least:
        return None
    target = Access(names.fresh("T"), stored)
    type = TensorType(dense(len(stored)), dtype.name, request.type.index_dtype)
    shape = tuple(int(sizes[index]) for index in stored)
    new = Operand(type, shape, count, contiguous=(True,) * (len(stored) - 1))
    rest = [factor for factor in product.factors if factor not in few]
    factors = typed_first((*rest, target), dtype, {**dtypes, target.tensor: dtype})
    return StepsBefore(
        replace(assignment, value=summed(product.of(factors), term.reduced)),
        {**operands, target.tensor: new},
        (Define(Assignment(target, product.of(few)), REASON),),
        REASON,
    )


RULE = Rule(
    "multiply_small_first",
    Phase.SPLIT,
    with_steps_before(small_first),
    result,
    Numbers.ROUNDS,
    traits=Trait.FACTORS | Trait.INDICES,
)
