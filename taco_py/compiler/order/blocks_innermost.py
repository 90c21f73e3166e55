"""Sums over small dense blocks of a sparse operand: their loops are the innermost ones.

    y[i,p] = sum(j, q, A[i,j,p,q] * x[j,q])    p and q of size 3, A in dsdd
    loops i, p, j, q  →  i, j, p, q

    Y[i,p,k] = sum(j, q, A[i,j,p,q] * X[j,q,k])    loops i, j, p, q, k

Each block is then read once, as it is stored, and the row of blocks once, not once for each of p.
The few elements of the result that a block adds to stay in registers (`codegen/passes/blocks/`).
"""

from __future__ import annotations

from math import inf, prod

from taco_py.compiler.concrete.terms import Term
from taco_py.compiler.cost.estimate import Statistics
from taco_py.compiler.iteration.graph import conflicts
from taco_py.compiler.order.orders import Ranked, needs_copy, order_cost
from taco_py.language.legal.stored import is_full, is_sparse
from taco_py.language.notation.checks import accesses
from taco_py.language.problem import Problem

MOST_ELEMENTS = 64
"""The most elements of a block that kernels unroll."""
MOST_ROWS = 16
"""The most elements of the result that a block adds to."""


def blocks_innermost(problem: Problem, term: Term, statistics: Statistics, best: Ranked) -> Ranked:
    """Return the order with the loops over small blocks innermost.

    `best` where other loops are inside of the sum over blocks, too.
    """
    static = dict(problem.static)
    block = [index for index in best.order if index in static]
    outer = [index for index in best.order if index not in static]
    if not block or not outer or statistics.machine.is_gpu or not is_full(problem.result.format):
        return best
    target = problem.assignment.target.indices
    outer, columns = _split_columns(problem, term, outer)
    rows = [index for index in block if index in target]
    if (
        not rows
        or not outer
        or outer[-1] in target
        or not _are_blocks(problem, term, block, outer[-1])
    ):
        return best
    row_elements = prod(static[index] for index in rows)
    if row_elements > MOST_ROWS or prod(static[index] for index in block) > MOST_ELEMENTS:
        return best
    sums = [index for index in block if index not in target]
    order = (*outer, *rows, *sums, *columns)
    reads = accesses(term.body)
    if any(conflicts(problem, a, order) or needs_copy(problem, term, a, order) for a in reads):
        return best
    cost = order_cost(problem, term, statistics, order)
    return best if cost == inf else Ranked(order, cost)


def _split_columns(problem: Problem, term: Term, outer: list[str]) -> tuple[list[str], list[str]]:
    """Return the loops around blocks, and the loop over columns of the result, which no sparse
    operand has."""
    reads = accesses(term.body)
    sparse = {i for a in reads if is_sparse(problem.type_of(a.tensor).format) for i in a.indices}
    target = problem.result.format.stored(problem.assignment.target.indices)
    if target and target[-1] in outer and target[-1] not in sparse:
        return [index for index in outer if index != target[-1]], [target[-1]]
    return outer, []


def _are_blocks(problem: Problem, term: Term, block: list[str], last: str) -> bool:
    """Tell whether a sparse operand stores blocks over these indices below the coordinates of
    `last`."""
    for access in accesses(term.body):
        form = problem.type_of(access.tensor).format
        if not is_sparse(form):
            continue
        stored = form.stored(access.indices)
        depth = form.depth
        if stored[depth - 1] == last and {*stored[depth:]} >= {*block} and depth < len(stored):
            return True
    return False
