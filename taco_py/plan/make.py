"""One assignment over given operands → the steps that compute it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from codegen.names import Names
from taco_py.concrete.terms import split_terms, sums_outside
from taco_py.convert.diagonal import diagonal_format
from taco_py.diagnostics.errors import ScheduleError
from taco_py.notation.checks import accesses, all_indices, rename
from taco_py.notation.nodes import Access, Assignment
from taco_py.notation.tree import map_accesses
from taco_py.plan.algebra.normal_form import apart
from taco_py.plan.ir.formats import without_modes
from taco_py.plan.ir.goal import Request
from taco_py.plan.ir.nodes import (
    Cast,
    Compute,
    Gather,
    Operand,
    Plan,
    Reformat,
    Squeeze,
    Step,
    TakeDiagonal,
    Unfuse,
)
from taco_py.plan.rules.forms.widen_sums import Widened, widened
from taco_py.plan.rules.layout.copy_dense_across import turn
from taco_py.plan.rules.layout.copy_small_across import line_up
from taco_py.plan.rules.layout.fuse_modes import Fused, fuse
from taco_py.plan.rules.layout.store_temporary import leave_unsorted
from taco_py.plan.rules.needed.narrow_sums import has_narrow_sums
from taco_py.plan.rules.needed.sum_in_chunks import check_together
from taco_py.plan.rules.split.absorb_factor import WHY as ABSORBED
from taco_py.plan.rules.split.absorb_factor import absorb
from taco_py.plan.rules.split.multiply_small_first import WHY as SMALL
from taco_py.plan.rules.split.multiply_small_first import small_first
from taco_py.plan.rules.tidy.canonical_names import canonical
from taco_py.plan.rules.tidy.share_equal_steps import once
from taco_py.plan.single import plan_single
from taco_py.plan.split import Split, split
from taco_py.problem import TensorType
from taco_py.schedule.commands import Serial
from taco_py.schedule.distribute import check_types, multiply_out
from taco_py.schedule.schedule import OPEN, Schedule
from taco_py.ways.library_choice import Libraries
from taco_py.ways.strategy import Strategy


@dataclass(frozen=True, slots=True)
class Options:
    """How to plan.

    path       pairwise contractions in einsum's numbering, or None to choose
    contract   False computes every product in one kernel
    schedule   the user's commands, or None to choose
    libraries  those whose routines may be called, or None for none
    """

    path: tuple[tuple[int, ...], ...] | None = None
    contract: bool = True
    schedule: Schedule | None = None
    libraries: Libraries | None = None


def make_plan(
    assignment: Assignment,
    operands: Mapping[str, Operand],
    request: Request,
    options: Options = Options(),
    squeezed: Sequence[tuple[str, tuple[int, ...]]] = (),
) -> Plan:
    """The steps that compute `assignment`, whose sums are explicit and whose sizes agree.

    squeezed  axes of size 1 to take off operands first; `assignment` no longer has their indices.

    Raises ScheduleError when the schedule does not fit the assignment.
    """
    names = Names((*operands, assignment.target.tensor))
    request = replace(request, libraries=options.libraries)
    known = dict(operands)
    steps: list[Step] = []
    notes: tuple[str, ...] = ()
    for source, axes in squeezed:
        assignment = _squeeze(assignment, source, axes, known, names, steps)
    assignment = _take_diagonals(assignment, known, names, steps)
    dtypes = {name: np.dtype(operand.type.dtype) for name, operand in known.items()}
    assignment = apart(assignment, known)
    if options.schedule is not None and (options.schedule.shapes or options.schedule.merges):
        if has_narrow_sums(assignment, known):
            raise ScheduleError(
                "Expected sums in the result's own type under commands on loops, found one in a "
                "narrower integer type, which must be computed first",
                hint="convert the operands, or leave the schedule open",
            )
        assignment, schedule = _distributed(sums_outside(assignment), options.schedule, dtypes)
        check_together(assignment, known, request)
        return Plan((*steps, *plan_single(assignment, known, request, names, schedule)))
    free = request.forms is not False and options.contract and options.path is None
    told = Widened(known)
    if free and (options.schedule is None or not options.schedule.marked):
        told = widened(assignment, known)
        known.update(told.operands)
    if options.schedule is None:
        if options.path is None and options.contract:
            assignment, notes, small = _multiplied_first(
                assignment, known, request, names, options.libraries
            )
            steps += small
        assignment, lined = line_up(assignment, known, request, names)
        assignment, copies = turn(assignment, known, request, names)
        fused = fuse(assignment, known, request, names)
        assignment, request = fused.assignment, fused.request
        steps += (*lined, *copies, *fused.steps)
    if options.schedule is not None and options.schedule.marked:
        request = request.as_written  # for these are the text's loops
    parts = split(assignment, known, request, names, options.path, options.contract)
    marks_others = _marks_others(options.schedule, parts.assignments[-1])
    if marks_others and not has_narrow_sums(assignment, known):
        check_together(assignment, known, request)
        parts = Split((sums_outside(assignment),), known, ())
    known.update(parts.operands)
    steps += parts.sizes
    for part in parts.assignments[:-1]:
        steps += _temporary(part, known, request, names, options.libraries)
    last = parts.assignments[-1]
    steps += plan_single(last, known, request, names, libraries=options.libraries)
    shared = once(_with_threads(leave_unsorted(steps), options.schedule))
    forms = (*told.told, *told.left, *parts.forms)
    cuts = request.effort.notes
    made = {step.target for step in shared}
    before = zip(parts.assignments, parts.notes, strict=False)
    notes += tuple(note for part, note in before if part.target.tensor in made)
    return Plan(shared, notes, cuts, request.stored, forms, parts.rewritten)


def _multiplied_first(
    assignment: Assignment,
    known: dict[str, Operand],
    request: Request,
    names: Names,
    libraries: Libraries | None,
) -> tuple[Assignment, tuple[str, ...], tuple[Step, ...]]:
    """The assignment with small dense factors multiplied by each other before, why, and how."""
    notes: list[str] = []
    steps: list[Step] = []
    for first, why in ((absorb, ABSORBED), (small_first, SMALL)):
        *parts, assignment = first(assignment, known, request, names)
        for part in parts:
            steps += _temporary(part, known, request, names, libraries)
            notes.append(f"{part.target.tensor}: {why}")
    return assignment, tuple(notes), tuple(steps)


def _marks_others(schedule: Schedule | None, last: Assignment) -> bool:
    """Whether a command marks a loop that the last of several kernels does not have."""
    marked = set() if schedule is None else schedule.marked
    return not marked <= set(all_indices(last))


def _distributed(
    assignment: Assignment, schedule: Schedule, dtypes: Mapping[str, np.dtype[Any]]
) -> tuple[Assignment, Schedule]:
    """The assignment with the terms multiplied out that the schedule begins with, and the rest.

    Sums inside the products of a command's term are around it, as in the assignment.
    """
    commands, rest = schedule.distributed
    for command in commands:
        term = replace(assignment, value=command.expression)
        bodies = [each.body for each in split_terms(sums_outside(term).value)]
        if len(bodies) == 1:
            command = replace(command, expression=bodies[0])
        assignment = multiply_out(assignment, command)
        check_types(command, dtypes)
    return assignment, rest


def _with_threads(steps: Sequence[Step], schedule: Schedule | None) -> tuple[Step, ...]:
    """The steps as the schedule wants loops shared: none, or one of the last kernel's."""
    if schedule is None:
        return tuple(steps)
    last = next(s for s in reversed(steps) if isinstance(s, Compute))
    others = Schedule((Serial(),)) if schedule.serial else OPEN
    return tuple(
        replace(
            s,
            schedule=s.schedule.then(schedule.sharing if s is last else others),
            strategy=_strategy(s, schedule) if s is last else s.strategy,
        )
        if isinstance(s, Compute)
        else s
        for s in steps
    )


def _strategy(step: Compute, schedule: Schedule) -> Strategy:
    """Loops where the user names one of them."""
    names_none = all(isinstance(command, Serial) for command in schedule.commands)
    return step.strategy if names_none else Strategy.LOOPS


def _temporary(
    part: Assignment,
    known: Mapping[str, Operand],
    request: Request,
    names: Names,
    libraries: Libraries | None,
) -> tuple[Step, ...]:
    wanted = replace(request, type=known[part.target.tensor].type)
    operands = dict(known)
    fused = fuse(part, operands, wanted, names)
    if len(fused.assignment.target.indices) < len(part.target.indices):
        return _taken_apart(part, fused, operands, names, libraries)
    steps = plan_single(part, known, wanted, names, libraries=libraries)
    named = tuple(canonical(s) if isinstance(s, Compute) else s for s in steps)
    return _landing_at(named, part.target.tensor, names)


def _taken_apart(
    part: Assignment,
    fused: Fused,
    operands: Mapping[str, Operand],
    names: Names,
    libraries: Libraries | None,
) -> tuple[Step, ...]:
    """The steps that make a temporary in longer rows, and a view of it with its own modes."""
    target = part.target.tensor
    raw = names.fresh(f"{target}_fused")
    made = replace(fused.assignment, target=replace(fused.assignment.target, tensor=raw))
    steps = plan_single(made, operands, fused.request, names, libraries=libraries)
    named = tuple(canonical(s) if isinstance(s, Compute) else s for s in steps)
    places = {
        index: (access.tensor, mode)
        for access in accesses(part.value)
        for mode, index in enumerate(access.indices)
    }
    sizes = tuple(places[index] for index in part.target.indices)
    return (*fused.steps, *named, Unfuse(target, raw, sizes))


def _landing_at(steps: tuple[Step, ...], name: str, names: Names) -> tuple[Step, ...]:
    """The steps with the last one's target called `name`, as later assignments expect."""
    last = steps[-1]
    if last.target == name or not isinstance(last, Reformat | Gather | Cast):
        return steps
    raw = names.fresh(f"{name}_raw")
    renamed = tuple(
        replace(s, target=raw) if isinstance(s, Compute) and s.target == name else s
        for s in steps[:-1]
    )
    return (*renamed, replace(last, target=name, source=raw))


# ---------------------------------------------------------------- operands made simpler


def squeezed_operand(old: Operand, axes: tuple[int, ...]) -> Operand:
    """What is known of an operand without its modes `axes`, of size 1."""
    shape = tuple(n for axis, n in enumerate(old.shape) if axis not in axes)
    return Operand(_without_modes(old.type, axes), shape, old.nnz)


def _squeeze(
    assignment: Assignment,
    source: str,
    axes: tuple[int, ...],
    known: dict[str, Operand],
    names: Names,
    steps: list[Step],
) -> Assignment:
    """A copy of `source` without the modes `axes`, in place of it."""
    target = names.fresh(f"{source}_squeezed")
    known[target] = squeezed_operand(known[source], axes)
    steps.append(Squeeze(target, source, axes))
    return rename(assignment, tensors={source: target})


def _without_modes(type: TensorType, axes: tuple[int, ...]) -> TensorType:
    form = without_modes(type.format, type.format.order - len(axes))
    return replace(type, format=form, unit_stride=not type.format.is_dense)


def _take_diagonals(
    assignment: Assignment, known: dict[str, Operand], names: Names, steps: list[Step]
) -> Assignment:
    """A diagonal in place of each access that has an index twice."""
    made: dict[tuple[str, tuple[str, ...]], str] = {}
    take = partial(_diagonal, known=known, names=names, steps=steps, made=made)
    return replace(assignment, value=map_accesses(assignment.value, take))


def _diagonal(
    access: Access,
    known: dict[str, Operand],
    names: Names,
    steps: list[Step],
    made: dict[tuple[str, tuple[str, ...]], str],
) -> Access:
    indices = tuple(dict.fromkeys(access.indices))
    if indices == access.indices:
        return access
    key = (access.tensor, access.indices)
    if key not in made:
        source = known[access.tensor]
        target = names.fresh(f"{access.tensor}_diagonal")
        form = diagonal_format(source.type.format, access.indices)
        shape = tuple(source.shape[access.indices.index(i)] for i in indices)
        type = replace(source.type, format=form, unit_stride=False)
        known[target] = Operand(type, shape, source.nnz / max(1, source.shape[0]))
        steps.append(TakeDiagonal(target, access.tensor, access.indices))
        made[key] = target
    return replace(access, tensor=made[key], indices=indices)
