"""Preconditions of loops whose operands gallop: `mergeby(j,Gallop)`.

Every coordinate that such a loop visits is stored by all the levels it walks, an intersection; each
of these stores its coordinates in an array, in which one can be searched.
"""

from __future__ import annotations

from taco_py.compiler.concrete.nodes import Merge
from taco_py.compiler.iteration.graph import IterationGraph, Loop
from taco_py.language.diagnostics.errors import ScheduleError


def check_merge(graph: IterationGraph, loop: Loop) -> None:
    """Raise ScheduleError unless `loop` can merge its operands by its strategy."""
    if loop.mode.merge is Merge.GALLOP:
        _check_gallop(graph, loop)


def _check_gallop(graph: IterationGraph, loop: Loop) -> None:
    names = ", ".join(map(str, loop.lattice.iterators))
    if len(loop.lattice.iterators) < 2:
        walked = f"{names} alone" if names else "no level that stores coordinates"
        raise _refused(graph, loop, f"it walks {walked}", "gallop where sparse operands meet")
    if len(loop.lattice.points) > 1 or loop.lattice.full:
        raise _refused(
            graph,
            loop,
            f"it walks {names} and comes to coordinates that one of them does not store",
            "gallop where sparse operands are multiplied, not added",
        )
    operands = dict(graph.problem.operands)
    for iterator in loop.lattice.iterators:
        tensor = iterator.access.tensor
        if tensor not in operands:
            continue
        level = operands[tensor].format.levels[iterator.level]
        if not level.is_list:
            raise _refused(
                graph,
                loop,
                f"{iterator} is a {level.kind.value} level, in which no coordinate is searched for",
                f"store {tensor} as CSR or CSF",
            )


def _refused(graph: IterationGraph, loop: Loop, reason: str, hint: str) -> ScheduleError:
    return ScheduleError(f"The loop {graph.called(loop)} cannot gallop: {reason}", hint=hint)
