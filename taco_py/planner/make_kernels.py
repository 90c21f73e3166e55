"""The kernels of a program whose assignments are split: one each, with the copies that it needs.

T[j] = sum(k, B[j,k] * x[k]);  y[i] = sum(j, A[i,j] * T[j])
→ the kernel of T;  A_1 is A in CSR;  the kernel of y
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from codegen.names import Names
from taco_py.compiler.schedule.schedule import OPEN
from taco_py.compiler.ways.way import Question
from taco_py.compiler.ways.ways import choose
from taco_py.language.notation.checks import accesses, all_indices, operand_names
from taco_py.language.notation.nodes import Assignment
from taco_py.language.problem import Problem, TensorType
from taco_py.planner.context import Context
from taco_py.planner.ir.goal import problem_of, real_statistics
from taco_py.planner.ir.nodes import (
    Cast,
    Gather,
    KernelStep,
    Operand,
    Reformat,
    Step,
    TakeSize,
    Unfuse,
    has_format,
)
from taco_py.planner.ir.program import Define, Node, Program
from taco_py.planner.make_kernel import size_sources, with_kernel
from taco_py.planner.rules import catalogue
from taco_py.planner.rules.layout import copy_into_rows
from taco_py.planner.rules.layout.fuse_modes import fuse
from taco_py.planner.rules.tidy.canonical_names import canonical
from taco_py.planner.search import apply_rules

Orders = tuple[tuple[str, ...], ...]


def with_kernels(
    program: Program, context: Context, last: str | None = None
) -> tuple[Program, Mapping[str, Orders | None]]:
    """Return the program with a kernel and its copies for each assignment, and the kernels' loops.

    last  the target that nothing reads, whose final step may make a tensor of another name
    """
    read = {name for define in program.defines for name in operand_names(define.assignment)}
    steps: list[Step] = []
    forms = {kernel.problem: kernel for kernel in program.kernels}  # of steps planned before
    loops: dict[str, Orders | None] = {}
    results = program.results
    for step in program.steps:
        if isinstance(step, Define):
            planned = _like_another(program, step, context, forms)
            loops[step.target] = None
            if planned is None:
                planned, loops[step.target] = _kernel(program, step, context, step.target == last)
            steps += planned_steps(planned.steps)
            program = program.with_facts(planned.facts)
            results = planned.results if step.target == last else results
        elif not isinstance(step, TakeSize) or step.target in read:
            steps.append(step)
    program = replace(program, steps=tuple(steps), results=results)
    return program.with_facts(_kernel_facts(program)), loops


def _like_another(
    program: Program, define: Define, context: Context, forms: Mapping[Problem, KernelStep]
) -> Program | None:
    """Return the program with the kernel of an equal step; None where there is none."""
    if not forms:
        return None
    request = context.request(program, define.target)
    problem = problem_of(define.assignment, program.facts, request)
    plain = KernelStep(define.target, problem, OPEN, size_sources(problem))
    form = canonical(plain)
    like = forms.get(form.problem)
    if like is None or like.schedule.make != OPEN.make:
        return None
    stats = real_statistics(define.assignment, program.facts, context.goal.machine)
    if choose(Question(problem, lambda: stats, context.goal.libraries)).make != OPEN.make:
        return None
    kernel = replace(form, problem=like.problem, schedule=like.schedule)
    return replace(program.only(define.target), steps=(kernel,))


def _kernel_facts(program: Program) -> dict[str, Operand]:
    """Return the facts of the kernels' results as the kernels make them, before conversions."""
    return {
        kernel.target: replace(program.facts[kernel.target], type=kernel.problem.result)
        for kernel in program.kernels
    }


def planned_steps(steps: Iterable[Node]) -> Iterator[Step]:
    """Yield the executable steps, without assignments."""
    return (step for step in steps if not isinstance(step, Define))


def _kernel(
    program: Program, define: Define, context: Context, last: bool
) -> tuple[Program, Orders | None]:
    """Return the program of one assignment with its kernel, copies and conversions, and
    its loops.
    """
    target, part = define.target, define.assignment
    alone = program.only(target)
    if last:
        planned = _planned_alone(alone, context)
        return planned, _loops_of(part, planned)
    facts = dict(program.facts)
    fused = fuse(part, facts, context.request(program, target), Names(facts))
    if len(fused.assignment.target.indices) == len(part.target.indices):
        planned = _planned_alone(alone, context)
        return as_temporary(planned, target), _loops_of(part, planned)
    raw = alone.fresh(f"{target}_fused")
    facts[raw] = replace(facts[target], type=fused.request.type)
    assignment = replace(fused.assignment, target=replace(fused.assignment.target, tensor=raw))
    fused_part = replace(
        alone, steps=(*fused.steps, Define(assignment)), facts=facts, results=(raw,)
    )
    planned = as_temporary(_planned_alone(fused_part, context), raw)
    unfused = Unfuse(target, raw, _sizes_of(part))
    return replace(planned, steps=(*planned.steps, unfused), results=(target,)), None


def _planned_alone(program: Program, context: Context) -> Program:
    """Return the program of one assignment with its kernel planned by the rules for operands and
    loops."""
    result_type = program.result_type
    program = apply_rules(catalogue.OPERANDS, program, context)
    entries = context.log.of(copy_into_rows.RULE.name)
    reason = next((entry.reason for entry in entries if entry.target == program.result), "")
    program = with_kernel(program, context, result_type, Names(program.facts), reason)
    return apply_rules(catalogue.KERNELS, program, context)


def as_temporary(program: Program, target: str) -> Program:
    """Return the program whose last step makes `target`, with the facts of all steps."""
    steps = _landing_at(tuple(planned_steps(program.steps)), target, Names(program.facts))
    facts = dict(program.facts)
    for step in steps:
        facts[step.target] = _facts_of(step, facts.get(step.target, facts[target]))
    return replace(program, steps=steps, facts=facts)


def _facts_of(step: Step, like: Operand) -> Operand:
    """Return the facts of a step's tensor, from the facts of a tensor of the same shape."""
    match step:
        case KernelStep():
            return replace(like, type=step.problem.result)
        case Cast():
            return replace(like, type=TensorType(step.format, step.dtype))
        case Reformat() | Gather():
            return replace(like, type=replace(like.type, format=step.format))
    return like


def _sizes_of(part: Assignment) -> tuple[tuple[str, int], ...]:
    """Return for each index of the target an operand and a mode with its size."""
    places = {
        index: (access.tensor, mode)
        for access in accesses(part.value)
        for mode, index in enumerate(access.indices)
    }
    return tuple(places[index] for index in part.target.indices)


def _loops_of(assignment: Assignment, program: Program) -> Orders | None:
    """Return the loop orders of a program's only kernel; None where its indices differ."""
    (kernel,) = program.kernels
    same = {*all_indices(kernel.problem.assignment)} == {*all_indices(assignment)}
    return kernel.schedule.orders if same else None


def _landing_at(steps: tuple[Step, ...], name: str, names: Names) -> tuple[Step, ...]:
    """Return the steps with the last target called `name`, as later assignments expect."""
    last = steps[-1]
    if last.target == name or not has_format(last):
        return steps
    raw = names.fresh(f"{name}_raw")
    renamed = tuple(
        replace(s, target=raw) if isinstance(s, KernelStep) and s.target == name else s
        for s in steps[:-1]
    )
    return (*renamed, replace(last, target=name, source=raw))
