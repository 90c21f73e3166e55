"""Name a copy that a kernel reads as its source, so that equal kernels are shared.

    Y[i,r] = sum(j, X[i,j] * H_jr[r,j])
    →  Y[i,r] = sum(j, X[i,j] * H[r,j])

H_jr is H stored as j,r. The kernel that reads it by the name of H is the one of a call whose H is
stored so, and is compiled once for both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from taco_py.language.notation.checks import rename
from taco_py.planner.context import Context
from taco_py.planner.ir.nodes import Cast, KernelStep, Reformat
from taco_py.planner.ir.program import Program
from taco_py.planner.rules.base import Outcome, Phase, Rewrite, Rule, Site


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Give copies the names of their sources within one kernel."""
    kernel = program.kernel(site.target)
    names = _names(_copies(program), kernel)
    return Rewrite(program.with_kernel(_renamed(kernel, names))) if names else None


def reading_copies(program: Program) -> Iterator[Site]:
    """Yield the kernels whose copies of operands could bear the names of their sources."""
    copies = _copies(program)
    targets = [kernel.target for kernel in program.kernels if copies and _names(copies, kernel)]
    return iter(map(Site, targets))


def _copies(program: Program) -> dict[str, str]:
    """Return the source of each copy."""
    return {s.target: s.source for s in program.steps if isinstance(s, Cast | Reformat)}


def _names(copies: Mapping[str, str], kernel: KernelStep) -> dict[str, str]:
    """Return the operands of a kernel that are copies, with the source names that are free."""
    used = {kernel.problem.assignment.target.tensor, kernel.target}
    used |= {name for name, _ in kernel.problem.operands}
    names_of: dict[str, str] = {}
    for name, _ in kernel.problem.operands:
        source = copies.get(name)
        if source is not None and kernel.source(name) == name and source not in used:
            names_of[name] = source
            used.add(source)
    return names_of


def _renamed(step: KernelStep, names: dict[str, str]) -> KernelStep:
    """Return the kernel with other names of its operands."""
    problem = step.problem
    renamed = replace(
        problem,
        assignment=rename(problem.assignment, names),
        operands=tuple((names.get(name, name), type) for name, type in problem.operands),
    )
    return replace(
        step,
        problem=renamed,
        sizes=tuple((i, names.get(tensor, tensor), mode) for i, tensor, mode in step.sizes),
        sources=(*step.sources, *((new, old) for old, new in names.items())),
        schedule=step.schedule.reading(names),
    )


RULE = Rule("name_copies", Phase.TIDY, apply, reading_copies)
