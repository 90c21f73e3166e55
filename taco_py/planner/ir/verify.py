"""What is legal in a program, as a program: run after every rule in tests."""

from __future__ import annotations

from taco_py.language.diagnostics.errors import InternalError
from taco_py.language.notation.checks import accesses, rename
from taco_py.language.notation.compared_values import compared
from taco_py.language.notation.nodes import Access, Assignment
from taco_py.language.notation.printer import to_text
from taco_py.planner.ir.nodes import Cast, Gather, KernelStep, Reformat, has_format
from taco_py.planner.ir.program import Define, Node, Program, reads


def verify(program: Program) -> None:
    """Raise InternalError unless each step reads tensors that exist by then, in all their modes."""
    targets = [step.target for step in program.steps]
    twice = {name for name in targets if targets.count(name) > 1}
    if twice:
        raise InternalError(f"Expected each tensor to be made once, found {sorted(twice)} twice")
    missing = [name for name in program.results if name not in targets]
    if missing or not program.results:
        raise InternalError(f"Expected steps that make the results {missing}, found {targets}")
    exist = set(program.facts) - set(targets)
    for step in program.steps:
        missing = [name for name in reads(step) if name not in exist]
        if missing:
            raise InternalError(f"Expected {missing} before {step.target}, which reads them")
        if step.target not in program.facts:
            raise InternalError(f"Expected facts of {step.target}, found none")
        if isinstance(step, Define):
            _check_modes(step, program)
        elif isinstance(step, KernelStep):
            _check_kernel(step, program)
        elif has_format(step):
            _check_conversion(step, program)
        exist.add(step.target)
    _check_once(program)


def _check_once(program: Program) -> None:
    """Raise InternalError unless values that are compared with themselves are computed once.

    Tensors that are said to be so exist. In kernels no comparison has an expression on one side
    that the other side may have its value from, but for what is the same wherever it is computed.
    """
    lost = program.unique.difference(program.facts)
    if lost:
        raise InternalError(f"Expected steps that make {sorted(lost)} once, found none")
    if not any(isinstance(step, KernelStep) for step in program.steps):
        return  # whose text is yet to be rewritten
    assignments = [
        assignment for step in program.steps if (assignment := _in_own_names(step)) is not None
    ]
    repeated = compared(assignments, program.dtypes).forms
    if repeated:
        raise InternalError(
            f"Expected what is compared with itself to be computed once, found "
            f"{to_text(Assignment(Access('', ()), next(iter(repeated))))} computed again"
        )


def _in_own_names(step: Node) -> Assignment | None:
    """Return a step's assignment in the program's names; None where it moves data."""
    if isinstance(step, Define):
        return step.assignment
    if not isinstance(step, KernelStep):
        return None
    assignment = step.problem.assignment
    names = {name: step.source(name) for name, _ in step.problem.operands}
    return rename(assignment, {**names, assignment.target.tensor: step.target})


def _check_modes(step: Define, program: Program) -> None:
    """Raise InternalError unless each access has an index for each mode of its tensor."""
    for access in accesses(step.assignment):
        order = program.facts[access.tensor].type.format.order
        if order != len(access.indices) or len(program.facts[access.tensor].shape) != order:
            raise InternalError(f"Expected {order} indices of {access.tensor}, found {access}")
    order = program.facts[step.target].type.format.order
    if order != len(step.assignment.target.indices):
        raise InternalError(f"Expected {order} modes of {step.target}, found {step.assignment}")


def _check_conversion(step: Reformat | Gather | Cast, program: Program) -> None:
    """Raise InternalError unless the result of a conversion has the program's type."""
    stored = program.facts[step.target].type.format
    if stored != step.format:
        raise InternalError(f"Expected {step.target} in {stored}, found it in {step.format}")


def _check_kernel(kernel: KernelStep, program: Program) -> None:
    """Raise InternalError unless a kernel reads and makes tensors as the program stores them."""
    types = [(kernel.target, kernel.problem.result)]
    types += [(kernel.source(name), type) for name, type in kernel.problem.operands]
    for name, type in types:
        stored = program.facts[name].type.format
        if type.format.mode_order != stored.mode_order or len(type.format.levels) != stored.order:
            raise InternalError(f"Expected {name} in {stored}, found it in {type.format}")
