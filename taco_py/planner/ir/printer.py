"""Programs as text that parses back (`plan.ir.parser`).

    A: ds/float64/int32 of 60 by 60, 168 entries
    x: d/float64 of 60, 60 entries
    B = take_diagonal(source='A', labels=('i', 'i'))    → s/float64/int32 of 60, 41 entries
    y[i] = B[i] * x[i]    → d/float64 of 60, 60 entries    # the note beside it
    z[i] = sum(j, A[i,j] * x[j])    → d/float64 of 60, 60 entries    by loops(i,j)
        operands A: ds/float64/int32, x: d/float64
        result d/float64
        sizes i=A.0, j=A.1
    sizes i=60
    return y, z

A line for each tensor that is given, one for each step with the facts of the tensor that it makes,
the sizes of indices, tensors that are computed once, and the results. Coordinates of operands are
no part of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, get_args

from taco_py.language.formats import Format
from taco_py.language.legal.stored import is_full
from taco_py.language.notation.nodes import Assignment, Call, Expr, Literal
from taco_py.language.notation.operators import Operator
from taco_py.language.notation.printer import to_text
from taco_py.language.notation.tree import map_children
from taco_py.language.problem import TensorType, fill_word
from taco_py.planner.ir.nodes import KernelStep, Operand, Transformation
from taco_py.planner.ir.program import Define, Node, Program

AFTER = "after "
ARROW = "    → "
BY = "    by "
NOTE = "    # "
REASONS = {"why": "reason", "looked_up": "looked_up", "added": "in_turn"}
"""The words of a kernel's reasons, each a line below it, and the fields that store them."""
ANY_ORDER = "~"
"""Stands before the letter of a level whose coordinates may come in any order."""


def verb(kind: type) -> str:
    """Return the name of a kind of step: TakeDiagonal → take_diagonal."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower()


VERBS: Mapping[str, type] = {verb(kind): kind for kind in get_args(Transformation)}
"""The steps that are no kernels, by their words."""


def program_text(program: Program) -> str:
    """Return the text of a program, a line for each operand and each step."""
    return "\n".join(_lines(program))


def _lines(program: Program) -> Iterator[str]:
    targets = {step.target for step in (*program.steps, *program.after)}
    for name, facts in program.facts.items():
        if name not in targets:
            yield f"{name}: {facts_text(facts)}"
    for step in program.steps:
        yield _step(step, program)
    for step in program.after:
        yield AFTER + _step(step, program)
    if program.sizes:
        yield f"sizes {', '.join(f'{i}={number(n)}' for i, n in program.sizes.items())}"
    if program.static:
        yield f"static {', '.join(f'{i}={n}' for i, n in program.static)}"
    if program.unique:
        yield f"once {', '.join(sorted(program.unique))}"
    yield f"return {', '.join(program.results)}"


def _step(step: Node, program: Program) -> str:
    """Return the line of one step."""
    facts = facts_text(program.facts[step.target])
    match step:
        case Define(assignment, note):
            return assignment_text(assignment) + ARROW + facts + (note and NOTE + escaped(note))
        case KernelStep():
            return "\n    ".join((kernel_line(step, facts), *_kernel_details(step)))
        case _:
            return move_text(step) + ARROW + facts


def kernel_line(step: KernelStep, facts: str) -> str:
    """Return the line of a kernel: its assignment, its facts and its schedule.

    y[i] = sum(j, A[i,j] * x[j])    → d/float64 of 60, 60 entries    by loops(i,j)
    """
    return assignment_text(step.problem.assignment) + ARROW + facts + BY + str(step.schedule)


def _kernel_details(step: KernelStep) -> Iterator[str]:
    """Yield the lines below a kernel: other names of tensors, types, sizes, reasons."""
    problem = step.problem
    if step.target != problem.assignment.target.tensor:
        yield f"makes {step.target}"
    if step.sources:
        yield f"reads {', '.join(f'{source} as {name}' for name, source in step.sources)}"
    if problem.operands:
        yield f"operands {', '.join(f'{name}: {type_text(t)}' for name, t in problem.operands)}"
    yield f"result {type_text(problem.result)}"
    for side in problem.side:
        yield f"besides {assignment_text(side.assignment)}: {type_text(side.type)}"
    if step.sizes:
        yield f"sizes {', '.join(f'{i}={name}.{mode}' for i, name, mode in step.sizes)}"
    if problem.static:
        yield f"static {', '.join(f'{i}={size}' for i, size in problem.static)}"
    if problem.vast:
        yield f"vast {', '.join(problem.vast)}"
    for word, field in REASONS.items():
        if reason := getattr(step, field):
            yield f"{word} {escaped(reason)}"


def move_text(step: Transformation) -> str:
    """Return the text of a step that is no kernel, with its arguments by name.

    Squeeze("B", "A", (0,))  →  B = squeeze(source='A', axes=(0,))
    """
    values = ((field_.name, getattr(step, field_.name)) for field_ in fields(step))
    arguments = (f"{name}={_literal(value)}" for name, value in values if name != "target")
    return f"{step.target} = {verb(type(step))}({', '.join(arguments)})"


def _literal(value: Any) -> str:
    return repr(format_text(value) if isinstance(value, Format) else value)


def facts_text(facts: Operand) -> str:
    """Return the type, the shape and the number of entries of a tensor.

    joined=(True, False)  →  … , joined yes no
    """
    shape = " by ".join(map(str, facts.shape)) or "one number"
    marks = "".join(" yes" if contiguous else " no" for contiguous in facts.contiguous)
    return (
        f"{type_text(facts.type)} of {shape}, {number(facts.nnz)} entries"
        f"{marks and f', joined{marks}'}"
    )


def type_text(type: TensorType) -> str:
    """Return the type of a tensor: format, dtype, and what differs from the default.

    ds/float64/int32    d/float64    d/float64/strided    ds/float64 from float32/int64
    ds/float64/int32/fill=-inf
    """
    values = f"{type.dtype} from {type.stored}" if type.stored else type.dtype
    usual = "int32" if is_full(type.format) else ""
    indices = f"/{type.index_dtype}" if type.index_dtype != usual else ""
    strided = "" if type.unit_stride else "/strided"
    return f"{format_text(type.format)}/{values}{indices}{strided}{fill_word(type.fill)}"


def format_text(form: Format) -> str:
    """Return the letters of a format, with a mark where coordinates may come in any order.

    ds:1,0    d~s
    """
    letters, colon, modes = str(form).partition(":")
    marks = ("" if level.ordered or level.full else ANY_ORDER for level in form.levels)
    marked = "".join(mark + letter for mark, letter in zip(marks, letters, strict=True))
    return marked + colon + modes


def assignment_text(assignment: Assignment) -> str:
    """Return the assignment with the dtype of each typed literal: int8(0) - A[i]."""
    return to_text(
        Assignment(assignment.target, _with_dtypes(assignment.value), assignment.operator)
    )


def _with_dtypes(expr: Expr) -> Expr:
    """Return the expression with a call of its dtype around each typed literal."""
    if isinstance(expr, Literal) and expr.dtype is not None:
        return Call(Operator(expr.dtype, expr.dtype, 1, "", 4), (Literal(expr.value),))
    return map_children(expr, _with_dtypes)


def number(value: float) -> str:
    """Return a number that reads back equal: 168, 0.5, inf."""
    return str(int(value)) if value == value // 1 and abs(value) < 2**53 else repr(float(value))


def escaped(text: str) -> str:
    r"""Return text in one line: backslashes and ends of lines as `\\` and `\n`."""
    return text.replace("\\", "\\\\").replace("\n", "\\n")
