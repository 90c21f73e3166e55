"""How several statements are computed, as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from taco_py.arguments.operands import copies_made
from taco_py.arguments.options import CallOptions
from taco_py.calls.call.devices.on_device import told_place
from taco_py.calls.call.prepare import prepare_statements, start
from taco_py.calls.call.several.requested_outputs import RequestedOutputs
from taco_py.calls.statements.elaborate import Elaborated
from taco_py.calls.statements.sequence import Statements
from taco_py.compiler.driver import compile_recipes
from taco_py.language.notation.nodes import Assignment
from taco_py.language.notation.printer import to_text
from taco_py.planner.ir.plan import Plan
from taco_py.planner.rules.forms import inline_statement
from taco_py.report.explanation.plan_report import explain
from taco_py.running.execute.run import copies_in_order


def explained_several(
    written: Sequence[Assignment],
    objects: Mapping[str, Any],
    options: CallOptions,
    asked: RequestedOutputs,
) -> str:
    """Plan and compile statements, and say what was planned."""
    prepared = prepare_statements(written, objects, options, asked.outputs, asked.formats)
    steps = prepared.plan.kernels
    kernels = compile_recipes(prepared.plan.recipes)
    copies = copies_made(objects, prepared.given)
    execution = start(prepared, options, None)
    for step, kernel in zip(steps, kernels, strict=True):
        copies += copies_in_order(kernel, step, execution)
    told = explain(
        prepared.plan, kernels, tuple(dict.fromkeys(copies)), execution.threads, execution.tensors
    )
    told = with_results(
        told, prepared.checked.statements, prepared.checked.elaborated, prepared.plan
    )
    return told_place(objects, options.target) + told


def with_results(told: str, statements: Statements, elaborated: Elaborated, plan: Plan) -> str:
    """What is said of a plan, and what becomes of each statement."""
    first, *others = told.split("\n")
    return "\n".join((first, *told_statements(statements, elaborated, plan), *others))


def told_statements(statements: Statements, elaborated: Elaborated, plan: Plan) -> Iterator[str]:
    """Yield a line for the results, for each tensor between, and for each statement that is
    dropped."""
    results = (
        f"{name} ({elaborated.kinds[target].kind})" for name, target in statements.outputs.items()
    )
    yield f"results   {', '.join(results)}"
    wanted = statements.outputs.values()
    inlined = {entry.target: entry.reason for entry in plan.log.of(inline_statement.RULE.name)}
    for each in statements.assignments:
        name = each.target.tensor
        if name in inlined:
            yield f"inlined   {to_text(each)}: {inlined[name]}"
        elif name not in wanted:
            yield f"between   {to_text(each)}, stored as {elaborated.operands[name].type}"
    for each in statements.dropped:
        name = each.target.tensor
        yield f"dropped   {to_text(each)}: nothing reads {name}, which is no output"
