"""One assignment over given operands → the steps that compute it.

text → program (`plan.search`: rules in the order of the catalogue) → kernels (`plan.make_kernel`)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from codegen.names import Names
from codegen.records import dataclass
from taco_py.compiler.concrete.nodes import Race
from taco_py.compiler.concrete.terms import accumulating, split_terms, sums_outside, top_reduction
from taco_py.compiler.schedule import distribute
from taco_py.compiler.schedule.commands import Parallelize, Serial
from taco_py.compiler.schedule.schedule import OPEN, Schedule
from taco_py.compiler.ways.gpu_check import ATOMIC_SUMS, check_order, open_order
from taco_py.compiler.ways.library_choice import Libraries
from taco_py.compiler.ways.place_match import walk_of
from taco_py.compiler.ways.ways import in_loops_on, way_of
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.legal.stored import is_full
from taco_py.language.notation.checks import all_indices, operand_names
from taco_py.language.notation.compared_values import compared
from taco_py.language.notation.nodes import Assignment
from taco_py.planner.context import Context
from taco_py.planner.ir.goal import Request, real_statistics
from taco_py.planner.ir.nodes import Operand
from taco_py.planner.ir.plan import Plan
from taco_py.planner.ir.program import Define, Program, Selection
from taco_py.planner.lookahead import Lookahead
from taco_py.planner.make_kernel import kernel_in_loops_of_text
from taco_py.planner.make_kernels import with_kernels
from taco_py.planner.rules import catalogue
from taco_py.planner.rules.base import Trait
from taco_py.planner.rules.catalogue import NAMES, names_of
from taco_py.planner.rules.forms import multiply_out
from taco_py.planner.rules.layout import order_result
from taco_py.planner.rules.needed import carry_place
from taco_py.planner.rules.needed.narrow_sums import has_narrow_sums
from taco_py.planner.rules.needed.sum_in_chunks import check_together
from taco_py.planner.rules.split import contract_many
from taco_py.planner.search import Search, apply_rules
from taco_py.planner.unit_modes import squeezed


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
UnitModes = Sequence[tuple[str, tuple[int, ...]]]
"""Operands, and modes of size 1 that are taken off them."""


def make_plan(
    assignment: Assignment,
    operands: Mapping[str, Operand],
    request: Request,
    options: Options = _DEFAULT,
    unit_modes: UnitModes = (),
) -> Plan:
    """Return the steps that compute `assignment`, whose sums are explicit and whose sizes agree.

    unit_modes  modes of size 1 to take off operands first; `assignment` no longer has their indices

    Raises ScheduleError when the schedule does not fit the assignment.
    """
    schedule = options.schedule
    check_written(schedule)
    context = context_of(request, options)
    program = _program(assignment, operands, context.goal, unit_modes)
    if names_loops(schedule):
        assert schedule is not None
        planned, program = in_loops_of_text(program, context, schedule)
        return plan_of(planned, program, context)
    split = split_assignment(program, context, schedule)
    kernels, loops = with_kernels(split, context, split.result)
    tidy = apply_rules(catalogue.TIDY, kernels, context)
    tidy = _with_threads(tidy, schedule, context.goal.machine.is_gpu)
    selection = Selection(split.without_entries, loops, program.without_entries)
    return plan_of(tidy, split, context, selection)


def split_assignment(
    program: Program, context: Context, schedule: Schedule | None = None
) -> Program:
    """Return the program after all rules that split its assignment.

    What it compares with itself is made before, by steps of its own.
    """
    program = apply_rules(catalogue.SINGLE, program, context)
    if not program.temporaries:
        return _split(program, context, schedule)
    left_out = context.goal.left_out | names_of(Trait.RESULT)  # later assignments read it
    inner_context = replace(context, goal=replace(context.goal, left_out=left_out, path=None))
    for temporary in program.temporaries:
        program = with_split(program, temporary.target, inner_context)
    return with_split(program, program.result, context, schedule)


def with_split(
    program: Program, target: str, context: Context, schedule: Schedule | None = None
) -> Program:
    """Return the program with one assignment in its cheapest form, split and stored well.

    A tensor that another assignment reads or makes keeps its type.
    """
    alone = program.only(target)
    part = _split(alone, context, schedule)
    rest = [define for define in program.defines if define.target != target]
    shared = {n for define in rest for n in (define.target, *operand_names(define.assignment))}
    if any(part.facts[name].type != program.facts[name].type for name in shared):
        goal = replace(context.goal, left_out=context.goal.left_out | names_of(Trait.TYPES))
        part = _split(alone, replace(context, goal=goal), schedule)
    return replace(program.spliced(part), sizes={**program.sizes, **part.sizes})


def _split(program: Program, context: Context, schedule: Schedule | None) -> Program:
    """Return the program of one assignment after all rules that split it.

    A reduction by another operator than a sum is one kernel: its rules are not those of sums.
    """
    if _is_carried(program, context):
        return program
    if _is_reduction(program):
        program = _reduced(apply_rules(catalogue.NORMAL, program, context), context)
        if _is_reduction(program):
            return apply_rules(catalogue.ABSENT, program, context).with_after
    prepared = apply_rules(catalogue.PREPARATION, program, context)
    split = Search().split_result(prepared, context)
    if _marks_others(schedule, split.last) and not has_narrow_sums(prepared.last, prepared.facts):
        check_together(prepared.last, prepared.facts, context.request(prepared, prepared.result))
        split = prepared.with_assignment(sums_outside(prepared.last))
    return apply_rules(catalogue.ABSENT, split, context).with_after


def _is_carried(program: Program, context: Context) -> bool:
    """Tell whether a kernel carries the value and place of extrema through one loop."""
    if not carry_place.RULE.takes_part(context):
        return False
    return walk_of(program.problem(program.last, program.last.value)) is not None


def _reduced(program: Program, context: Context) -> Program:
    """Return the program of a reduction by another operator than + after its rules."""
    program = apply_rules(catalogue.REDUCTION, program, context)
    for step in tuple(program.defines):
        part = program.only(step.target)
        if _is_reduction(part):
            program = program.spliced(apply_rules(catalogue.REDUCED, part, context))
    return apply_rules(catalogue.STORED, program, context)


def _is_reduction(program: Program) -> bool:
    """Tell whether a program reduces by another operator than a sum, into a value where it is
    dense."""
    value = program.last.value
    dense = program.is_full(program.result)
    return top_reduction(value) is not None or (dense and accumulating(value) is not None)


def _check_compared(program: Program) -> None:
    """Raise ScheduleError where one kernel would compare two computations of the same value."""
    if compared([program.last], program.dtypes).forms:
        raise ScheduleError(
            "Expected commands on the loops of one kernel, found a value that is compared with "
            "itself, which a kernel of its own stores",
            hint="compute the value first and use the result as an operand",
        )


def check_written(schedule: Schedule | None) -> None:
    """Raise ScheduleError for a command that only the planner may give."""
    planned = () if schedule is None else schedule.compiler_commands
    if planned:
        raise ScheduleError(
            f"Expected commands on loops, found {planned[0]}, which is for the compiler to choose",
            hint="reorder(i,k,j) orders loops; loops alone make a kernel with commands on them",
        )


def program_of(
    assignment: Assignment, operands: Mapping[str, Operand], request: Request, options: Options
) -> tuple[Program, Context]:
    """Return the program of an assignment before its kernels are planned, and its context."""
    context = context_of(request, options)
    return split_assignment(_program(assignment, operands, context.goal), context), context


def context_of(request: Request, options: Options) -> Context:
    """Return the context for planning a request, without the rules that the options forbid."""
    request = replace(request, libraries=options.libraries, path=options.path)
    if options.schedule is not None and options.schedule.marked:
        request = request.as_written  # for these are the text's loops
    request = replace(request, left_out=request.left_out | _left_out(request, options))
    return Context(request, Lookahead(), Search())


def _program(
    assignment: Assignment,
    operands: Mapping[str, Operand],
    request: Request,
    unit_modes: UnitModes = (),
) -> Program:
    """Return the program of a text: its operands are given, and one assignment is to be
    computed."""
    target = assignment.target
    facts = {**operands, target.tensor: Operand(request.type, (), 0.0)}
    program = Program((Define(assignment),), facts, (target.tensor,), {}, request.static)
    program = squeezed(program, unit_modes)
    sizes = real_statistics(program.last, program.facts, request.machine).sizes
    shape = tuple(int(sizes.get(index, 1)) for index in target.indices)
    result = Operand(request.type, shape, float(prod(shape)))
    return replace(program.with_facts({target.tensor: result}), sizes=sizes)


def plan_of(
    planned: Program, split: Program, context: Context, selection: Selection | None = None
) -> Plan:
    """Return the plan of a program whose kernels are planned, with the reasons for it.

    split   the program before its kernels were planned
    selection  the same with the loops of each kernel, where the planner chose them
    """
    _check_order(planned, context)
    log = context.log
    fused = [entry for rule in NAMES[Trait.FUSES] for entry in log.of(rule)]
    targets = {step.target for step in planned.steps} | {entry.target for entry in fused}
    notes = [f"{entry.target}: {entry.reason}" for entry in log.of(contract_many.RULE.name)]
    notes += [
        f"{step.target}: {step.note}"
        for step in split.temporaries
        if step.note and step.target in targets
    ]
    notes += [f"{entry.target}: {entry.reason}" for entry in fused]
    if selection is not None:
        selection = replace(selection, fused=frozenset(entry.target for entry in fused))
    forms = [
        line
        for entry in log.entries
        if entry.rule in NAMES[Trait.SUMS] and entry.reason
        for line in entry.reason.splitlines()
    ]
    last = split.facts[split.results[-1]].type
    may_fuse = len(split.results) == 1 and is_full(last.format)  # its modes may be fused
    return Plan(
        planned.without_unread.without_entries,
        context.goal.type if may_fuse else last,
        tuple(notes),
        context.effort.notes,
        next((entry.reason for entry in log.of(order_result.RULE.name)), ""),
        tuple(forms),
        any(log.of(multiply_out.RULE.name)),
        machine=context.goal.machine,
        selection=selection,
        log=log,
    )


def names_loops(schedule: Schedule | None) -> bool:
    """Tell whether a user's commands name the loops of a kernel."""
    return schedule is not None and bool(schedule.shapes or schedule.merges)


def in_loops_of_text(
    program: Program, context: Context, schedule: Schedule
) -> tuple[Program, Program]:
    """Plan one assignment whose loops the user orders, and return the plan and its unplanned
    program. Raises ScheduleError.
    """
    _check_compared(program)
    program = apply_rules(catalogue.NORMAL, program, context)
    if has_narrow_sums(program.last, program.facts):
        raise ScheduleError(
            "Expected sums in the result's own type under commands on loops, found one in a "
            "narrower integer type, which must be computed first",
            hint="convert the operands, or leave the schedule open",
        )
    assignment, schedule = _distributed(sums_outside(program.last), schedule, program.dtypes)
    request = context.request(program, program.result)
    check_together(assignment, program.facts, request)
    explicit = program.with_assignment(assignment)
    return kernel_in_loops_of_text(explicit, context, schedule, Names(program.facts)), program


def _check_order(planned: Program, context: Context) -> None:
    """Raise ScheduleError where a kernel adds in any order although the goal forbids it."""
    if context.may(ATOMIC_SUMS):
        return
    for kernel in planned.kernels:
        problem, way = kernel.problem, way_of(kernel.schedule.make)
        inexact = problem.result.dtype.startswith(("float", "bfloat", "complex"))
        shared = (c for c in kernel.schedule.commands if isinstance(c, Parallelize))
        if way.on_gpu and way.lower is not None:
            target = context.goal.machine.target
            recipe = kernel.recipe(target=target.name)
            check_order(problem, way.lower(recipe, target).module, target)
        elif inexact and any(command.race is Race.ATOMICS for command in shared):
            raise open_order(problem, (problem.assignment.target.tensor,))


def _left_out(request: Request, options: Options) -> frozenset[str]:
    """Return the rules that a call's options leave out."""
    traits: set[Trait] = set()
    if request.forms is False:
        traits.add(Trait.SUMS)
    if not request.look_up:
        traits.add(Trait.WALKS)
    if not options.contract:
        traits |= {Trait.FACTORS, Trait.KERNELS}
    if options.path is not None:
        traits.add(Trait.FACTORS)  # which the order of contractions counts
    if options.schedule is not None:
        traits.add(Trait.INDICES)  # which the commands name
    names = names_of(*traits)
    return names if request.any_order else names | {order_result.RULE.name}


def _marks_others(schedule: Schedule | None, last: Assignment) -> bool:
    """Tell whether a command marks a loop that the last of several kernels does not have."""
    marked = set() if schedule is None else schedule.marked
    return not marked <= set(all_indices(last))


def _distributed(
    assignment: Assignment, schedule: Schedule, dtypes: Mapping[str, np.dtype[Any]]
) -> tuple[Assignment, Schedule]:
    """Return the assignment with the terms multiplied out that the schedule begins with, and the
    rest.

    Sums inside the products of a command's term are around it, as in the assignment.
    """
    commands, rest = schedule.distributed
    for command in commands:
        term = replace(assignment, value=command.expression)
        bodies = [part.body for part in split_terms(sums_outside(term).value)]
        if len(bodies) == 1:
            command = replace(command, expression=bodies[0])
        assignment = distribute.multiply_out(assignment, command)
        distribute.check_types(command, dtypes)
    return assignment, rest


def with_threads(program: Program, schedule: Schedule, on_gpu: bool, target: str) -> Program:
    """Return the program as the schedule of one kernel wants its loops shared: none, or one."""
    kernel = next((k for k in program.kernels if k.target == target), None)
    if kernel is None:
        return program
    commands = _with_commands(kernel.schedule, schedule, on_gpu)
    return program.with_kernel(replace(kernel, schedule=commands))


def _with_threads(program: Program, schedule: Schedule | None, on_gpu: bool) -> Program:
    """Return the program with its loops shared among threads as the schedule asks."""
    if schedule is None:
        return program
    *before, last = program.kernels
    shared = Schedule((Serial(),)) if schedule.serial else OPEN
    for step in before:
        program = program.with_kernel(replace(step, schedule=step.schedule.then(shared)))
    return with_threads(program, schedule, on_gpu, last.target)


def _with_commands(planned: Schedule, user: Schedule, on_gpu: bool) -> Schedule:
    """Return a kernel's schedule and the user's commands: in loops where these name one of them."""
    names_none = all(isinstance(command, Serial) for command in user.commands)
    return (planned if names_none else planned.with_way(in_loops_on(on_gpu))).then(user.sharing)
