"""One assignment over given operands → the steps that compute it.

text → program (`plan.search`: rules in the order of the catalogue) → kernels (`plan.make_kernel`)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from codegen.names import Names
from codegen.records import dataclass
from taco_py.concrete.terms import split_terms, sums_outside
from taco_py.diagnostics.errors import ScheduleError
from taco_py.notation.checks import accesses, all_indices, operand_names
from taco_py.notation.nodes import Assignment
from taco_py.plan.context import Context
from taco_py.plan.ir.goal import Request, real_statistics
from taco_py.plan.ir.nodes import Cast, Compute, Gather, Operand, Reformat, Step, TakeSize, Unfuse
from taco_py.plan.ir.plan import Plan
from taco_py.plan.ir.program import Chosen, Define, Node, Program
from taco_py.plan.lookahead import Lookahead
from taco_py.plan.make_kernel import kernel_in_loops_of_text, with_kernel
from taco_py.plan.rules import catalogue
from taco_py.plan.rules.layout.fuse_modes import fuse
from taco_py.plan.rules.needed.narrow_sums import has_narrow_sums
from taco_py.plan.rules.needed.squeeze_unit_modes import squeezed
from taco_py.plan.rules.needed.sum_in_chunks import check_together
from taco_py.plan.rules.tidy.canonical_names import canonical
from taco_py.plan.rules.tidy.leave_unsorted import leave_unsorted
from taco_py.plan.rules.tidy.share_equal_steps import share_equal_steps
from taco_py.plan.search import Search, tried
from taco_py.schedule.commands import Make, Serial
from taco_py.schedule.distribute import check_types, multiply_out
from taco_py.schedule.schedule import OPEN, Schedule
from taco_py.ways.library_choice import Libraries


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


_DEFAULT = Options()


def make_plan(
    assignment: Assignment,
    operands: Mapping[str, Operand],
    request: Request,
    options: Options = _DEFAULT,
    unit_modes: Sequence[tuple[str, tuple[int, ...]]] = (),
) -> Plan:
    """The steps that compute `assignment`, whose sums are explicit and whose sizes agree.

    unit_modes  modes of size 1 to take off operands first; `assignment` no longer has their indices

    Raises ScheduleError when the schedule does not fit the assignment.
    """
    schedule = options.schedule
    _check_written(schedule)
    context = _context(request, options)
    program = _program(assignment, operands, context.goal, unit_modes)
    if schedule is not None and (schedule.shapes or schedule.merges):
        return _in_loops_of_text(tried(catalogue.NORMAL, program, context), context, schedule)
    prepared = tried(catalogue.PREPARATION, program, context)
    split = prepared.spliced(context.following.split(prepared.only(prepared.result), context))
    if _marks_others(schedule, split.last) and not has_narrow_sums(prepared.last, prepared.facts):
        check_together(prepared.last, prepared.facts, context.request(prepared, prepared.result))
        split = prepared.with_assignment(sums_outside(prepared.last))
    steps, loops = _kernels(split, context)
    shared = share_equal_steps(_with_threads(leave_unsorted(steps), schedule))
    chosen = Chosen(split.without_entries, loops, program.without_entries)
    return replace(_plan(shared, split, context), chosen=chosen)


def _check_written(schedule: Schedule | None) -> None:
    """Raise ScheduleError for a command that planning alone gives."""
    planned = () if schedule is None else schedule.compiler_commands
    if planned:
        raise ScheduleError(
            f"Expected commands on loops, found {planned[0]}, which is for the compiler to choose",
            hint="reorder(i,k,j) orders loops; loops alone make a kernel with commands on them",
        )


def program_of(
    assignment: Assignment, operands: Mapping[str, Operand], request: Request, options: Options
) -> tuple[Program, Context]:
    """The program of an assignment before its kernels are planned, and what it is made for."""
    context = _context(request, options)
    program = _program(assignment, operands, context.goal)
    return Search().run(program, context), context


def _context(request: Request, options: Options) -> Context:
    """The goal of a call without the rules that its options leave out."""
    request = replace(request, libraries=options.libraries, path=options.path)
    if options.schedule is not None and options.schedule.marked:
        request = request.as_written  # for these are the text's loops
    request = replace(request, left_out=request.left_out | _left_out(request, options))
    return Context(request, Lookahead(), Search())


def _program(
    assignment: Assignment,
    operands: Mapping[str, Operand],
    request: Request,
    unit_modes: Sequence[tuple[str, tuple[int, ...]]] = (),
) -> Program:
    """The program of a text: its operands are given, and one assignment is to be computed."""
    target = assignment.target
    facts = {**operands, target.tensor: Operand(request.type, (), 0.0)}
    program = Program((Define(assignment),), facts, target.tensor, {}, request.static)
    program = squeezed(program, unit_modes)
    sizes = real_statistics(program.last, program.facts, request.machine).sizes
    shape = tuple(int(sizes.get(index, 1)) for index in target.indices)
    result = Operand(request.type, shape, float(prod(shape)))
    return replace(program.with_facts({target.tensor: result}), sizes=sizes)


def _plan(steps: tuple[Step, ...], program: Program, context: Context) -> Plan:
    """The steps with what explain() tells of how they were chosen."""
    targets = {step.target for step in steps}
    notes = (
        f"{step.target}: {step.note}"
        for step in program.temporaries
        if step.note and step.target in targets
    )
    log = context.log
    forms = [
        line
        for entry in log.entries
        if entry.rule in ("widen_sums", "multiply_out") and entry.why
        for line in entry.why.splitlines()
    ]
    dense = program.result_type.format.is_dense  # its modes may be fused
    return Plan(
        steps,
        context.goal.type if dense else program.result_type,
        tuple(notes),
        context.effort.notes,
        next((entry.why for entry in log.of("order_result")), ""),
        tuple(forms),
        any(log.of("multiply_out")),
        machine=context.goal.machine,
        log=log,
    )


def _in_loops_of_text(program: Program, context: Context, schedule: Schedule) -> Plan:
    """The kernel of a text whose loops the user names. Raises ScheduleError."""
    if has_narrow_sums(program.last, program.facts):
        raise ScheduleError(
            "Expected sums in the result's own type under commands on loops, found one in a "
            "narrower integer type, which must be computed first",
            hint="convert the operands, or leave the schedule open",
        )
    assignment, schedule = _distributed(sums_outside(program.last), schedule, program.dtypes)
    request = context.request(program, program.result)
    check_together(assignment, program.facts, request)
    own = program.with_assignment(assignment)
    planned = kernel_in_loops_of_text(own, context, schedule, Names(program.facts))
    return _plan(tuple(_planned(planned.steps)), program, context)


def _planned(steps: Iterable[Node]) -> Iterator[Step]:
    return (step for step in steps if not isinstance(step, Define))


Orders = tuple[tuple[str, ...], ...]


def _kernels(
    program: Program, context: Context
) -> tuple[tuple[Step, ...], Mapping[str, Orders | None]]:
    """The steps of a program with a kernel, and the copies it needs, for each assignment; and the
    loops of each kernel."""
    read = {name for each in program.defines for name in operand_names(each.assignment)}
    steps: list[Step] = []
    loops: dict[str, Orders | None] = {}
    for step in program.steps:
        if isinstance(step, Define):
            planned, loops[step.target] = _kernel(program, step, context)
            steps += _planned(planned.steps)
            program = program.with_facts(planned.facts)
        elif not isinstance(step, TakeSize) or step.target in read:
            steps.append(step)
    return tuple(steps), loops


def _kernel(program: Program, define: Define, context: Context) -> tuple[Program, Orders | None]:
    """The program of one assignment with its kernel, copies before and conversions after it; and
    the kernel's loops, None where they run over other indices than the assignment has."""
    target, part = define.target, define.assignment
    own = program.only(target)
    if target == program.result:
        planned = _planned_alone(own, context)
        return planned, _loops_of(part, planned)
    facts = dict(program.facts)
    fused = fuse(part, facts, context.request(program, target), Names(facts))
    if len(fused.assignment.target.indices) == len(part.target.indices):
        planned = _planned_alone(own, context)
        return _as_temporary(planned, target), _loops_of(part, planned)
    raw = own.fresh(f"{target}_fused")
    facts[raw] = replace(facts[target], type=fused.request.type)
    assignment = replace(fused.assignment, target=replace(fused.assignment.target, tensor=raw))
    whole = replace(own, steps=(*fused.steps, Define(assignment)), facts=facts, result=raw)
    planned = _as_temporary(_planned_alone(whole, context), raw)
    unfused = Unfuse(target, raw, _sizes_of(part))
    return replace(planned, steps=(*planned.steps, unfused), result=target), None


def _planned_alone(program: Program, context: Context) -> Program:
    """The program of one assignment with its kernel planned by the rules for operands and loops."""
    wanted = program.result_type
    program = tried(catalogue.OPERANDS, program, context)
    program = with_kernel(program, context, wanted, Names(program.facts))
    return tried(catalogue.KERNELS, program, context)


def _as_temporary(program: Program, target: str) -> Program:
    """The program with kernels in names that equal kernels share, and its last step making
    `target`."""
    named = tuple(canonical(s) if isinstance(s, Compute) else s for s in _planned(program.steps))
    names = Names(program.facts)
    steps = _landing_at(named, target, names)
    new = {s.target: program.facts[target] for s in steps if s.target not in program.facts}
    return replace(program.with_facts(new), steps=steps)


def _sizes_of(part: Assignment) -> tuple[tuple[str, int], ...]:
    """For each index of the target, an operand and a mode of it that has its size."""
    places = {
        index: (access.tensor, mode)
        for access in accesses(part.value)
        for mode, index in enumerate(access.indices)
    }
    return tuple(places[index] for index in part.target.indices)


def _loops_of(assignment: Assignment, program: Program) -> Orders | None:
    """The loop orders of the only kernel of a program; None where it has other indices than the
    assignment."""
    (kernel,) = program.kernels
    same = {*all_indices(kernel.problem.assignment)} == {*all_indices(assignment)}
    return kernel.schedule.orders if same else None


def _left_out(request: Request, options: Options) -> frozenset[str]:
    """The rules that a call's options leave out."""
    names: set[str] = set()
    if not request.any_order:
        names.add("order_result")
    if request.forms is False:
        names |= catalogue.FORMS
    if not request.look_up:
        names |= catalogue.WALKED
    if not options.contract:
        names |= catalogue.ONE_KERNEL
    if options.path is not None:
        names |= catalogue.GIVEN_PATH
    if options.schedule is not None:
        names |= catalogue.UNDER_COMMANDS
    return frozenset(names)


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

    def changed(step: Compute) -> Compute:
        own = step.schedule
        new = _with_commands(own, schedule) if step is last else own.then(others)
        return replace(step, schedule=new)

    return tuple(changed(step) if isinstance(step, Compute) else step for step in steps)


def _with_commands(own: Schedule, asked: Schedule) -> Schedule:
    """A kernel's schedule and the user's commands: in loops where these name one of them."""
    names_none = all(isinstance(command, Serial) for command in asked.commands)
    return (own if names_none else own.with_way(Make())).then(asked.sharing)


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
