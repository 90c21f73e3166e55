"""Share the tensor that equal steps make: the first of them makes it for all readers.

    T[i] = sum(j, A[i,j])    makes T, and by another step T_1
    y[i] = T[i] * T_1[i]
    → T[i] = sum(j, A[i,j]);  y[i] = T[i] * T_1[i]    reads T as T_1

Steps that make results stay.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace

from taco_py.language.problem import Problem
from taco_py.planner.context import Context
from taco_py.planner.ir.nodes import Gather, KernelStep, Step, Unfuse
from taco_py.planner.ir.program import Define, Node, Program
from taco_py.planner.rules.base import Outcome, Phase, Rewrite, Rule, Site, program_site


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Omit steps equal to an earlier one, and let their readers read its tensor."""
    steps, same = _shared(program)
    if not same:
        return None
    facts = {name: facts for name, facts in program.facts.items() if name not in same}
    unique = frozenset(same.get(name, name) for name in program.unique)
    return Rewrite(replace(program, steps=steps, facts=facts, unique=unique))


def share_equal_steps(program: Program) -> tuple[Node, ...]:
    """Return the steps without repetitions of earlier ones; steps of results stay."""
    steps, _ = _shared(program)
    return steps


def _shared(program: Program) -> tuple[tuple[Node, ...], dict[str, str]]:
    """Return the steps that stay, and the equal earlier tensor of each omitted one."""
    targets: dict[Hashable, str] = {}
    problems = _Numbers()
    same: dict[str, str] = {}
    left: list[Node] = []
    for step in program.steps:
        step = step if isinstance(step, Define) or not same else _reading(step, same)
        first = step.target
        if not isinstance(step, Define):
            first = targets.setdefault(_key_of(step, problems), step.target)
        if first == step.target or step.target in program.results:
            left.append(step)
        else:
            same[step.target] = first
    return tuple(left), same


class _Numbers:
    """Numbers of problems, equal for equal ones; steps that share one hash it once."""

    def __init__(self) -> None:
        self._of: dict[Problem, int] = {}
        self._by_identity: dict[int, int] = {}

    def of(self, problem: Problem) -> int:
        """Return the number of a problem."""
        number = self._by_identity.get(id(problem))
        if number is None:
            number = self._of.setdefault(problem, len(self._of))
            self._by_identity[id(problem)] = number
        return number


def _key_of(step: Step, problems: _Numbers) -> Hashable:
    """Return a key of all fields of a step but its target."""
    if not isinstance(step, KernelStep):
        return (type(step), *(getattr(step, slot) for slot in type(step).__slots__[1:]))
    parts = (step.schedule, step.sizes, step.sources, step.reason, step.looked_up, step.in_turn)
    return (problems.of(step.problem), *parts)


def _reading(step: Step, same: Mapping[str, str]) -> Step:
    """Return the step with other tensors in place of the equal ones."""
    if isinstance(step, KernelStep):
        names = tuple(name for name, _ in step.problem.operands)
        if not any(step.source(name) in same for name in names):
            return step
        sources = ((name, same.get(step.source(name), step.source(name))) for name in names)
        return replace(
            step, sources=tuple((name, source) for name, source in sources if name != source)
        )
    if isinstance(step, Unfuse):
        sizes = tuple((same.get(tensor, tensor), mode) for tensor, mode in step.sizes)
        step = replace(step, sizes=sizes)
    if isinstance(step, Gather):
        step = replace(step, pattern=same.get(step.pattern, step.pattern))
    return replace(step, source=same.get(step.source, step.source))


RULE = Rule("share_equal_steps", Phase.TIDY, apply, program_site)
