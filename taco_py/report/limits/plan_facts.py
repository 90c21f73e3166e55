"""The facts of a plan's tensors that a bound may go by: no more than is certain of temporaries.

T[i,k] = A[i,k] + D[i,k];  C[i,j] = T[i,k] * B[k,j]     planned for 100 × 100, called with 200
→ facts of A, B and D, and none of T
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from taco_py.language.legal.stored import is_full
from taco_py.planner.ir.nodes import KernelStep, Operand
from taco_py.planner.ir.plan import Plan
from taco_py.planner.ir.program import reads


def facts_for_bounds(plan: Plan, operands: Mapping[str, Operand] | None) -> dict[str, Operand]:
    """Return the facts of operands, and of the results of steps if they are certain.

    operands  of the operands, where they are not those that the plan was made for
    """
    planned, operands = plan.program.facts, operands or {}
    targets = {step.target for step in plan.steps}
    planned_operands = {name: fact for name, fact in planned.items() if name not in targets}
    facts = {**planned_operands, **operands}
    if all(_alike(facts[name], fact) for name, fact in planned_operands.items()):
        facts.update(_certain(plan))
    return facts


def _alike(one: Operand, other: Operand) -> bool:
    return one.shape == other.shape and one.stored == other.stored


def _certain(plan: Plan) -> Iterator[tuple[str, Operand]]:
    """Return the results of steps, without sparse results, whose entries are estimated."""
    estimated: set[str] = set()
    for step in plan.steps:
        if isinstance(step, KernelStep):
            unsure = not is_full(step.problem.result.format)
        else:
            unsure = not estimated.isdisjoint(reads(step))
        if unsure:
            estimated.add(step.target)
        else:  # which entries there are, the operands that it was planned for say alone
            yield step.target, replace(plan.program.facts[step.target], entries=None)
