"""The user's operands checked and planned for, for several statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from codegen.records import dataclass
from taco_py.arguments.operands import Given, facts, give, informer, joined_of, type_of
from taco_py.arguments.options import CallOptions
from taco_py.arguments.results import container
from taco_py.calls.call.planner_request import goal_of, planner_options
from taco_py.calls.call.prepare import check_casts, read_as
from taco_py.calls.call.several.sequence import Statements, check_passed, in_single_assignment
from taco_py.calls.call.several.typed import Read, ResultOptions, Typed, typed
from taco_py.calls.call.widened import may_repeat
from taco_py.compiler.driver import CompiledKernel
from taco_py.data.kernels import KERNELS
from taco_py.data.storage.room import room
from taco_py.language.diagnostics.errors import NotationError, ScheduleError
from taco_py.language.legal.types import computes_exactly
from taco_py.language.notation.nodes import Assignment
from taco_py.planner.ir.plan import Plan
from taco_py.planner.statements import plan_statements
from taco_py.running.execute.run import Execution


@dataclass(frozen=True, slots=True, eq=False)
class Ready:
    """Checked operands and a plan of several statements.

    given    operands by name, those read in another type under the name that statements read
    kernels  those of the plan that are compiled, shared by all calls with this plan
    alone    whether every operand is read as it was passed, once
    """

    statements: Statements
    typed: Typed
    given: Mapping[str, Given]
    plan: Plan
    kernels: dict[tuple[str, str], CompiledKernel]
    alone: bool

    def start(self, options: CallOptions) -> Execution:
        """Return an execution over the operands."""
        tensors = {name: g.data for name, g in self.given.items()}
        threads = options.threads or KERNELS.cores
        known = informer(self.given), self.kernels
        return Execution(tensors, threads, None, *known, machine=self.plan.machine)


def make_ready(
    written: Sequence[Assignment],
    objects: Mapping[str, Any],
    options: CallOptions,
    outputs: Sequence[str],
    formats: Mapping[str, Any],
) -> Ready:
    """Return all checks, then the plan.

    outputs  the names that are wanted
    formats  those that are asked for, by name
    """
    check_schedule(options)
    statements = in_single_assignment(written, outputs, objects)
    check_passed(written, statements, objects)
    given = give(objects, options.dtype, options.weak)
    if options.dtype is not None:
        check_casts(given, options.dtype, options.casting)
        given = read_as(given, dict.fromkeys(given, options.dtype))
    inform = informer(given)
    wide = frozenset(
        name
        for name, g in given.items()
        if options.dtype is None
        and not g.data.format.is_dense
        and computes_exactly(g.data.dtype)
        and may_repeat(inform(name, g.data))
    )
    known = {name: g.operand for name, g in given.items()}
    containers = {name: container(g) for name, g in given.items()}
    asked = ResultOptions(formats, options.dtype, options.static, wide)
    found = typed(statements, known, containers, asked)
    given = {**given, **{name: _read(given, each) for name, each in found.reads.items()}}
    results = tuple(statements.outputs.values())
    key = ("several", found.assignments, results, *found.kinds.items(), options, facts(given))
    planned = _recalled(key, found, given, options, results)
    same = all(read.source == name and not read.converted for name, read in found.reads.items())
    return Ready(statements, found, given, planned.plan, planned.kernels, same)


def check_schedule(options: CallOptions) -> None:
    """Raise where a call asks for what only one statement can have."""
    if options.schedule is not None or options.chosen_by_data:
        raise ScheduleError(
            "Expected no schedule for several statements, each of which has loops of its own, "
            "found one",
            hint="leave schedule= away, or compute that statement by a call of its own",
        )
    if options.path is not None:
        raise NotationError(
            "Expected no path for several statements, found one",
            hint="leave path= away, or compute that statement by a call of its own",
        )


def _read(given: Mapping[str, Given], read: Read) -> Given:
    """Return an operand in the type that it is read in."""
    source, wanted = given[read.source], read.dtype
    if not read.converted:
        return read_as({read.source: source}, {read.source: wanted})[read.source]
    with room(f"{read.source} as {wanted}", source.data.values.size * wanted.itemsize):
        data = replace(source.data, values=source.data.values.astype(wanted))
    operand = replace(source.operand, type=type_of(data), joined=joined_of(data))
    return replace(source, data=data, operand=operand)


@dataclass(frozen=True, slots=True, eq=False)
class _Planned:
    """What is the same for all operands with the same facts."""

    plan: Plan
    kernels: dict[tuple[str, str], CompiledKernel]


def _recalled(
    key: tuple[object, ...],
    found: Typed,
    given: Mapping[str, Given],
    options: CallOptions,
    results: Sequence[str],
) -> _Planned:
    """Return the plan for such operands, made when it is first asked for."""
    planned: _Planned | None = KERNELS.memo.get(key)
    if planned is None:
        operands = {name: g.operand for name, g in given.items()}
        request = replace(goal_of(options, found.types[results[-1]]), sized=True)
        asked = planner_options(options)
        plan = plan_statements(found.assignments, operands, found.types, request, results, asked)
        planned = _Planned(plan, {})
        KERNELS.memo.put(key, planned)
    return planned
