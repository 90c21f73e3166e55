"""What `assemble` needs: a result that stores coordinates."""

from __future__ import annotations

from taco_py.concrete.nodes import Assembly
from taco_py.iteration.graph import IterationGraph
from taco_py.schedule.refused import refused


def check_assembly(graph: IterationGraph) -> None:
    """Raise ScheduleError where a way to assemble is asked for, and nothing is assembled."""
    target = graph.problem.assignment.target.tensor
    if graph.assembly is Assembly.APPEND and not graph.teams:
        raise refused(
            f"assemble({target},{graph.assembly.value})",
            "the threads of a GPU have no room for parts of a result, which would be appended",
            f"assemble({target},Insert)",
        )
    if graph.assembly is None or not graph.problem.result.format.is_dense:
        return
    raise refused(
        f"assemble({target},{graph.assembly.value})",
        f"every element of {target} has its place, no coordinates are stored by these loops",
        "ask for a sparse result, or leave the command out",
    )
