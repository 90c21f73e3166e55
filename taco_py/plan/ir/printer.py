"""Programs as text: a line for each given tensor, then one for each step.

A    ds/float64/int32 of 60 by 56, 168 entries
x    d/float64 of 56, 56 entries
y[i] = sum(j, A[i,j] * x[j])    → d/float64
"""

from __future__ import annotations

from collections.abc import Iterator

from taco_py.notation.printer import to_text
from taco_py.plan.ir.nodes import Compute, Operand
from taco_py.plan.ir.program import Define, Node, Program


def program_text(program: Program) -> str:
    """The program, with the facts of the tensors that are given and the types of those it makes."""
    return "\n".join((*_given(program), *(_step(step, program) for step in program.steps)))


def _given(program: Program) -> Iterator[str]:
    """A line for each tensor that no step makes."""
    targets = {step.target for step in program.steps}
    for name, facts in program.facts.items():
        if name not in targets:
            yield f"{name:4} {_facts(facts)}"


def _facts(facts: Operand) -> str:
    shape = " by ".join(map(str, facts.shape)) or "one number"
    return f"{facts.type} of {shape}, {facts.nnz:.4g} entries"


def _step(step: Node, program: Program) -> str:
    """The line of one step."""
    match step:
        case Define(assignment, note):
            type = program.facts[step.target].type
            return f"{to_text(assignment)}    → {type}{note and f'    # {note}'}"
        case Compute(problem=problem, schedule=schedule):
            return f"{to_text(problem.assignment)}    → {problem.result} by {schedule}"
        case _:
            return step.line
