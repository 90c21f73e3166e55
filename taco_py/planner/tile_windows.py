"""Loops over tiles: the order in which indices are known, and searches for the entries of a tile.

    split(j,j0,j1,64), reorder(j0,i,k,j1)   A[i,j] in CSR, of 1000 rows of 640
    → the order i, k, j, for j is known inside j1 alone
      10 tiles · 1000 rows · the rounds of k, whether a tile has entries or none

A loop over all entries of a row begins where the row does; one over those of a tile has to search
for the first of them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod

from taco_py.compiler.concrete.concretize import Order
from taco_py.compiler.cost.estimate import Statistics
from taco_py.compiler.iteration.graph import IterationGraph
from taco_py.compiler.ways.ways import graph_of
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.planner.ir.nodes import KernelStep


def tiled_graph(step: KernelStep) -> IterationGraph | None:
    """Return the iteration graph of a kernel with loops over tiles; None for other kernels."""
    if not step.schedule.shapes:
        return None
    try:
        graph = graph_of(step.recipe())
    except ScheduleError:
        return None
    return graph if graph.provenance.has_tiles else None


def known_order(graph: IterationGraph, indices: Collection[str]) -> Order:
    """Return some indices in the order in which loops come to know them: inside all their parts."""
    places: dict[str, int] = {}
    provenance = graph.provenance
    for place, loop in enumerate(graph.loops):
        variable = provenance.leaf(loop.index, loop.outer)  # the last tile goes by the index's name
        for root in provenance.completed(variable, frozenset(loop.outer)):
            places.setdefault(root, place)
    return tuple(sorted(indices, key=lambda index: places.get(index, -1)))


def count_windows(graph: IterationGraph, stats: Statistics) -> float:
    """Count the searches for the first entry of a tile in a kernel's loops."""
    return sum(
        len(loop.lattice.iterators) * count_rounds(graph, loop.outer, stats)
        for loop in graph.loops
        if loop.is_tile
    )


def count_rounds(graph: IterationGraph, variables: Sequence[str], stats: Statistics) -> float:
    """Count the rounds of loops over some variables together."""
    provenance = graph.provenance
    roots = {root for variable in variables for root in provenance.roots(variable)}
    complete = {r for r in roots if r in variables or {*provenance.leaves(r)} <= {*variables}}
    parts = [v for v in variables if not complete.issuperset(provenance.roots(v))]
    iterations = stats.iterations(graph.problem.assignment.value, frozenset(complete))
    return iterations * prod(provenance.count_values(part, stats.sizes) for part in parts)
