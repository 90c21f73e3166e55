"""Whether each step of a plan reads and makes tensors of the types that the plan says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taco_py.diagnostics.errors import ScheduleError
from taco_py.notation.checks import accesses
from taco_py.plan.ir.nodes import KernelStep
from taco_py.plan.ir.program import Program
from taco_py.problem import TensorType


def check_types(program: Program) -> None:
    """Raise ScheduleError where a step and the plan differ about a type, or a size's place."""
    for step in program.steps:
        if isinstance(step, KernelStep):
            _check_kernel(step, program)


def _check_kernel(step: KernelStep, program: Program) -> None:
    problem = step.problem
    pairs = [(step.source(name), type) for name, type in problem.operands]
    for name, type in (*pairs, (step.target, problem.result)):
        if type != program.facts[name].type:
            raise ScheduleError(f"Expected {name} as {program.facts[name].type}, found {type}")
