"""The product and the epilogue of a kernel that writes several tensors of one product.

H[i,j] = max(sum(k, X[i,k] * W[k,j]) + b[j], 0), and s[j] = sum(i, max(…, 0))
→  the product T[i,j] = sum(k, X[i,k] * W[k,j]), and the outputs H and s
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from codegen.records import dataclass
from taco_py.compiler.epilogue.value_graph import Output, Product, outputs_of
from taco_py.language.formats import Format
from taco_py.language.notation.checks import accesses, free_indices
from taco_py.language.notation.dtypes import expression_dtype
from taco_py.language.notation.nodes import Access, Assignment, Expr, Reduce
from taco_py.language.notation.tree import children
from taco_py.language.problem import Problem, TensorType

ACCUMULATORS = "accumulators"
"""The name of the tensor of the product's elements, which no kernel stores."""


@dataclass(frozen=True, slots=True)
class MainLoop:
    """A problem as a product, and the outputs computed from its elements.

    problem  the product alone, stored by rows
    """

    problem: Problem
    product: Product
    outputs: tuple[Output, ...]


def main_loop(problem: Problem, first: str = "") -> MainLoop | None:
    """Find the one sum from which all values of a problem are computed; None where there is none.

    The sum has two indices, and values of the problem sum over no others.

    first  the index of its rows, "" for the first one of the first result that has both
    """
    values = {problem.assignment.target: problem.assignment.value}
    values.update((side.target, side.value) for side in problem.side)
    sums = {sum_ for value in values.values() for sum_ in _inner_sums(value)}
    if len(sums) != 1 or problem.assignment.operator is not None:
        return None
    (product_sum,) = sums
    indices = free_indices(product_sum)
    if len(indices) != 2 or not product_sum.operator.additive:
        return None
    rows, columns = _oriented(indices, values)
    if first not in ("", rows):
        rows, columns = columns, rows
    if first not in ("", rows):
        return None
    product = Product(product_sum, rows, columns)
    return MainLoop(
        _alone(problem, product_sum, (rows, columns)), product, outputs_of(product, values)
    )


def _inner_sums(expr: Expr) -> Iterator[Reduce]:
    """Yield the innermost sums; nested sums such as sum(k, sum(l, …)) are one."""
    if isinstance(expr, Reduce):
        body: Expr = expr
        while isinstance(body, Reduce):
            body = body.body
        inside = list(_inner_sums(body))
        if not inside:
            yield expr
        yield from inside
    else:
        for child in children(expr):
            yield from _inner_sums(child)


def _oriented(indices: tuple[str, ...], values: dict[Access, Expr]) -> tuple[str, str]:
    """Return the indices in the order in which the first target has them, or the sum."""
    orders = (target.indices for target in values if {*indices} == {*target.indices})
    first, last = next(orders, indices)
    return first, last


def _alone(problem: Problem, product_sum: Reduce, indices: tuple[str, str]) -> Problem:
    """Return the problem of the product alone."""
    dtypes = {name: np.dtype(type.dtype) for name, type in problem.operands}
    read = dict.fromkeys(access.tensor for access in accesses(product_sum))
    read_indices = {index for access in accesses(product_sum) for index in access.indices}
    return Problem(
        Assignment(Access(ACCUMULATORS, indices), product_sum),
        tuple((name, problem.type_of(name)) for name in read),
        TensorType(Format.parse("dd"), expression_dtype(product_sum, dtypes).name),
        tuple((index, size) for index, size in problem.static if index in read_indices),
    )
