"""Steps that make the same are taken once.

T = sum of the rows of A;  T_1 = sum of the rows of A;  y[i] = T[i] * T_1[i]
→ T = sum of the rows of A;  y[i] = T[i] * T[i]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from taco_py.plan.ir.nodes import Compute, Gather, Step, Unfuse


def share_equal_steps(steps: Iterable[Step], results: Sequence[str]) -> tuple[Step, ...]:
    """The steps without those that make what another one has made; those of results stay."""
    made: dict[Step, str] = {}
    same: dict[str, str] = {}
    left: list[Step] = []
    for step in steps:
        step = _reading(step, same)
        first = made.setdefault(replace(step, target=""), step.target)
        if first == step.target or step.target in results:
            left.append(step)
        else:
            same[step.target] = first
    return tuple(left)


def _reading(step: Step, same: Mapping[str, str]) -> Step:
    """The step with other tensors in the places of those that are the same."""
    if isinstance(step, Compute):
        names = tuple(name for name, _ in step.problem.operands)
        if not any(step.source(name) in same for name in names):
            return step
        sources = ((name, same.get(step.source(name), step.source(name))) for name in names)
        return replace(step, sources=tuple((name, own) for name, own in sources if name != own))
    if isinstance(step, Unfuse):
        sizes = tuple((same.get(tensor, tensor), mode) for tensor, mode in step.sizes)
        step = replace(step, sizes=sizes)
    if isinstance(step, Gather):
        step = replace(step, pattern=same.get(step.pattern, step.pattern))
    return replace(step, source=same.get(step.source, step.source))
