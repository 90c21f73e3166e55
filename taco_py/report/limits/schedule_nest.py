"""The loops of a scheduled kernel with how often each runs; None where nobody can say it.

y[i] = A[i,j] * x[j], A of 100 rows and 500 entries in CSR, split(i,i0,i1,32)
→ i0 4 times, i1 25 times, j 5 times
"""

from __future__ import annotations

from math import ceil

from taco_py.compiler.iteration.graph import IterationGraph, Loop
from taco_py.compiler.ways.ways import graph_of
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.provenance.relations import Bound, Divide, Rename, Split
from taco_py.planner.ir.nodes import KernelStep
from taco_py.report.limits.kernel_work import Work
from taco_py.report.limits.loop_nest import LoopNest, NestLoop


def nest_of(step: KernelStep, work: Work) -> LoopNest | None:
    """Return the loops of a kernel, None where they are no nest of counted ones."""
    if work.several or len(step.schedule.orders) != 1:
        return None
    try:
        graph = graph_of(step.recipe())
    except ScheduleError:
        return None
    return nest_of_graph(graph, work)


def nest_of_graph(graph: IterationGraph, work: Work) -> LoopNest | None:
    """Return the same of an iteration graph."""
    loops: list[NestLoop] = []
    outer: tuple[str, ...] = ()
    for loop in graph.loops:
        if loop.outer != outer or loop.merges:
            return None  # loops side by side
        outer = (*outer, loop.index)
        rounds = _rounds(graph, loop, work)
        root = graph.provenance.roots(loop.index)
        if rounds is None or len(root) != 1:
            return None
        shared = loop.mode.parallel is not None
        loops.append(NestLoop(root[0], rounds, shared, _is_fixed(graph, loop, work)))
    target = work.problem.stored(work.problem.assignment.target)
    inner = [loop.index for loop in loops[-2:]]
    is_register_row = len(inner) == 2 and target[-1:] == (inner[1],) and inner[0] not in target
    return LoopNest(tuple(loops), work.arrays, is_register_row)


def _is_fixed(graph: IterationGraph, loop: Loop, work: Work) -> bool:
    """Tell whether a loop's rounds are the factor of a split, or a size that is compiled in."""
    variable = _variable(graph, loop, work)
    root = graph.provenance.roots(variable)[0]
    if work.walked is not None and root in work.walked.indices:
        return False
    relation = graph.provenance.above(variable)
    if isinstance(relation, Split):
        return variable == relation.inner
    return variable in dict(work.problem.static)


def _variable(graph: IterationGraph, loop: Loop, work: Work) -> str:
    """Return the variable of a loop: the last tile of an index goes by the index's name."""
    if loop.index in work.sizes:
        return graph.provenance.leaf(loop.index, loop.outer)
    return loop.index


def _rounds(graph: IterationGraph, loop: Loop, work: Work) -> float | None:
    """Return how often a loop runs each time, on average."""
    return _extent(graph, _variable(graph, loop, work), work)


def _extent(graph: IterationGraph, variable: str, work: Work) -> float | None:
    """Count how many values a variable has each time: of the entries of rows, on average."""
    relation = graph.provenance.above(variable)
    if relation is None:
        return _walked(variable, work)
    match relation:
        case Split() | Divide():
            return _of_tiles(graph, relation, variable, work)
        case Bound(parent=parent) | Rename(parent=parent):
            return _extent(graph, parent, work)
    return None


def _of_tiles(
    graph: IterationGraph, relation: Split | Divide, variable: str, work: Work
) -> float | None:
    """Count the tiles, or the contents of each."""
    extent = _extent(graph, relation.parent, work)
    root = graph.provenance.roots(relation.parent)
    if extent is None or len(root) != 1:
        return None
    is_index = graph.provenance.above(relation.parent) is None
    span = work.sizes[root[0]] if is_index else extent  # tiles are of coordinates, stored or not
    if isinstance(relation, Split):
        tiles = float(ceil(span / relation.size))
    else:
        tiles = float(relation.parts)
    return tiles if variable == relation.outer else extent / max(tiles, 1.0)


def _walked(index: str, work: Work) -> float | None:
    """Return the coordinates of an index in a row of the walked operand, or all of them."""
    walked = work.walked
    if walked is None or index not in walked.indices:
        return work.sizes[index]
    at = walked.indices.index(index)
    if at >= len(walked.rows):
        return None
    above = walked.rows[at - 1] if at else 1.0
    return walked.rows[at] / above if above else 0.0
