"""The preconditions of unrolled and vectorized loops.

Both       a loop that counts, or walks one level: not a merge, and not a level of a coordinate list
           that has one coordinate at a time
Unrolled   no threads or vector lanes share its iterations
Vectorized its iterations are independent: each writes different elements, or adds real numbers up
in
           a scalar; nothing in it appends, or maintains a list or a table
"""

from __future__ import annotations

from collections.abc import Iterator

from taco_py.compiler.concrete.nodes import Assign, Workspace
from taco_py.compiler.concrete.tree import assignments, foralls, workspaces_of
from taco_py.compiler.iteration.graph import IterationGraph, Loop, Range
from taco_py.compiler.schedule.merges import check_merge
from taco_py.language.diagnostics.errors import ScheduleError


def check_modes(graph: IterationGraph) -> None:
    """Raise ScheduleError unless each loop can be executed in its mode."""
    for loop in graph.loops:
        _check_mode(graph, loop)
        check_merge(graph, loop)


def _check_mode(graph: IterationGraph, loop: Loop) -> None:
    if loop.mode.unroll:
        for reason, hint in _unroll_refusals(graph, loop):
            raise _refused(graph, loop, "unrolled", reason, hint)
    if loop.mode.vector:
        for reason, hint in _vector_refusals(graph, loop):
            raise _refused(graph, loop, "vectorized", reason, hint)


def _refused(graph: IterationGraph, loop: Loop, verb: str, reason: str, hint: str) -> ScheduleError:
    return ScheduleError(f"The loop {graph.called(loop)} cannot be {verb}: {reason}", hint=hint)


Refusals = Iterator[tuple[str, str]]


def _unroll_refusals(graph: IterationGraph, loop: Loop) -> Refusals:
    yield from _counting(graph, loop)
    if loop.mode.vector or loop.mode.parallel is not None:
        takers = "vector lanes" if loop.mode.vector else "threads"
        yield (
            f"{takers} take its iterations",
            f"split {graph.called(loop)} and unroll the inner loop",
        )


def _counting(graph: IterationGraph, loop: Loop) -> Refusals:
    """Yield the reasons why a loop is no `for` loop."""
    if loop.merges and loop.range is not Range.TILES:
        names = ", ".join(map(str, loop.lattice.iterators))
        yield (
            f"it walks {names} along with others, each iteration as far as the data say",
            f"choose a loop over one level, or split {graph.called(loop)} and mark its tiles",
        )
    operands = dict(graph.problem.operands)
    for iterator in loop.lattice.iterators:
        tensor = iterator.access.tensor
        if tensor in operands:
            level = operands[tensor].format.levels[iterator.level]
            if level.chained:
                yield (
                    f"{iterator} has one coordinate at a time, which takes no loop",
                    f"mark the loop around it, or store {tensor} as CSR or CSF",
                )


def _vector_refusals(graph: IterationGraph, loop: Loop) -> Refusals:
    yield from _counting(graph, loop)
    if loop.mode.parallel is not None:
        yield (
            "threads take its iterations",
            f"split {graph.called(loop)} and vectorize the inner loop",
        )
    for inner in foralls(loop.body):
        if inner.mode.parallel is not None:
            yield (
                f"threads share the loop {graph.called(graph.loop_of(inner))} inside it",
                "share a loop around it",
            )
    yield from _appending(graph, loop)
    inner_workspaces = {w.name for w in workspaces_of(loop.body)}
    outside = {w.name: w for w in workspaces_of(graph.statement) if w.name not in inner_workspaces}
    lists = [w for w in workspaces_of(loop.body) if not w.is_number]
    for workspace in lists:
        yield f"the workspace {workspace.name} in it has one place in memory", "mark an inner loop"
    for assign in assignments(loop.body):
        name = assign.target.tensor
        if name in outside:
            yield from _filling(graph, loop, assign, outside[name])
        elif name not in inner_workspaces:
            yield from _adding(graph, loop, assign)


def _appending(graph: IterationGraph, loop: Loop) -> Refusals:
    target, form = graph.problem.assignment.target, graph.problem.result.format
    if not any(a.target.tensor == target.tensor for a in assignments(loop.body)):
        return
    inside = {loop.index, *(inner.index for inner in foralls(loop.body))}
    for level, mode in zip(form.levels, form.mode_order, strict=True):
        if not level.full and target.indices[mode] in inside:
            yield (
                f"it appends coordinates of {target.indices[mode]} to the result, one after "
                "another",
                "ask for a dense result, or mark another loop",
            )


def _filling(graph: IterationGraph, loop: Loop, assign: Assign, workspace: Workspace) -> Refusals:
    if workspace.is_array:
        yield from _adding(graph, loop, assign)
    elif not workspace.is_number:
        yield (
            f"its iterations list the coordinates of {', '.join(workspace.indices)} they write",
            "ask for a dense result, or mark another loop",
        )
    elif workspace.dtype.startswith(("complex", "bool")):
        yield (
            f"it adds up {workspace.dtype} numbers, which have no vector reduction",
            "mark a loop over an index of the result",
        )
    elif assign.operator is None:
        yield f"it overwrites {workspace.name}", "mark a loop over an index of the result"


def _adding(graph: IterationGraph, loop: Loop, assign: Assign) -> Refusals:
    roots = graph.provenance.roots(loop.index)
    summed = [root for root in roots if root not in assign.target.indices]
    if summed:
        name = f"{assign.target.tensor}({','.join(assign.target.indices)})"
        yield (
            f"it is summed over: its iterations add to the same {name}",
            f"sum in a scalar first: put the loops over {', '.join(assign.target.indices)} outside",
        )
    operands = dict(graph.problem.operands)
    for iterator in loop.lattice.iterators:
        operand = operands.get(iterator.access.tensor)
        if operand is not None and not operand.format.levels[iterator.level].unique:
            yield (
                f"it may meet a coordinate of {iterator} more than once",
                "convert the operand to a format without duplicates",
            )
