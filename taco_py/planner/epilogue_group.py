"""The kernels that compute with the elements of one product, and these with the product's as one.

P[i,j] = sum(k, X[i,k] * W[k,j]);  H[i,j] = max(P[i,j] + b[j], 0);  s[j] = sum(i, H[i,j])
→  s[j] = sum(i, max(sum(k, X[i,k] * W[k,j]) + b[j], 0)),  which stores H besides
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from codegen.names import Names
from codegen.records import dataclass
from taco_py.language.legal.stored import is_full
from taco_py.language.notation.checks import accesses, all_indices, rename
from taco_py.language.notation.dtypes import expression_dtype
from taco_py.language.notation.nodes import Access, Assignment, Expr
from taco_py.language.notation.tree import has_reductions, is_sum, map_accesses, walk
from taco_py.language.problem import Problem, SideResult, TensorType
from taco_py.planner.ir.nodes import KernelStep, TakeSide
from taco_py.planner.ir.program import Node, Program, reads
from taco_py.planner.joined_kernels import is_plain, steps_around
from taco_py.planner.make_kernel import size_sources

MOST_NODES = 256
"""Parts of an expression, each as often as it is written out, that an epilogue has at most."""


@dataclass(frozen=True, slots=True)
class Group:
    """A product's kernel, and those that read its elements, one after the other.

    values   what each of them makes, in the names of the joined kernel
    stored     the tensors that something else reads, or that are results
    operands the tensors that the joined kernel reads, by its names for them, with their types
    """

    product: KernelStep
    members: tuple[KernelStep, ...]
    values: Mapping[str, Assignment]
    stored: tuple[str, ...]
    operands: Mapping[str, tuple[str, TensorType]]

    @property
    def vanished(self) -> tuple[str, ...]:
        """Return the tensors of the group that are stored nowhere after joining."""
        return tuple(name for name in self.values if name not in self.stored)

    @property
    def target(self) -> str:
        """Return the last stored tensor, which is the result of the joined kernel."""
        return self.stored[-1]

    @property
    def is_one_value(self) -> bool:
        """Tell whether one kernel reads the elements and makes one value of each."""
        last = self.values[self.target].target
        return len(self.members) == len(self.stored) == 1 and len(last.indices) == 2

    def problem(self, program: Program) -> Problem:
        """Return the problem of the joined kernel."""
        problem_, last = self.product.problem, self.values[self.target]
        types = {name: type for name, (_, type) in self.operands.items()}
        side = tuple(
            SideResult(self.values[name].target, program.facts[name].type, self.values[name].value)
            for name in self.stored[:-1]
        )
        result = program.facts[self.target].type
        return Problem(last, tuple(types.items()), result, problem_.static, problem_.vast, side)

    def join(self, program: Program) -> Program:
        """Return the program with one kernel instead of the group."""
        problem = self.problem(program)
        kernel = replace(
            self.product,
            target=self.target,
            problem=problem,
            sizes=size_sources(problem),
            sources=tuple((n, source) for n, (source, _) in self.operands.items() if source != n),
        )
        takes = [TakeSide(name, self.target, n) for n, name in enumerate(self.stored[:-1])]
        targets = {self.product.target, *(member.target for member in self.members)}
        before, after = steps_around(program, targets)
        facts = {n: facts_of for n, facts_of in program.facts.items() if n not in self.vanished}
        return replace(program, steps=(*before, kernel, *takes, *after), facts=facts)


def group_of(program: Program, product: KernelStep) -> Group | None:
    """Return the kernels that read elements of a product, None where none does."""
    finder = _Finder(program, product)
    for step in program.steps:
        finder.meet(step)
    return finder.group()


class _Finder:
    """Collects a group while it goes through the steps of a program.

    elements  for each tensor with an element for each of the product, its value
    """

    def __init__(self, program: Program, product: KernelStep) -> None:
        problem = product.problem
        self.program, self.product = program, product
        self.rows_and_columns = problem.assignment.target.indices
        self.members: list[KernelStep] = []
        self.waits: set[str] = set()  # what needs values of the group and is no part of it
        self.names = Names((*all_names(program),))
        self.operands: dict[str, tuple[str, TensorType]] = {}
        self.values: dict[str, Assignment] = {}
        self.elements: dict[str, Expr] = {}
        value = self._in_group_names(product, {})
        self.values[product.target] = Assignment(
            Access(product.target, self.rows_and_columns), value
        )
        self.elements[product.target] = value

    def meet(self, step: Node) -> None:
        """Add a step to the group where it can be part of it."""
        read = set(reads(step))
        if step is self.product or not read & ({*self.values} | self.waits):
            return
        value = None if read & self.waits else self._joins(step)
        if value is None or not isinstance(step, KernelStep):
            self.waits.add(step.target)
            return
        self.members.append(step)
        self.values[step.target] = value
        if {*value.target.indices} == {*self.rows_and_columns}:
            self.elements[step.target] = value.value

    def group(self) -> Group | None:
        """Return the group; None where it has no members."""
        if not self.members:
            return None
        outside = [s for s in self.program.steps if s not in (self.product, *self.members)]
        used = {*self.program.results, *(name for step in outside for name in reads(step))}
        last = {name for name in self.values if not any(True for _ in self._read_by(name))}
        stored = tuple(name for name in self.values if name in used | last)
        return Group(self.product, tuple(self.members), self.values, stored, self.operands)

    def _read_by(self, name: str) -> Iterator[KernelStep]:
        return (member for member in self.members if name in reads(member))

    def _joins(self, step: Node) -> Assignment | None:
        """Return the assignment of a step in the names of the group; None where it cannot join."""
        if not isinstance(step, KernelStep) or not is_plain(step) or step.problem.side:
            return None
        problem = step.problem
        if problem.static or problem.vast or problem.assignment.operator is not None:
            return None
        indices = self._indices(step)
        if indices is None or not _is_of_elements(problem.assignment.value, problem):
            return None
        dtypes = {name: np.dtype(type.dtype) for name, type in problem.operands}
        if expression_dtype(problem.assignment.value, dtypes).name != problem.result.dtype:
            return None
        value = self._in_group_names(step, indices)
        if sum(1 for _ in walk(value)) > MOST_NODES:
            return None
        target = tuple(indices[index] for index in problem.assignment.target.indices)
        return Assignment(Access(step.target, target), value)

    def _indices(self, step: KernelStep) -> dict[str, str] | None:
        """Return the group's name of each index of a step; None where the step cannot join."""
        names_: dict[str, str] = {}
        for access in accesses(step.problem.assignment.value):
            name = step.source(access.tensor)
            if name not in self.values:
                continue
            if name not in self.elements:
                return None
            stored = self.values[name].target.indices
            for index, group_index in zip(access.indices, stored, strict=True):
                if names_.setdefault(index, group_index) != group_index:
                    return None
        every = all_indices(step.problem.assignment)
        one_each = len(set(names_.values())) == len(names_)
        return names_ if one_each and {*every} == {*names_} else None

    def _in_group_names(self, step: KernelStep, indices: Mapping[str, str]) -> Expr:
        """Return the value of a step with the group's names, values of the group inlined."""
        value = rename(step.problem.assignment, {}, dict(indices)).value

        def rename_access(access: Access) -> Expr:
            source = step.source(access.tensor)
            if source in self.elements:
                return self.elements[source]
            type = step.problem.type_of(access.tensor)
            return replace(access, tensor=self._operand(source, type))

        return map_accesses(value, rename_access)

    def _operand(self, source: str, type: TensorType) -> str:
        """Return the group's name of a tensor that is read in a type."""
        for name, operand in self.operands.items():
            if operand == (source, type):
                return name
        clashes = source in self.operands or source in self.values
        name = self.names.fresh(source) if clashes else source
        self.operands[name] = (source, type)
        return name


def all_names(program: Program) -> Iterator[str]:
    """Yield the names of all tensors of a program."""
    yield from program.facts
    for step in program.steps:
        yield step.target


def _is_of_elements(value: Expr, problem: Problem) -> bool:
    """Tell whether a value is elementwise over dense tensors, or sums such elements."""
    if not all(is_full(type.format) for _, type in problem.operands):
        return False
    if not is_full(problem.result.format):
        return False
    if any(len({*a.indices}) < len(a.indices) for a in accesses(value)):
        return False
    output = {*problem.assignment.target.indices}
    while is_sum(value) and value.index not in output:
        value = value.body
    return not has_reductions(value)
