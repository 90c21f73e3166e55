"""What a graph is and how it is computed, as text."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from taco_py.arguments.learned_price import ANALYTIC, Price
from taco_py.graph.backends.offload_report import count_runs, describe_offload, describe_step
from taco_py.graph.backends.offloaded_run import OffloadedRun
from taco_py.graph.graph_call import GraphCall
from taco_py.graph.nodes import Node
from taco_py.graph.position_operands import is_positions
from taco_py.graph.primitives.primitive_table import family_of
from taco_py.graph.primitives.sampled_values import operator_of
from taco_py.graph.run.graph_program import KernelRun, NumpyRun
from taco_py.graph.run.memory_report import MemorySeen
from taco_py.graph.sampling.sample_values import sampled_lines
from taco_py.graph.selection.choice_report import describe_choice
from taco_py.graph.selection.strategies import with_expected
from taco_py.graph.view_operators import free_views, is_places
from taco_py.language.legal.stored import is_sparse
from taco_py.language.notation.printer import to_text


def explain_graph(call: GraphCall, operands: Sequence[Any], name: str) -> str:
    """Describe the operators, primitives and steps of a graph.

    Values that kernels read are computed.
    """
    return "\n".join(_lines(call, operands, name))


def _lines(call: GraphCall, operands: Sequence[Any], name: str) -> Iterator[str]:
    operators, primitives = call.trace.graph, call.primitives
    offload = None if call.offload is None else call.offload.program(operands)
    program = call.program if offload is None else offload.program
    yield f"graph     {name}: {len(operators.nodes)} operators, {len(primitives.nodes)} primitives"
    yield f"runs      {count_runs(program)}"
    yield from describe_choice(
        with_expected(call.decision, primitives, operands, call.options.price)
    )
    yield from _price_lines(call.options.price)
    if call.offload is not None and offload is not None:
        yield from describe_offload(call.offload, offload)
    for extent, expected in zip(call.trace.conditions, call.trace.expected, strict=True):
        yield f"holds     where {extent} is {expected}"
    yield "operators"
    yield from (f"  {line}" for line in str(operators).splitlines())
    yield "primitives"
    for node in primitives.nodes:
        function = node.get("function") or node.get("call") or ""
        what = f"{operator_of(node)} {function}".strip()
        yield f"  {node.name:5} {family_of(node.operator):12} {what}  {node.place}".rstrip()
    yield from (f"sampled   {line}" for line in sampled_lines(primitives))
    free = free_views(primitives)
    yield from (f"operand   {_describe_numpy(view, free)}" for view in program.views)
    values = program.begin(operands)
    program.foresee(operands)
    memory = MemorySeen(program)
    for number, (step, last) in enumerate(program.in_order, 1):
        if isinstance(step, KernelRun):
            statements = step.write(primitives, values)
            yield f"step {number}    kernels of {', '.join(n.name for n in step.region.nodes)}"
            for assignment in statements.assignments:
                form = statements.formats.get(assignment.target.tensor)
                stored = f"    stored as {form}" if form is not None and is_sparse(form) else ""
                yield f"  {to_text(assignment)}{stored}"
            yield from (f"  {line}" for line in step.explain(primitives, values).splitlines())
        elif isinstance(step, OffloadedRun):
            yield f"step {number}    {describe_step(step)}"
            yield from (f"  {line}" for line in str(step.task.part.graph).splitlines())
        elif isinstance(step, NumpyRun):
            yield f"step {number}    {_describe_numpy(step, free)}"
        step.run(primitives, values)
        memory.note(number, step, values, last)
        for operand in last:
            del values[operand]
    yield from memory.describe()


def _price_lines(price: Price) -> Iterator[str]:
    """Yield the line on the price that decided, of a learned one; steps say the analytic one."""
    if price != ANALYTIC:
        from taco_py.tuning.bench.priced_schedule import describe_model
        from taco_py.tuning.prices.price_choice import model_of

        yield f"price     {describe_model(model_of(price))}"


def _describe_numpy(step: NumpyRun, free: Collection[str]) -> str:
    """Describe a primitive that NumPy computes, with the reason."""
    node = step.node
    head = "view" if node.name in free else "positions" if _has_positions(node) else "NumPy"
    text = f"{head}: {node.name} = {node.get('call', node.operator)}  {node.place}".rstrip()
    return f"{text} ({_reason(node, free)})"


def _has_positions(node: Node) -> bool:
    return is_positions(node) or is_places(node)


def _reason(node: Node, free: Collection[str]) -> str:
    """Say why no kernel computes a primitive."""
    if is_positions(node):
        return f"checked; kernels read {node.name}, which is 1 at the position of each row"
    if is_places(node):
        return "an operand of kernels"
    if node.name in free:
        gaps = " where that has no gaps" if node.get("call") == "reshape" else ""
        return f"of {node.inputs[0]}, in its memory{gaps}"
    return "moves elements" if node.operator != "numpy" else "no kernel computes it"
