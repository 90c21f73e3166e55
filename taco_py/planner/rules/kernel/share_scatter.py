"""Share a loop whose iterations add to the same elements, where the order of adding is no matter.

    y[j] = min(i, filled(A[i,j], inf))    by loops(i,j)
    → the same    by loops(i,j), parallelize(i,CPUThread,Temporary)

Each thread adds to a copy of the result, and the copies are added up. It takes many entries for
each element of the result. The least and largest of numbers, truths, and sums of integers are the
same for any number of threads; for other sums see `share_row_scatter`.
"""

from __future__ import annotations

from taco_py.compiler.concrete.nodes import Race
from taco_py.planner.context import Context
from taco_py.planner.ir.program import Program
from taco_py.planner.rules.base import Gain, Numbers, Outcome, Phase, Refusal, Rule, Site, kernels
from taco_py.planner.rules.scatters import scatter_of, share_scatter


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Share the outermost loop over a summed index, with a copy of the result for each thread."""
    scatter = scatter_of(program, site, context)
    if scatter is None:
        return None
    if not scatter.is_exact:
        return Refusal("for any number of threads sums are to be rounded alike")
    return share_scatter(program, scatter, context, Race.TEMPORARY, 1)


RULE = Rule("share_scatter", Phase.KERNEL, apply, kernels, Numbers.EXACT, gain=Gain.DENSE)
