"""What `assemble` needs: a result that stores coordinates."""

from __future__ import annotations

from taco_py.iteration.graph import IterationGraph
from taco_py.schedule.refused import refused


def check_assembly(graph: IterationGraph) -> None:
    """Raise ScheduleError where a way to assemble is asked for, and nothing is assembled."""
    if graph.assembly is None or not graph.problem.result.format.is_dense:
        return
    target = graph.problem.assignment.target.tensor
    raise refused(
        f"assemble({target},{graph.assembly.value})",
        f"every element of {target} has its place, no coordinates are stored by these loops",
        "ask for a sparse result, or leave the command out",
    )
