"""Preconditions of `assemble`: a result that stores coordinates."""

from __future__ import annotations

from taco_py.compiler.concrete.nodes import Assembly
from taco_py.compiler.iteration.copied_pattern import copied_pattern
from taco_py.compiler.iteration.graph import IterationGraph
from taco_py.compiler.schedule.refused import refused


def check_assembly(graph: IterationGraph) -> None:
    """Raise ScheduleError for a strategy of assembly where nothing is assembled."""
    target = graph.problem.assignment.target.tensor
    if graph.assembly is Assembly.APPEND and not graph.teams:
        raise refused(
            f"assemble({target},{graph.assembly.value})",
            "the threads of a GPU have no room for parts of a result, which would be appended",
            f"assemble({target},Insert)",
        )
    if graph.assembly is Assembly.COPY:
        _check_copied(graph)
    if graph.assembly is None or not graph.problem.result.format.is_dense:
        return
    raise refused(
        f"assemble({target},{graph.assembly.value})",
        f"every element of {target} has its place, no coordinates are stored by these loops",
        "ask for a sparse result, or leave the command out",
    )


def _check_copied(graph: IterationGraph) -> None:
    """Raise ScheduleError unless the loops visit the copied coordinates of an operand in order."""
    problem = graph.problem
    if problem.result.format.is_dense:
        return
    command = f"assemble({problem.assignment.target.tensor},{Assembly.COPY.value})"
    pattern = copied_pattern(problem)
    if pattern is None:
        raise refused(
            command,
            "no operand's outer levels have the coordinates that it stores",
            f"assemble({problem.assignment.target.tensor},Insert), or give it the format of a "
            "sparse factor",
        )
    indices = problem.stored(pattern.access)[: pattern.depth]
    for loop in graph.loops:
        if not loop.writes_result or loop.index not in indices:
            continue
        foreign = [
            iterator for iterator in loop.lattice.iterators if iterator.access != pattern.access
        ]
        if foreign or loop.merges or not loop.lattice.points:
            raise refused(
                command,
                f"the loop {graph.called(loop)} meets other coordinates than those of "
                f"{pattern.access.tensor}",
                f"assemble({problem.assignment.target.tensor},Insert)",
            )
