"""Leave the rows of a temporary in any order where no reader relies on their order.

    T[i,j] = sum(k, A[i,k] * B[k,j]);  y[i] = sum(k, T[i,k] * x[k])
    → the same, with each row of T in the order in which its kernel meets columns

Such a row is made in a table, and sorted only where a reader walks it beside another operand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from taco_py.compiler.schedule.apply import loops_of
from taco_py.language.legal.stored import is_sparse
from taco_py.language.notation.checks import operand_names
from taco_py.planner.context import Context
from taco_py.planner.ir.formats import unordered_last
from taco_py.planner.ir.nodes import KernelStep
from taco_py.planner.ir.program import Define, Program
from taco_py.planner.rules.base import Outcome, Phase, Rewrite, Rule, Site, program_site


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Leave the rows of each temporary unsorted whose readers need no order."""
    before, ordered = program, {*program.results, *_relied_on(program)}
    for step in before.kernels:
        new = step if step.target in ordered else _unsorted(step)
        if new is not step:
            facts = program.facts[step.target]
            type = replace(facts.type, format=unordered_last(facts.type.format))
            program = program.with_kernel(new).with_facts({step.target: replace(facts, type=type)})
    return None if program is before else Rewrite(program)


def _unsorted(step: KernelStep) -> KernelStep:
    result = step.problem.result
    if not all(level.full for level in result.format.levels[:-1]):
        return step  # threads that share a sparse root ask for it in order
    unsorted = replace(result, format=unordered_last(result.format))
    if unsorted == result:
        return step
    return replace(step, problem=replace(step.problem, result=unsorted))


def _relied_on(program: Program) -> Iterator[str]:
    """Yield the tensors that copies or loops need in order."""
    sparse = {step.target for step in program.kernels if _sparse(step)}
    for step in program.steps:
        if isinstance(step, Define):
            yield from operand_names(step.assignment)
        elif not isinstance(step, KernelStep):
            yield step.source
        elif sparse.intersection(step.source(name) for name, _ in step.problem.operands):
            loops = loops_of(step.problem.assignment, step.schedule)
            for requirement in loops.graph(step.problem).requirements:
                if requirement.ordered:
                    yield step.source(requirement.tensor)


def _sparse(step: KernelStep) -> bool:
    return is_sparse(step.problem.result.format)


RULE = Rule("leave_unsorted", Phase.TIDY, apply, program_site)
