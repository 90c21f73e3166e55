"""The kernels that read the same slabs of dense tensors, and these kernels as one.

m[i] = max(j, S[i,j]);  e[i,j] = exp(S[i,j] - m[i]);  z[i] = sum(j, e[i,j]);  P[i,j] = e[i,j] / z[i]
→  P[i,j] = exp(S[i,j] - max(k, S[i,k])) / sum(l, exp(S[i,l] - max(k, S[i,k])))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import field, replace

from codegen.names import Names
from codegen.records import dataclass
from taco_py.compiler.concrete.terms import split_terms
from taco_py.compiler.dataflow.slab_form import NoSlabError, SlabForm, slab_form
from taco_py.compiler.schedule.commands import Make
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.language.notation.checks import accesses, all_indices, free_indices, rename
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Reduce
from taco_py.language.notation.tree import all_reductions, has_reductions, map_children, walk
from taco_py.language.problem import Problem, SideResult, TensorType
from taco_py.planner.ir.nodes import KernelStep, TakeSide, Unfuse
from taco_py.planner.ir.program import Node, Program, reads
from taco_py.planner.joined_kernels import steps_around
from taco_py.planner.make_kernel import size_sources
from taco_py.planner.slabs.fused_values import fuse_values
from taco_py.planner.slabs.kernel_modes import Member, member_of

MOST_NODES = 2000
"""Parts of an expression, each as often as it is written out, that a value has at most."""


@dataclass(frozen=True, slots=True)
class SlabGroup:
    """Kernels that become one, their values in terms of what none of them makes.

    values  the assignments that are stored, by target, the last one last; a mode has one index
    form    the problem of the one kernel as values of slabs
    """

    members: tuple[Member, ...]
    values: Mapping[str, Assignment]
    form: SlabForm
    problem: Problem

    @property
    def targets(self) -> tuple[str, ...]:
        """Return the tensors that the kernel stores."""
        return tuple(self.values)

    @property
    def slab(self) -> frozenset[str]:
        """Return the indices of slabs."""
        names = (self.form.names[index.name] for index in self.form.slab)
        return frozenset(name for group in names for name in group)

    def join(self, program: Program, make: Make) -> Program:
        """Return the program with one kernel by a way instead of the group, neighbouring modes
        fused."""
        reduces = any(has_reductions(value.value) for value in self.values.values())
        fused = fuse_values(program, self.values, self.slab if reduces else frozenset())
        program = program.with_facts(fused.facts)
        problem = problem_of_values(program, fused.values)
        *besides, target = fused.values
        kernel = KernelStep(target, problem, _schedule(problem, make), size_sources(problem))
        takes = [TakeSide(name, target, number) for number, name in enumerate(besides)]
        inside = {member.kernel.target for member in self.members}
        inside |= {member.value.target.tensor for member in self.members}
        before, after = steps_around(program, inside)
        steps = (*before, *fused.before, kernel, *takes, *fused.after, *after)
        targets = {step.target for step in steps}
        gone = {step.target for step in program.steps} - targets
        facts = {name: fact for name, fact in program.facts.items() if name not in gone}
        return replace(program, steps=steps, facts=facts)


def _indices_of(expr: Expr) -> tuple[str, ...]:
    every = (index for access in accesses(expr) for index in access.indices)
    return tuple(dict.fromkeys(every))


def slab_group(
    program: Program, first: KernelStep, form_of: Callable[[Problem], SlabForm] = slab_form
) -> SlabGroup | None:
    """Return the largest group that begins with a kernel; None where it has one kernel alone.

    form_of  returns the slabs of a problem, and raises NoSlabError where no kernel computes them
    """
    place = next(n for n, step in enumerate(program.steps) if step is first)
    makers = {kernel.target: kernel for kernel in program.kernels}
    partners: set[str] = set()
    while True:
        finder = _Finder(program, form_of, partners)
        if not finder.add(first):
            return None
        for step in program.steps[place + 1 :]:
            finder.meet(step)
        further = {name for name in finder.reads_of_members if name in makers} - partners
        if not further:
            return finder.group()
        partners |= further  # kernels whose results the group reads: of slabs too, perhaps


@dataclass(slots=True)
class _Finder:
    """Collects a group while it goes through the steps of a program.

    partners  tensors that members read, whose kernels are tried though they read no other member
    modes   the group's index of each mode of each tensor
    values  what each member makes, in terms of what no member makes
    waits   the tensors of later steps that need values of the group
    """

    program: Program
    form_of: Callable[[Problem], SlabForm]
    partners: Set[str] = frozenset()
    members: list[Member] = field(default_factory=list)
    modes: dict[tuple[str, int], str] = field(default_factory=dict)
    values: dict[str, Assignment] = field(default_factory=dict)
    waits: set[str] = field(default_factory=set)
    names: Names = field(default_factory=Names)
    best: SlabGroup | None = None

    @property
    def reads_of_members(self) -> set[str]:
        """Return the tensors that members read and no member makes."""
        read = {a.tensor for member in self.members for a in accesses(member.value.value)}
        return read - {*self.values}

    def meet(self, step: Node) -> None:
        """Add a step to the group where it can be part of it."""
        read = {*reads(step)}
        inside = read & {*self.values}
        if read & self.waits:
            self.waits.add(step.target)
            return
        if isinstance(step, KernelStep) and self.add(step):
            return
        if inside and not _is_of_member(step, self.members):
            self.waits.add(step.target)

    def add(self, kernel: KernelStep) -> bool:
        """Add a kernel; tell whether the group with it is one kernel of slabs."""
        member = member_of(self.program, kernel)
        if member is None or (self.members and not self._shares(member)):
            return False
        modes, values, members = dict(self.modes), dict(self.values), list(self.members)
        try:
            names = self._names(member)
        except NoSlabError:
            self.modes, self.values = modes, values
            return False
        value = self._inlined(member.value, names)
        target = member.value.target
        if sum(1 for _ in walk(value)) <= MOST_NODES:
            indices = tuple(names[index] for index in target.indices)
            self.values[target.tensor] = Assignment(Access(target.tensor, indices), value)
            self.members.append(member)
            group = self._group()
            if group is not None:
                self.best = group
                return True
        self.modes, self.values, self.members = modes, values, members
        return False

    def group(self) -> SlabGroup | None:
        """Return the group where one kernel computes more than each of its kernels."""
        return self.best if len(self.members) > 1 else None

    def _shares(self, member: Member) -> bool:
        """Tell whether a kernel reads a result of the group or one of its largest operands."""
        read = {access.tensor for access in accesses(member.value.value)}
        most = max(
            len(access.indices)
            for value in self.values.values()
            for access in (value.target, *accesses(value.value))
        )
        target = member.value.target
        if read & {*self.values} or target.tensor in self.partners:
            return True
        if target.tensor not in self.program.results and len(target.indices) == most:
            return False  # it would be stored before its reader asks for it
        return any(
            access.tensor in read
            for value in self.values.values()
            for access in accesses(value.value)
            if len(access.indices) == most
        )

    def _names(self, member: Member) -> dict[str, str]:
        """Return the group's index of each index of a kernel; indices of one mode become one.

        Raises NoSlabError where the kernel runs through a mode by two indices at a time.
        """
        names: dict[str, str] = {}
        every = accesses(member.value.value)
        for access in every:
            for mode, index in enumerate(access.indices):
                index_of_mode = self.modes.get((access.tensor, mode))
                if index_of_mode is not None:
                    self._unify(names, names.setdefault(index, index_of_mode), index_of_mode)
        for index in all_indices(member.value):
            if index not in names:
                names[index] = self.names.fresh(index)
        for access in (member.value.target, *every):
            for mode, index in enumerate(access.indices):
                index_of_mode = self.modes.setdefault((access.tensor, mode), names[index])
                self._unify(names, names[index], index_of_mode)
        for indices in _indices_together(member.value):
            if len({names[index] for index in indices}) < len(indices):
                raise NoSlabError(f"two of {', '.join(sorted(indices))} are of one mode")
        return names

    def _unify(self, names: dict[str, str], index: str, other: str) -> None:
        """Let two indices of the group be one. Raises NoSlabError where a value has both."""
        if index == other:
            return
        if any({index, other} <= {*all_indices(value)} for value in self.values.values()):
            raise NoSlabError(f"{index} and {other} are two modes")
        self.modes = {mode: index if i == other else i for mode, i in self.modes.items()}
        self.values = {n: rename(value, {}, {other: index}) for n, value in self.values.items()}
        names.update((old, index) for old, new in names.items() if new == other)

    def _inlined(self, assignment: Assignment, names: Mapping[str, str]) -> Expr:
        """Return a value in the group's indices, with members' values in place of their tensors."""

        def renamed(expr: Expr) -> Expr:
            if isinstance(expr, Access):
                if expr.tensor in self.values:
                    return self.values[expr.tensor].value
                return Access(expr.tensor, tuple(names[index] for index in expr.indices))
            if isinstance(expr, Reduce):
                return Reduce(expr.operator, names[expr.index], renamed(expr.body))
            return map_children(expr, renamed)

        return renamed(assignment.value)

    def _group(self) -> SlabGroup | None:
        """Return the members as one kernel; None where they are no values of slabs."""
        program = self.program
        inside = {member.kernel.target for member in self.members}
        inside |= {*self.values}
        outside = [step for step in program.steps if step.target not in inside]
        used = {*program.results, *(name for step in outside for name in reads(step))}
        read = {a.tensor for member in self.members for a in accesses(member.value.value)}
        values = {n: value for n, value in self.values.items() if n in used or n not in read}
        problem = problem_of_values(program, values)
        try:
            form = self.form_of(problem)
        except NoSlabError:
            return None
        return SlabGroup(tuple(self.members), values, form, problem) if form.slab else None


def _indices_together(assignment: Assignment) -> Iterator[set[str]]:
    """Yield the indices that run at a time: of the target and around, and in each reduction.

    y[i] = sum(j, x[i] - x[j]) * sum(k, x[k])   →   {i}, {i, j}, {k}
    """
    yield {*assignment.target.indices, *free_indices(assignment.value)}
    for sum_ in all_reductions(assignment.value):
        yield {sum_.index, *free_indices(sum_.body)}


def problem_of_values(program: Program, values: Mapping[str, Assignment]) -> Problem:
    """Return the problem of one kernel that stores several values, the last one as its result."""
    *besides, target = (_with_bound_names(value) for value in values.values())
    operands: dict[str, TensorType] = {}
    for value in (target, *besides):
        for access in accesses(value.value):
            operands[access.tensor] = program.facts[access.tensor].type
    return Problem(
        target,
        tuple(operands.items()),
        program.facts[target.target.tensor].type,
        side=tuple(
            SideResult(value.target, program.facts[value.target.tensor].type, value.value)
            for value in besides
        ),
    )


def _schedule(problem: Problem, make: Make) -> Schedule:
    """Return the schedule of a kernel of slabs, with an order of loops for each term."""
    target = problem.assignment.target.indices
    orders = []
    for term in split_terms(problem.assignment.value):
        inside = {*_indices_of(term.body), *term.reduced}
        every = dict.fromkeys((*target, *_indices_of(term.body)))
        orders.append(tuple(index for index in every if index in inside))
    return Schedule.of_orders(tuple(orders)).with_way(make)


def _is_of_member(step: Node, members: list[Member]) -> bool:
    """Tell whether a step only shows a member's tensor with its modes apart."""
    return isinstance(step, Unfuse) and any(
        step.target == member.value.target.tensor for member in members
    )


def _with_bound_names(assignment: Assignment) -> Assignment:
    """Return an assignment whose reductions have indices that are free nowhere around them.

    P[i,j] = X[i,j] / sum(j, X[i,j])   →   P[i,j] = X[i,j] / sum(j_1, X[i,j_1])
    """
    names = Names((*assignment.target.indices, *_indices_of(assignment.value)))

    def renamed(expr: Expr, at: Mapping[str, str]) -> Expr:
        if isinstance(expr, Access):
            return replace(expr, indices=tuple(at.get(index, index) for index in expr.indices))
        if isinstance(expr, Reduce):
            name = names.fresh(expr.index) if expr.index in at else expr.index
            return Reduce(expr.operator, name, renamed(expr.body, {**at, expr.index: name}))
        if isinstance(expr, Call):
            return replace(expr, args=tuple(renamed(arg, at) for arg in expr.args))
        return expr

    at = {index: index for index in assignment.target.indices}
    return replace(assignment, value=renamed(assignment.value, at))
