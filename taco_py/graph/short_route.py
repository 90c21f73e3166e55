"""The short way of a call that was made: one function from the arguments to the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from taco_py.data.interop.scipy_arrays import is_scipy_sparse
from taco_py.data.tensors.tensor import Tensor
from taco_py.graph.extents import Extent, ExtentWriter
from taco_py.graph.graph_builder import LAYOUTS
from taco_py.graph.graph_call import GraphCall
from taco_py.graph.nodes import Graph, Output
from taco_py.graph.run.graph_program import KernelRun, NumpyRun, Step, has_short_way
from taco_py.graph.run.left_to_numpy import compute
from taco_py.running.replay.source_text import integer_text

MOST_STEPS = 12
"""Steps of a program that has a short way."""


def short_route(
    call: GraphCall, operands: Sequence[Any], values: Sequence[Any]
) -> Callable[..., Any] | None:
    """Make the function for calls like one that was made; None where there is none.

    It returns None for calls that it is not made for.
    """
    alike = all(one is other for one, other in zip(operands, values, strict=True))
    if not alike or any(isinstance(value, bool) for value in values):
        return None
    return _by_steps(call, operands) if call.offload is None else _by_sizes(call, operands)


def _by_steps(call: GraphCall, operands: Sequence[Any]) -> Callable[..., Any] | None:
    """Make the function for calls of kernels and of NumPy."""
    graph, steps = call.program.graph, call.program.steps
    alone = len(steps) == 1 and isinstance(steps[0], KernelRun) and not _changes(graph, steps[0])
    alone = alone and not call.program.views
    if not (alone or _is_dense(call, operands)) or not 0 < len(steps) <= MOST_STEPS:
        return None  # of sparse values NumPy's text is another one
    if any(isinstance(step, KernelRun) and step.statements is None for step in steps):
        return None
    if not all(isinstance(step, KernelRun | NumpyRun) for step in steps):
        return None
    if {*graph.outputs} - {name for step in steps for name in step.outputs}:
        return None
    return _Text(call).function(operands)


def _changes(graph: Graph, step: Step) -> bool:
    """Tell whether results differ from the arrays that kernels return."""
    facts = graph.facts
    return any(any(facts[name].units) or facts[name].sparsity for name in step.outputs)


def _is_dense(call: GraphCall, operands: Sequence[Any]) -> bool:
    """Tell whether NumPy's arrays and numbers are all that a call is about."""
    leaves = call.program.graph.leaves
    return not any(leaf.fact.sparsity for leaf in leaves) and all(
        isinstance(operand, np.ndarray | np.generic | int | float | complex) for operand in operands
    )


def _by_sizes(call: GraphCall, operands: Sequence[Any]) -> Callable[..., Any] | None:
    """Make the function for calls of the same sizes, where backends may compute regions."""
    if call.offload is None:
        return None
    program, trace = call.offload.program(operands), call.trace
    if program.program is call.program:
        return _at_sizes(_by_steps(call, operands), operands)
    if not all(type(operand) is np.ndarray for operand in operands):
        return None
    sizes = [operand.shape for operand in operands]

    def route(*values: Any) -> Any:
        if [value.shape for value in values] != sizes or not program.is_current:
            return None
        return trace.returned(program.program.run(values)) if trace.free.hold() else None

    return route


def _at_sizes(
    route: Callable[..., Any] | None, operands: Sequence[Any]
) -> Callable[..., Any] | None:
    """Return a function for operands of these sizes alone, for which no backend was chosen."""
    sizes = [*map(_size_of, operands)]
    if route is None or None in sizes:
        return None
    kernels = route
    return lambda *values: kernels(*values) if [*map(_size_of, values)] == sizes else None


def _size_of(value: Any) -> tuple[int, ...] | None:
    """Return the shape of an operand, with bits of entries; None of whole numbers."""
    if isinstance(value, np.ndarray):
        return value.shape if type(value) is np.ndarray else None
    if isinstance(value, float | complex | np.inexact):
        return ()
    if not is_scipy_sparse(value):
        return None
    sizes: tuple[int, ...] = (*value.shape, int(value.nnz).bit_length())
    return sizes


class _Text:
    """The text of the function and what it names.

    names  of the graph's values, in the text: v0, v1, …; no name of a graph becomes a part of it
    """

    def __init__(self, call: GraphCall) -> None:
        self.call = call
        self.space: dict[str, Any] = {"np": np}
        self.made: set[str] = set()
        graph = call.program.graph
        values = dict.fromkeys([*(leaf.name for leaf in graph.inputs), *graph.by_name])
        self.names = {name: f"v{number}" for number, name in enumerate(values)}
        places = {leaf.name: self.names[leaf.name] for leaf in graph.inputs}
        self.extents = ExtentWriter(places, self.space)

    def function(self, operands: Sequence[Any]) -> Callable[..., Any] | None:
        """Define the function, given the operands of the call that was made."""
        program, trace = self.call.program, self.call.trace
        names = [self.names[leaf.name] for leaf in program.graph.inputs]
        values = program.begin(operands)
        lines = [f"def route({', '.join(names)}):"]
        if conditions := self._conditions():
            lines += [f"    if {conditions}:", "        return None"]
        if trace.free.cells or trace.free.names or trace.free.contents:
            self.space["hold"] = trace.free.hold
            lines += ["    if not hold():", "        return None"]
        body: list[str] = []
        for view in program.views:
            body += self._numpy(view)
            self.made.update(view.outputs)
        for step, last in program.in_order:
            code = self._step(step, values)
            if code is None:
                return None
            body += [*code, *(f"del {self.names[name]}" for name in last if name in self.made)]
        if len(program.steps) == 1 and not program.views:
            lines += [f"    {line}" for line in (*body, f"return {self._result()}")]
        else:  # the long way tells what is wrong
            inner = [f"        {line}" for line in (*body, f"return {self._result()}")]
            lines += ["    try:", *inner, "    except Exception:", "        return None"]
        if self.extents.lines:
            return None  # numbers of that many parts are left to the long way
        exec("\n".join(lines), self.space)
        route: Callable[..., Any] = self.space["route"]
        return route

    def _step(self, step: Step, values: dict[str, Any]) -> list[str] | None:
        """Return the lines of a step; None where it has no short way."""
        if isinstance(step, NumpyRun):
            lines: list[str] | None = self._numpy(step)
        else:
            lines = self._kernel(step, values) if isinstance(step, KernelRun) else None
        self.made.update(step.outputs)
        return lines

    def _kernel(self, step: KernelRun, values: dict[str, Any]) -> list[str] | None:
        assert step.statements is not None
        args = [self._operand(name, values) for name in step.statements.operands]
        kernel = has_short_way(step.last_key)
        results = step.statements.results
        facts = self.call.program.graph.facts
        if kernel is None or None in args or any(facts[name].sparsity for name in results):
            return None
        call = f"call{len(self.space)}"
        self.space[call] = kernel
        joins = step.joins
        if not joins.is_complete:
            return None
        before = []
        if joins.joins:
            inputs = (self.names[leaf.name] for leaf in self.call.program.graph.inputs)
            arrays = self._bind(joins.arrays)
            before = [f"arrays = {arrays}(({''.join(f'{name}, ' for name in inputs)}))"]
            args += [f"arrays[{self._bind(name)}]" for name in results if name in joins.parts]
        targets = [self.names[result] for result in results]
        target = targets[0] if len(results) == 1 and not joins.joins else "found"
        text = f"{target} = {call}({', '.join(map(str, args))})"
        lines = [*before, text, f"if {target} is None:", "    return None"]
        if target == "found":
            lines.append(f"{', '.join(targets)}, = found")
        for name, result in zip(targets, results, strict=True):
            if any(facts[result].units):
                if result in step.statements.stored:
                    return None  # the long way puts modes of size 1 into what is sparse
                key = ", ".join("None" if unit else ":" for unit in facts[result].units)
                lines.append(f"{name} = np.asarray({name})[{key}]")
        lines += [f"{self.names[name]} = arrays[{self._bind(name)}]" for name in joins.names]
        return lines

    def _numpy(self, step: NumpyRun) -> list[str]:
        node, target = step.node, self.names[step.node.name]
        args = [self._value(name) for name in node.inputs]
        if node.get("call") == "slice" and node.operator == "numpy":
            return [f"{target} = {args[0]}[{subscripts(node.get('key'), self.extents.write)}]"]
        if node.operator in LAYOUTS and node.operator != "broadcast":
            order = self.call.program.graph.facts[node.inputs[0]].order
            return [f"{target} = {args[0]}{view_of(node.get('source'), order)}"]
        place = len(self.space)
        self.space[f"run{place}"] = partial(compute, node, node.get("call", node.operator))
        numbers = "()"
        if step.numbers is not None:
            self.space[f"numbers{place}"] = step.numbers
            inputs = (self.names[leaf.name] for leaf in self.call.program.graph.inputs)
            numbers = f"numbers{place}({', '.join(inputs)})"
        return [f"{target} = run{place}(({''.join(f'{a}, ' for a in args)}), {numbers})"]

    def _value(self, name: str) -> str:
        """Return the name of a value that is there in the text."""
        program = self.call.program
        if name in self.made or name in {leaf.name for leaf in program.graph.inputs}:
            return self.names[name]
        for number in program.graph.numbers:
            if number.name == name:
                make = self._bind(dict(program.makers)[name])
                return f"{make}({self.extents.write(number.extent)})"
        constants = {constant.name: constant.value for constant in program.graph.constants}
        return self._bind(constants[name])

    def _operand(self, name: str, values: dict[str, Any]) -> str | None:
        """Return the expression of an operand of a kernel; None where there is none."""
        fact = self.call.program.graph.facts[name]
        text = self._value(name)
        if not any(fact.units):
            return text
        value = values.get(name)
        if is_scipy_sparse(value) or isinstance(value, Tensor):
            return None
        key = ", ".join("0" if unit else ":" for unit in fact.units)
        return f"{text}[{key}{',' if len(fact.units) == 1 else ''}]"

    def _conditions(self) -> str:
        """Write the condition that a number is not as the trace expects; kernels check sizes
        themselves.
        """
        trace = self.call.trace
        conditions = []
        for place, (extent, expected) in enumerate(
            zip(trace.conditions, trace.expected, strict=True)
        ):
            if _is_equality(extent):
                continue
            self.space[f"expected{place}"] = expected
            conditions.append(f"{self.extents.write(extent)} != expected{place}")
        return " or ".join(conditions)

    def _result(self) -> str:
        """Return the expression of the function's result."""
        outputs = [self.names[name] for name in self.call.program.graph.outputs]
        return self._template(self.call.trace.template, outputs)

    def _template(self, template: Any, parts: Sequence[str]) -> str:
        if isinstance(template, Output):
            return parts[template.place]
        if type(template) is tuple:
            return f"({''.join(f'{self._template(part, parts)}, ' for part in template)})"
        if type(template) is list:
            return f"[{', '.join(self._template(part, parts) for part in template)}]"
        if type(template) is dict:
            pairs = (f"{self._bind(k)}: {self._template(e, parts)}" for k, e in template.items())
            return f"{{{', '.join(pairs)}}}"
        if isinstance(template, tuple) and hasattr(template, "_fields"):
            fields = ", ".join(self._template(part, parts) for part in template)
            return f"{self._bind(type(template))}({fields})"
        return self._bind(template)

    def _bind(self, value: Any) -> str:
        """Return a name for an object that the text has."""
        name = f"other{len(self.space)}"
        self.space[name] = value
        return name


def _is_equality(extent: Extent) -> bool:
    sizes = all(isinstance(arg, Extent) and arg.operator == "size" for arg in extent.args)
    return extent.operator == "==" and sizes


def subscripts(key: Sequence[tuple[Any, ...]], write: Callable[[Extent], str]) -> str:
    """Write subscripts as Python's text, sizes as `write` does.

    >>> subscripts((("at", const(0)), ("slice", const(1), None, None), ("new",)), str)
    '0, 1::, None,'
    """
    parts = []
    for kind, *ends in key:
        if kind == "new":
            parts.append("None")
        elif kind == "at":
            parts.append(write(ends[0]))
        else:
            parts.append(":".join("" if end is None else write(end) for end in ends))
    return "".join(f"{part}, " for part in parts).rstrip() or "()"


def view_of(source: Sequence[int | None], order: int) -> str:
    """Write the expression of a layout of an array, which stands before it.

    >>> view_of((1, None, 0), 3)
    '.transpose(1, 0, 2)[:, None, :, 0]'
    """
    axes = [int(integer_text(axis)) for axis in source if axis is not None]
    modes = (*axes, *(axis for axis in range(order) if axis not in axes))
    transposed = f".transpose({', '.join(map(str, modes))})" if modes != tuple(range(order)) else ""
    key = ["None" if axis is None else ":" for axis in source] + ["0"] * (order - len(axes))
    return f"{transposed}[{', '.join(key)}]" if "None" in key or "0" in key else transposed
