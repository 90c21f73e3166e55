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
    if not alike or any(isinstance(each, bool) for each in values):
        return None
    return _by_steps(call, operands) if call.offload is None else _by_sizes(call, operands)


def _by_steps(call: GraphCall, operands: Sequence[Any]) -> Callable[..., Any] | None:
    """Make the function for calls of kernels and of NumPy."""
    graph, steps = call.program.graph, call.program.steps
    alone = len(steps) == 1 and isinstance(steps[0], KernelRun) and not _changes(graph, steps[0])
    if not (alone or _is_dense(call, operands)) or not 0 < len(steps) <= MOST_STEPS:
        return None  # of sparse values NumPy's text is another one
    if any(isinstance(step, KernelRun) and step.written is None for step in steps):
        return None
    if not all(isinstance(step, KernelRun | NumpyRun) for step in steps):
        return None
    if {*graph.outputs} - {name for step in steps for name in step.outputs}:
        return None
    return _Text(call).function(operands)


def _changes(graph: Graph, step: Step) -> bool:
    """Tell whether results are more than what kernels give."""
    facts = graph.facts
    return any(any(facts[name].units) or facts[name].sparsity for name in step.outputs)


def _is_dense(call: GraphCall, operands: Sequence[Any]) -> bool:
    """Tell whether NumPy's arrays and numbers are all that a call is about."""
    leaves = call.program.graph.leaves
    return not any(leaf.fact.sparsity for leaf in leaves) and all(
        isinstance(each, np.ndarray | np.generic | int | float | complex) for each in operands
    )


def _by_sizes(call: GraphCall, operands: Sequence[Any]) -> Callable[..., Any] | None:
    """Make the function for calls of the same sizes, where backends may compute regions."""
    if not all(type(each) is np.ndarray for each in operands) or call.offload is None:
        return None
    sizes = [each.shape for each in operands]
    found, trace = call.offload.program(operands), call.trace
    run = _by_steps(call, operands) if found.program is call.program else None
    if run is not None:
        kernel = run
        return lambda *values: kernel(*values) if [e.shape for e in values] == sizes else None

    def route(*values: Any) -> Any:
        if [each.shape for each in values] != sizes or not found.is_current:
            return None
        return trace.returned(found.program.run(values)) if trace.free.hold() else None

    return route


class _Text:
    """The text of the function and what it names.

    names  of the graph's values, in the text: v0, v1, …; no name of a graph becomes a part of it
    """

    def __init__(self, call: GraphCall) -> None:
        self.call = call
        self.space: dict[str, Any] = {"np": np}
        self.made: set[str] = set()
        graph = call.program.graph
        values = dict.fromkeys([*(each.name for each in graph.inputs), *graph.by_name])
        self.names = {name: f"v{number}" for number, name in enumerate(values)}
        places = {each.name: self.names[each.name] for each in graph.inputs}
        self.extents = ExtentWriter(places, self.space)

    def function(self, operands: Sequence[Any]) -> Callable[..., Any] | None:
        """Define the function, given the operands of the call that was made."""
        program, trace = self.call.program, self.call.trace
        names = [self.names[each.name] for each in program.graph.inputs]
        values = program.begin(operands)
        lines = [f"def route({', '.join(names)}):"]
        if conditions := self._conditions():
            lines += [f"    if {conditions}:", "        return None"]
        if trace.free.cells or trace.free.names or trace.free.held:
            self.space["hold"] = trace.free.hold
            lines += ["    if not hold():", "        return None"]
        body: list[str] = []
        for step, last in program.in_order:
            own = self._step(step, values)
            if own is None:
                return None
            body += [*own, *(f"del {self.names[each]}" for each in last if each in self.made)]
        if len(program.steps) == 1:
            lines += [f"    {line}" for line in (*body, f"return {self._result()}")]
        else:  # the long way tells what is wrong
            inner = [f"        {line}" for line in (*body, f"return {self._result()}")]
            lines += ["    try:", *inner, "    except Exception:", "        return None"]
        if self.extents.lines:
            return None  # numbers of that many parts are left to the long way
        exec("\n".join(lines), self.space)
        found: Callable[..., Any] = self.space["route"]
        return found

    def _step(self, step: Step, values: dict[str, Any]) -> list[str] | None:
        """Return the lines of a step; None where it has no short way."""
        if isinstance(step, NumpyRun):
            lines: list[str] | None = self._numpy(step)
        else:
            lines = self._kernel(step, values) if isinstance(step, KernelRun) else None
        self.made.update(step.outputs)
        return lines

    def _kernel(self, step: KernelRun, values: dict[str, Any]) -> list[str] | None:
        assert step.written is not None
        args = [self._operand(name, values) for name in step.written.operands]
        kernel = has_short_way(step.last_key)
        results = step.written.results
        facts = self.call.program.graph.facts
        if kernel is None or None in args or any(facts[name].sparsity for name in results):
            return None
        call = f"call{len(self.space)}"
        self.space[call] = kernel
        own = [self.names[each] for each in results]
        target = own[0] if len(results) == 1 else "found"
        text = f"{target} = {call}({', '.join(map(str, args))})"
        lines = [text, f"if {target} is None:", "    return None"]
        if len(results) > 1:
            lines.append(f"{', '.join(own)}, = found")
        for name, each in zip(own, results, strict=True):
            if any(facts[each].units):
                if each in step.written.stored:
                    return None  # the long way puts modes of size 1 into what is sparse
                key = ", ".join("None" if unit else ":" for unit in facts[each].units)
                lines.append(f"{name} = np.asarray({name})[{key}]")
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
            inputs = (self.names[each.name] for each in self.call.program.graph.inputs)
            numbers = f"numbers{place}({', '.join(inputs)})"
        return [f"{target} = run{place}(({''.join(f'{a}, ' for a in args)}), {numbers})"]

    def _value(self, name: str) -> str:
        """Return the name of a value that is there in the text."""
        program = self.call.program
        if name in self.made or name in {each.name for each in program.graph.inputs}:
            return self.names[name]
        for number in program.graph.numbers:
            if number.name == name:
                make = self._held(dict(program.makers)[name])
                return f"{make}({self.extents.write(number.extent)})"
        constants = {each.name: each.value for each in program.graph.constants}
        return self._held(constants[name])

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
        """That a number is not as the trace expects; kernels see themselves whether sizes agree."""
        trace = self.call.trace
        told = []
        for place, (extent, expected) in enumerate(
            zip(trace.conditions, trace.expected, strict=True)
        ):
            if _is_equality(extent):
                continue
            self.space[f"expected{place}"] = expected
            told.append(f"{self.extents.write(extent)} != expected{place}")
        return " or ".join(told)

    def _result(self) -> str:
        """Return the expression of what is returned of the values."""
        outputs = [self.names[each] for each in self.call.program.graph.outputs]
        return self._template(self.call.trace.template, outputs)

    def _template(self, template: Any, parts: Sequence[str]) -> str:
        if isinstance(template, Output):
            return parts[template.place]
        if type(template) is tuple:
            return f"({''.join(f'{self._template(each, parts)}, ' for each in template)})"
        if type(template) is list:
            return f"[{', '.join(self._template(each, parts) for each in template)}]"
        if type(template) is dict:
            pairs = (f"{self._held(k)}: {self._template(e, parts)}" for k, e in template.items())
            return f"{{{', '.join(pairs)}}}"
        if isinstance(template, tuple) and hasattr(template, "_fields"):
            fields = ", ".join(self._template(each, parts) for each in template)
            return f"{self._held(type(template))}({fields})"
        return self._held(template)

    def _held(self, value: Any) -> str:
        """Return a name for an object that the text has."""
        name = f"other{len(self.space)}"
        self.space[name] = value
        return name


def _is_equality(extent: Extent) -> bool:
    sizes = all(isinstance(each, Extent) and each.operator == "size" for each in extent.args)
    return extent.operator == "==" and sizes


def subscripts(key: Sequence[tuple[Any, ...]], write: Callable[[Extent], str]) -> str:
    """Write subscripts as Python's text, sizes as `write` does.

    >>> subscripts((("at", const(0)), ("slice", const(1), None, None), ("new",)), str)
    '0, 1::, None,'
    """
    found = []
    for kind, *ends in key:
        if kind == "new":
            found.append("None")
        elif kind == "at":
            found.append(write(ends[0]))
        else:
            found.append(":".join("" if end is None else write(end) for end in ends))
    return "".join(f"{each}, " for each in found).rstrip() or "()"


def view_of(source: Sequence[int | None], order: int) -> str:
    """Write what makes a layout of an array, which stands before it.

    >>> view_of((1, None, 0), 3)
    '.transpose(1, 0, 2)[:, None, :, 0]'
    """
    kept = [int(integer_text(each)) for each in source if each is not None]
    modes = (*kept, *(axis for axis in range(order) if axis not in kept))
    moved = f".transpose({', '.join(map(str, modes))})" if modes != tuple(range(order)) else ""
    key = ["None" if each is None else ":" for each in source] + ["0"] * (order - len(kept))
    return f"{moved}[{', '.join(key)}]" if "None" in key or "0" in key else moved
