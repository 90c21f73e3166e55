"""Leave the rows of a temporary in any order where no reader relies on their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from taco_py.plan.ir.formats import unordered_last
from taco_py.plan.ir.nodes import Compute, Step
from taco_py.schedule.apply import loops_of


def leave_unsorted(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The steps with temporaries whose rows come as they are met where no reader minds."""
    asked = set(_relied_on(steps))
    return tuple(
        _unsorted(step) if isinstance(step, Compute) and step.target not in asked else step
        for step in steps
    )


def _unsorted(step: Compute) -> Compute:
    result = step.problem.result
    if not all(level.full for level in result.format.levels[:-1]):
        return step  # threads that share a sparse root ask for it in order
    unsorted = replace(result, format=unordered_last(result.format))
    return replace(step, problem=replace(step.problem, result=unsorted))


def _relied_on(steps: Sequence[Step]) -> Iterator[str]:
    """The tensors that are wanted in order: the result, what is copied, what loops rely on."""
    yield steps[-1].target
    sparse = {s.target for s in steps if isinstance(s, Compute) and _sparse(s)}
    for step in steps:
        if not isinstance(step, Compute):
            yield step.source
        elif sparse.intersection(step.source(name) for name, _ in step.problem.operands):
            loops = loops_of(step.problem.assignment, step.schedule)
            for needed in loops.graph(step.problem).requirements:
                if needed.ordered:
                    yield step.source(needed.tensor)


def _sparse(step: Compute) -> bool:
    return not step.problem.result.format.is_dense
