"""Convert operands to the type of a product before its kernel, not in it.

A kernel converts each value as it reads it (`TensorType.stored`), which costs nothing where it
reads a value once. A product of matrices reads each many times, and the kernels made for that read
one type: there a converted copy comes first.

    C[i,j] = sum(k, A[i,k] * B[k,j])    A read as float64 from int32
    → A_float64 is A in float64;  C[i,j] = sum(k, A_float64[i,k] * B[k,j])
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from codegen.names import Names
from taco_py.compiler.ways.way import Question
from taco_py.compiler.ways.ways import choose
from taco_py.language.notation.checks import operand_names, rename
from taco_py.language.notation.nodes import Assignment
from taco_py.planner.ir.goal import Request, problem_of, real_statistics
from taco_py.planner.ir.nodes import Cast, Operand
from taco_py.planner.rules.base import Phase, Rule, StepsBefore, assignments, with_steps_before


def cast_before(
    assignment: Assignment, operands: Mapping[str, Operand], request: Request, names: Names
) -> StepsBefore | None:
    """Read converted copies where a faster kernel reads them."""
    stored = [name for name in operand_names(assignment) if operands[name].type.stored]
    if not stored:
        return None
    types = {name: operands[name].type for name in stored}
    new = {name: names.fresh(f"{name}_{type.dtype}") for name, type in types.items()}
    facts = {**operands, **{new[name]: _cast(operands[name]) for name in stored}}
    converted = rename(assignment, tensors=new)
    stats = real_statistics(converted, facts, request.machine)
    question = Question(problem_of(converted, facts, request), lambda: stats, request.libraries)
    if not choose(question).way.reuses:
        return None
    reason = "its values are used many times"
    casts = (Cast(new[name], name, type.format, type.dtype, reason) for name, type in types.items())
    return StepsBefore(converted, facts, tuple(casts))


def _cast(operand: Operand) -> Operand:
    return replace(operand, type=replace(operand.type, stored="", unit_stride=True))


RULE = Rule("cast_before", Phase.LAYOUT, with_steps_before(cast_before), assignments)
