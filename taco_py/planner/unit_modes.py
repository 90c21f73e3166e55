"""Operands of the text without modes of size 1, whose indices its assignment does not have.

    y[i] = A[i,u]    u of size 1, broadcast
    → A_squeezed is A without its mode u;  y[i] = A_squeezed[i]

No rule: the text is about the operands without these modes to begin with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from taco_py.language.legal.stored import is_sparse
from taco_py.language.notation.checks import rename
from taco_py.language.problem import TensorType
from taco_py.planner.ir.formats import without_modes
from taco_py.planner.ir.nodes import Operand, Squeeze
from taco_py.planner.ir.program import Program


def squeezed(program: Program, axes: Sequence[tuple[str, tuple[int, ...]]]) -> Program:
    """Read copies of operands without the modes `axes` in place of the operands."""
    for source, modes in axes:
        target = program.fresh(f"{source}_squeezed")
        facts = {target: squeezed_facts(program.facts[source], modes)}
        program = program.before(program.result, (Squeeze(target, source, modes),), facts)
        program = program.with_assignment(rename(program.last, tensors={source: target}))
    return program


def squeezed_facts(facts: Operand, axes: tuple[int, ...]) -> Operand:
    """Return the facts of an operand without its modes `axes`, of size 1."""
    shape = tuple(n for axis, n in enumerate(facts.shape) if axis not in axes)
    return Operand(_without_modes(facts.type, axes), shape, facts.nnz)


def _without_modes(type: TensorType, axes: tuple[int, ...]) -> TensorType:
    form = without_modes(type.format, type.format.order - len(axes))
    return replace(type, format=form, unit_stride=is_sparse(type.format))
