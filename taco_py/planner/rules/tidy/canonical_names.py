"""Name kernels of temporaries by their form: temporaries that compute alike share one kernel.

    T[a,c] = sum(b, op4[a,b] * op2[b,c])  →  T[i,j] = sum(k, A[i,k] * B[k,j])

The tensors that such a kernel reads and makes keep their names in the program.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from string import ascii_uppercase

from taco_py.language.notation.checks import all_indices, rename
from taco_py.language.problem import SideResult
from taco_py.planner.context import Context
from taco_py.planner.ir.nodes import KernelStep
from taco_py.planner.ir.program import Program
from taco_py.planner.rules.base import Outcome, Phase, Rewrite, Rule, Site

INDICES = "ijklmnpqrstuvw"
TENSORS = ascii_uppercase.replace("T", "")


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Name the indices and tensors of a kernel by the order of their first use."""
    kernel = program.kernel(site.target)
    new = canonical(kernel)
    return None if new == kernel else Rewrite(program.with_kernel(new))


def of_temporaries(program: Program) -> Iterator[Site]:
    """Yield the kernels of temporaries whose names are not canonical."""
    *before, last = program.kernels
    users = {*program.results, last.target if len(program.results) == 1 else ""}
    is_canonical: dict[
        int, bool
    ] = {}  # whether a problem's names are such, for steps may share one
    for kernel in before:
        problem = id(kernel.problem)
        if problem not in is_canonical:
            is_canonical[problem] = canonical(kernel) == kernel
    inner = (kernel for kernel in before if kernel.target not in users)
    return iter([Site(kernel.target) for kernel in inner if not is_canonical[id(kernel.problem)]])


def canonical(step: KernelStep) -> KernelStep:
    """Return the step with its kernel's tensors and indices named by the order of their first
    use."""
    problem = step.problem
    target = problem.assignment.target.tensor
    every = (index for one in problem.assignments for index in all_indices(one))
    indices = dict(zip(dict.fromkeys(every), _names(INDICES), strict=False))
    tensors = dict(zip((name for name, _ in problem.operands), _names(TENSORS), strict=False))
    renamed = replace(
        problem,
        assignment=rename(problem.assignment, {**tensors, target: "T"}, indices),
        operands=tuple((tensors[name], type) for name, type in problem.operands),
        static=tuple((indices[i], size) for i, size in problem.static if i in indices),
        vast=tuple(indices[i] for i in problem.vast),
        side=tuple(_renamed(s, f"T{n}", tensors, indices) for n, s in enumerate(problem.side, 1)),
    )
    return replace(
        step,
        problem=renamed,
        sizes=tuple((indices[i], tensors[name], mode) for i, name, mode in step.sizes),
        sources=tuple((new, step.source(old)) for old, new in tensors.items()),
        schedule=step.schedule.renamed(indices, tensors),
    )


def _renamed(
    side: SideResult, name: str, tensors: dict[str, str], indices: dict[str, str]
) -> SideResult:
    """Return a side result with renamed tensors and indices."""
    new = rename(side.assignment, {**tensors, side.target.tensor: name}, indices)
    return SideResult(new.target, side.type, new.value)


def _names(letters: str) -> Iterator[str]:
    """Yield the letters, then the letters with numbers."""
    yield from letters
    for number in count(2):
        yield from (f"{letter}{number}" for letter in letters)


RULE = Rule("canonical_names", Phase.TIDY, apply, of_temporaries)
