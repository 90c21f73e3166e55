"""A kernel over fused modes as an assignment over the modes of the tensors of its program.

X_f is X with its modes as one;  T_f[u] = exp(X_f[u]);  T is T_f with its modes apart
→  T[i,j] = exp(X[i,j])
"""

from __future__ import annotations

from collections.abc import Mapping

from codegen.names import Names
from codegen.records import dataclass
from taco_py.compiler.schedule.commands import Parallelize
from taco_py.compiler.schedule.schedule import OPEN
from taco_py.compiler.ways.ways import way_of
from taco_py.language.legal.stored import is_full
from taco_py.language.legal.types import is_complex
from taco_py.language.notation.checks import accesses, all_indices
from taco_py.language.notation.nodes import Access, Assignment, Expr, Reduce
from taco_py.language.notation.tree import map_children
from taco_py.language.problem import TensorType
from taco_py.planner.ir.nodes import Fuse, KernelStep, Unfuse
from taco_py.planner.ir.program import Program, reads


@dataclass(frozen=True, slots=True)
class Member:
    """A kernel over the tensors of a program, its modes apart.

    kernel  the step that it is
    value   its assignment: tensors by their names in the program
    """

    kernel: KernelStep
    value: Assignment


@dataclass(frozen=True, slots=True)
class _Source:
    """The tensor that an operand shows, and its modes that each mode of the operand is."""

    tensor: str
    groups: tuple[tuple[int, ...], ...]


def member_of(program: Program, kernel: KernelStep) -> Member | None:
    """Return a kernel of dense tensors as an assignment over tensors of the program.

    None where it is no plain kernel, or a product that reuses elements.
    """
    if not _is_plain_and_dense(kernel):
        return None
    sources = _sources(program, kernel)
    parts = None if sources is None else _parts(kernel, sources)
    if sources is None or parts is None:
        return None
    indices = kernel.problem.assignment.target.indices
    if any(index not in parts for index in indices):
        return None
    name = _name_apart(program, kernel, any(len(parts[index]) > 1 for index in indices))
    if name is None:
        return None
    target = Access(name, tuple(part for index in indices for part in parts[index]))
    return Member(
        kernel, Assignment(target, _with_parts(kernel.problem.assignment.value, sources, parts))
    )


def _is_plain_and_dense(kernel: KernelStep) -> bool:
    problem = kernel.problem
    types = [problem.result, *(type for _, type in problem.operands)]
    commands = kernel.schedule.on_loops.commands  # of the planner, which shares loops
    way = way_of(kernel.schedule.make)
    is_made_so = kernel.schedule.make == OPEN.make or (way.on_gpu and not way.reuses)
    if not is_made_so or kernel.looked_up or kernel.in_turn:
        return False
    if not all(isinstance(command, Parallelize) for command in commands):
        return False
    if problem.side or problem.static or problem.vast or problem.assignment.operator is not None:
        return False
    return all(is_full(type.format) and not is_complex(type.dtype) for type in types)


def _sources(program: Program, kernel: KernelStep) -> dict[str, _Source] | None:
    """Return the tensor behind each operand; None where a kernel reads one in another type."""
    steps = {step.target: step for step in program.steps}
    sources: dict[str, _Source] = {}
    for name, type in kernel.problem.operands:
        source = kernel.source(name)
        view = steps.get(source)
        if isinstance(view, Fuse):
            sources[name] = _Source(view.source, view.groups)
            continue
        modes = range(len(program.facts[source].shape))
        sources[name] = _Source(source, tuple((mode,) for mode in modes))
        if program.facts[source].type != type:
            return None
    return sources


def _parts(kernel: KernelStep, sources: Mapping[str, _Source]) -> dict[str, tuple[str, ...]] | None:
    """Return an index for each mode that an index runs through; None where operands differ."""
    assignment = kernel.problem.assignment
    parts: dict[str, tuple[str, ...]] = {}
    names = Names(all_indices(assignment))
    for access in accesses(assignment.value):
        for index, group in zip(access.indices, sources[access.tensor].groups, strict=True):
            if index not in parts:
                fresh = tuple(names.fresh(index) for _ in group)
                parts[index] = fresh if len(group) > 1 else (index,)
            if len(parts[index]) != len(group):
                return None
    return parts


def _name_apart(program: Program, kernel: KernelStep, fused: bool) -> str | None:
    """Return the name of the view of a kernel's result that has all modes; None without one."""
    if not fused:
        alike = program.facts[kernel.target].type == kernel.problem.result
        return kernel.target if alike else None
    readers = [step for step in program.steps if kernel.target in reads(step)]
    if len(readers) != 1 or kernel.target in program.results:
        return None
    (reader,) = readers
    if not isinstance(reader, Unfuse):
        return None
    return reader.target if _is_row_major(program.facts[reader.target].type) else None


def _is_row_major(type: TensorType) -> bool:
    return type.format.mode_order == tuple(range(type.format.order))


def _with_parts(
    expr: Expr, sources: Mapping[str, _Source], parts: Mapping[str, tuple[str, ...]]
) -> Expr:
    """Return an expression over the program's tensors, with an index for each of their modes."""
    if isinstance(expr, Access):
        source = sources[expr.tensor]
        at = {
            mode: part
            for index, group in zip(expr.indices, source.groups, strict=True)
            for mode, part in zip(group, parts[index], strict=True)
        }
        return Access(source.tensor, tuple(at[mode] for mode in range(len(at))))
    if isinstance(expr, Reduce):
        body = _with_parts(expr.body, sources, parts)
        for part in reversed(parts[expr.index]):
            body = Reduce(expr.operator, part, body)
        return body
    return map_children(expr, lambda child: _with_parts(child, sources, parts))
