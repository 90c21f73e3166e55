"""Several assignments → one plan with several results.

    z[i] = sum(j, A[i,j] * x[j]);  s = sum(i, z[i] * z[i])      results z and s

Each assignment is planned as a temporary is; its readers know its facts. Names, copies and equal
steps are shared by all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from codegen.records import dataclass
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.language.diagnostics.errors import InternalError
from taco_py.language.notation.checks import operand_names
from taco_py.language.notation.dtypes import expression_dtype
from taco_py.language.notation.nodes import Assignment
from taco_py.language.notation.operators import Number
from taco_py.language.problem import TensorType
from taco_py.language.statement_indices import with_own_indices
from taco_py.planner.context import Context
from taco_py.planner.ir.formats import temporary_format
from taco_py.planner.ir.goal import Request, real_statistics
from taco_py.planner.ir.nodes import Operand
from taco_py.planner.ir.plan import Plan
from taco_py.planner.ir.program import Define, Program, Selection
from taco_py.planner.ir.target_facts import facts_of_target
from taco_py.planner.make import (
    Options,
    check_written,
    context_of,
    in_loops_of_text,
    names_loops,
    plan_of,
    with_split,
    with_threads,
)
from taco_py.planner.make_kernels import as_temporary, with_kernels
from taco_py.planner.rules import catalogue
from taco_py.planner.rules.base import Trait
from taco_py.planner.rules.catalogue import names_of
from taco_py.planner.rules.forms import inline_statement
from taco_py.planner.search import apply_rules

_DEFAULT = Options()


@dataclass(frozen=True, slots=True)
class StatementCommands:
    """What the user says of one statement among several.

    schedule  commands on its loops, None to choose
    path      pairwise contractions in einsum's numbering, None to choose
    """

    schedule: Schedule | None = None
    path: tuple[tuple[int, ...], ...] | None = None


NO_COMMANDS: Mapping[str, StatementCommands] = MappingProxyType({})


def plan_statements(
    statements: Sequence[Assignment],
    operands: Mapping[str, Operand],
    types: Mapping[str, TensorType],
    request: Request,
    results: Sequence[str] | None = None,
    options: Options = _DEFAULT,
    commands: Mapping[str, StatementCommands] = NO_COMMANDS,
) -> Plan:
    """Plan assignments in order, each of which may read operands and earlier targets.

    types    how targets are stored; of others the format is chosen
    request  its `type` says the index type of temporaries
    results  the tensors that are wanted, the others are temporaries; by default all with a type
    commands  of the user by target; no statement is then computed inside of another
    """
    if commands:
        joins = {inline_statement.RULE.name, *names_of(Trait.FUSES)}
        request = replace(request, left_out=request.left_out | joins)
    request = replace(request, left_out=request.left_out | names_of(Trait.RESULT))
    context = context_of(request, options)
    result_names = tuple(types) if results is None else tuple(results)
    text = program = _program(statements, operands, types, result_names, context)
    program = apply_rules(catalogue.STATEMENTS, program, context)
    for define in tuple(program.defines):
        target = define.target
        if target in commands:
            program = _with_commands(program, target, context, options, commands[target])
        else:
            program = with_split(program, target, context)
    kernels, loops = with_kernels(program, context)
    for target, command in commands.items():
        if command.schedule is not None and not names_loops(command.schedule):
            kernels = with_threads(kernels, command.schedule, context.goal.machine.is_gpu, target)
    selection = None
    if not any(names_loops(c.schedule) for c in commands.values()):
        selection = Selection(program.without_entries, loops, text.without_entries)
    return plan_of(apply_rules(catalogue.TIDY, kernels, context), program, context, selection)


def _with_commands(
    program: Program, target: str, context: Context, options: Options, commands: StatementCommands
) -> Program:
    """Return the program with one assignment split, or in a kernel, as the user says.

    Raises ScheduleError when the schedule does not fit the assignment.
    """
    schedule = commands.schedule
    check_written(schedule)
    said = replace(options, schedule=schedule, path=commands.path)
    context = replace(context, goal=context_of(context.goal, said).goal)
    if schedule is None or not names_loops(schedule):
        return with_split(program, target, context, schedule)
    planned, _ = in_loops_of_text(program.only(target), context, schedule)
    return program.spliced_as(as_temporary(planned, target), target)


def _program(
    statements: Sequence[Assignment],
    operands: Mapping[str, Operand],
    types: Mapping[str, TensorType],
    results: tuple[str, ...],
    context: Context,
) -> Program:
    """Return the program of assignments, with the facts that are expected of each target."""
    targets = [statement.target.tensor for statement in statements]
    if len(set(targets)) < len(targets) or not {*types, *results} <= set(targets):
        raise InternalError(f"Expected results {list(results)} among targets, found {targets}")
    facts = dict(operands)
    sizes: dict[str, float] = {}
    defines: list[Define] = []
    shapes = {name: operand.shape for name, operand in operands.items()}
    for statement in with_own_indices(statements, shapes):
        sizes.update(real_statistics(statement, facts, context.goal.machine).sizes)
        facts[statement.target.tensor] = _facts(statement, facts, types, context)
        defines.append(Define(statement))
    return Program(tuple(defines), facts, results, sizes, context.goal.static)


def _facts(
    statement: Assignment,
    facts: Mapping[str, Operand],
    types: Mapping[str, TensorType],
    context: Context,
) -> Operand:
    """Return the type, the shape and the expected entries of the target of one assignment."""
    target, value = statement.target, statement.value
    type = types.get(target.tensor)
    if type is None:
        form = temporary_format(statement, {n: f.type.format for n, f in facts.items()})
        read = {name: np.dtype(facts[name].type.dtype) for name in operand_names(statement)}
        dtype = expression_dtype(value, read).name
        type = TensorType(form, dtype, context.goal.type.index_dtype)
    stats = real_statistics(statement, facts, context.goal.machine)
    shape = tuple(int(stats.sizes[index]) for index in target.indices)
    return facts_of_target(statement, facts, type, shape, context.goal.machine)


def fills_of(operands: Mapping[str, Operand]) -> dict[str, Number]:
    """Return the nonzero fill values of operands that omit elements."""
    types = {name: operand.type for name, operand in operands.items()}
    return {name: type.fill_value.item() for name, type in types.items() if type.fill}
