"""How a computation is done, as text: its plan, and where the schedule stands among all others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from taco_py.arguments.operands import copies_made
from taco_py.calls.call.computation import Computation
from taco_py.calls.call.compute import with_chosen_plan
from taco_py.calls.call.devices.on_device import describe_place
from taco_py.calls.call.libraries import libraries_of
from taco_py.calls.call.planner_request import open_goal
from taco_py.calls.call.prepare import Prepared, prepare, prepare_within, start
from taco_py.calls.call.views import shared_look
from taco_py.calls.statements.elaborate import Elaborated
from taco_py.calls.statements.sequence import Statements
from taco_py.compiler.driver import compile_recipes
from taco_py.language.diagnostics.cautions import issue_warnings
from taco_py.language.notation.dtypes import DType
from taco_py.language.notation.half_types import computed_dtype, is_half
from taco_py.language.notation.nodes import Assignment
from taco_py.language.notation.printer import to_text
from taco_py.language.problem import TensorType
from taco_py.planner.ir.plan import Plan
from taco_py.planner.rules.forms import inline_statement
from taco_py.running.execute.run import copies_in_order

SECONDS = 1.0
"""The seconds of the comparison with other schedules where nobody says how many."""


def explained(computation: Computation, seconds: float | None = None) -> str:
    """Plan and compile statements, and describe the plan and its rank among all schedules.

    seconds  of the comparison with other schedules, None for as many as the search may take
    """
    issue_warnings(computation.cautions)
    squeezed, single = computation.squeezed, computation.is_single
    if single and not squeezed:
        look = shared_look(computation.last, computation.objects, computation.options)
        if look is not None:
            return _of_view(computation.last)
    lines = (planned_text(computation), standing(computation, seconds) if single else "")
    return "\n".join(filter(None, lines))


def _of_view(assignment: Assignment) -> str:
    """Return the text of explain() for a result that is a view of an operand."""
    view = f"{to_text(assignment.target)} is {to_text(assignment.value)}, modes permuted"
    return f"runs      0 kernels, 0 copies\nresult    {view}: it shares the operand's arrays"


def planned_text(computation: Computation) -> str:
    """Plan and compile statements, and describe the plan."""
    from taco_py.report.explanation.plan_report import explain as explain_plan

    computation, times = with_chosen_plan(computation)
    objects, options = computation.objects, computation.options
    prepared, _ = prepare_within(computation)
    steps = prepared.plan.kernels
    kernels = compile_recipes(prepared.plan.recipes)
    copies = copies_made(objects, prepared.operands)
    execution = start(prepared, options, None)
    for step, kernel in zip(steps, kernels, strict=True):
        copies += copies_in_order(kernel, step, execution)
    report = explain_plan(
        prepared.plan, kernels, tuple(dict.fromkeys(copies)), execution.threads, execution.tensors
    )
    checked = prepared.checked
    if not (computation.is_single and computation.requested.alone):
        report = with_results(report, checked.statements, checked.elaborated, prepared.plan)
    return times + _roundings(prepared) + describe_place(objects, options.target) + report


def _roundings(prepared: Prepared) -> str:
    """Return the lines of explain() on results in 16 bits."""
    types = {name: prepared.dtype_of(target) for name, target in prepared.outputs.items()}
    return rounding_lines(types)


def rounding_lines(types: Mapping[str, DType]) -> str:
    """Return the lines of explain() on results in 16 bits, "" where there is none.

    types  of the results, by name
    """
    halves = {name: dtype for name, dtype in types.items() if is_half(dtype)}
    names = {name: "the result" if len(types) == 1 else name for name in halves}
    return "".join(
        f"rounds    {names[name]} to {dtype}, behind the kernels: they read and add up float32\n"
        for name, dtype in halves.items()
    )


def standing(computation: Computation, seconds: float | None = None) -> str:
    """Return candidates → after the depth filter → after domination → chosen; "" where the user
    chose, or where there is no time for it.

    seconds  for this search; None for as many as the plan had, or SECONDS
    """
    from taco_py.report.explanation.standing import report

    options = computation.options
    is_chosen = options.schedule is not None and options.schedule.shapes
    if seconds is None:
        seconds = SECONDS if options.schedule_budget is None else options.schedule_budget
    if is_chosen or options.chosen_by_data or seconds == 0:
        return ""
    prepared = prepare(computation.last, computation.objects, options, computation.squeezed)
    operands = {name: operand.operand for name, operand in prepared.operands.items()}
    type = TensorType(prepared.kind.format, computed_dtype(prepared.dtype).name)
    request = replace(open_goal(options, type), libraries=libraries_of(options))
    return report(prepared.assignment, operands, request, prepared.plan, seconds)


def with_results(report: str, statements: Statements, elaborated: Elaborated, plan: Plan) -> str:
    """Add a line for each statement to the report on a plan."""
    first, *rest = report.split("\n")
    return "\n".join((first, *_statement_lines(statements, elaborated, plan), *rest))


def _statement_lines(statements: Statements, elaborated: Elaborated, plan: Plan) -> Iterator[str]:
    """Yield a line for the results, for each tensor between, and for each statement that is
    dropped."""
    results = (
        f"{name} ({elaborated.kinds[target].kind})" for name, target in statements.outputs.items()
    )
    yield f"results   {', '.join(results)}"
    outputs = statements.outputs.values()
    inlined = {entry.target: entry.reason for entry in plan.log.of(inline_statement.RULE.name)}
    if not plan.log.entries:  # of a plan that is read from its text
        targets = {assignment.target.tensor for assignment in statements.assignments}
        targets -= {step.target for step in plan.steps}
        inlined = dict.fromkeys(targets, "as the plan says")
    for assignment in statements.assignments:
        name = assignment.target.tensor
        if name in inlined:
            yield f"inlined   {to_text(assignment)}: {inlined[name]}"
        elif name not in outputs:
            yield f"between   {to_text(assignment)}, stored as {elaborated.operands[name].type}"
    for assignment in statements.dropped:
        name = assignment.target.tensor
        yield f"dropped   {to_text(assignment)}: nothing reads {name}, which is no output"
