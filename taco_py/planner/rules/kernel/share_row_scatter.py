"""Share a loop whose iterations add rows where entries say, to copies that are added up in order.

    T[j,k] = sum(i, X[i,j] * G[i,k])    by loops(i,j,k)
    → the same    by loops(i,j,k), parallelize(i,CPUThread,Ordered)

The product of a transposed sparse matrix with a dense one, as of the weights of a layer that reads
sparse features backward. The copies are of ranges of i that no number of threads changes, so the
result has the same bits for any. It takes many entries for each element of the result.

So are the rows of a large dense array shared whose columns are summed. Each range reads whole
rows, which memory gives as fast as a copy; parts of columns it does not.
"""

from __future__ import annotations

from taco_py.compiler.concrete.nodes import ORDERED_COPIES, Race
from taco_py.compiler.ways.ways import way_of
from taco_py.language.legal.stored import sparse_indices_of
from taco_py.planner.context import Context
from taco_py.planner.ir.nodes import KernelStep
from taco_py.planner.ir.program import Program
from taco_py.planner.rules.base import Gain, Numbers, Outcome, Phase, Rule, Site, kernels
from taco_py.planner.rules.scatters import Scatter, scatter_of, share_scatter

LEAST_ENTRIES = 1 << 20
"""Of dense operands whose rows are added up: with fewer they are in the caches."""
LEAST_ROWS, LEAST_LENGTH = 128, 256
"""Rows of two ranges, and elements of a row that memory gives in one piece."""


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Share the outermost loop, a sum over rows, with a copy of the result for each range."""
    scatter = scatter_of(program, site, context)
    if scatter is None or scatter.is_exact:
        return None
    if not _adds_rows(scatter.kernel) and not _adds_up_rows(scatter):
        return None
    return share_scatter(program, scatter, context, Race.ORDERED, ORDERED_COPIES)


def _adds_rows(kernel: KernelStep) -> bool:
    """Tell whether each entry of a sparse operand adds to the row of the result that it selects.

    Rows that are summed up further inside stay in registers, and ranges would keep them from that.
    """
    _, *outer, row = kernel.schedule.orders[0]
    indices, sparse = {*kernel.problem.assignment.target.indices}, sparse_indices_of(kernel.problem)
    return row in indices - sparse and bool(outer) and indices & sparse == {*outer}


def _adds_up_rows(scatter: Scatter) -> bool:
    """Tell whether the rows of large dense operands are added up, read from end to end."""
    kernel, order = scatter.kernel, scatter.kernel.schedule.orders[0]
    if len(order) != 2 or not way_of(kernel.schedule.make).in_loops:
        return False
    if scatter.entries < max(LEAST_ENTRIES, LEAST_ROWS * scatter.elements):
        return False
    long = scatter.elements >= LEAST_LENGTH and order[1] in kernel.problem.assignment.target.indices
    return long and not sparse_indices_of(kernel.problem)


RULE = Rule("share_row_scatter", Phase.KERNEL, apply, kernels, Numbers.ROUNDS, Gain.DENSE)
