"""The short way of a call that was made: one function from the arguments to the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from taco_py.graph.extents import Extent
from taco_py.graph.graph_call import GraphCall
from taco_py.graph.nodes import Fact, Output
from taco_py.graph.run.graph_program import KernelRun, has_short_way
from taco_py.interop.scipy_arrays import is_scipy_sparse
from taco_py.values.tensor import Tensor


def short_route(
    call: GraphCall, operands: Sequence[Any], values: Sequence[Any]
) -> Callable[..., Any] | None:
    """Make the function for calls like one that was made; None where it takes more than a kernel.

    It returns None for calls that it is not made for.
    """
    alike = all(one is other for one, other in zip(operands, values, strict=True))
    if not alike or any(isinstance(each, bool) for each in values):
        return None
    return _by_one_kernel(call, operands) if call.offload is None else _by_sizes(call, operands)


def _by_one_kernel(call: GraphCall, operands: Sequence[Any]) -> Callable[..., Any] | None:
    """Make the function for calls of one kernel."""
    program = call.program
    if len(program.steps) != 1:
        return None
    (step,) = program.steps
    if not isinstance(step, KernelRun) or step.written is None:
        return None
    facts = program.graph.facts
    if any(_is_changed(facts[name]) for name in step.written.results):
        return None
    if {*program.graph.outputs} - {*step.written.results}:
        return None
    return _Text(call, step).function(operands)


def _by_sizes(call: GraphCall, operands: Sequence[Any]) -> Callable[..., Any] | None:
    """Make the function for calls of the same sizes, where backends may compute regions."""
    if not all(type(each) is np.ndarray for each in operands) or call.offload is None:
        return None
    sizes = [each.shape for each in operands]
    found, trace = call.offload.program(operands), call.trace
    run = _by_one_kernel(call, operands) if found.program is call.program else None
    if run is not None:
        kernel = run
        return lambda *values: kernel(*values) if [e.shape for e in values] == sizes else None

    def route(*values: Any) -> Any:
        if [each.shape for each in values] != sizes or not found.is_current:
            return None
        return trace.returned(found.program.run(values)) if trace.free.hold() else None

    return route


def _is_changed(fact: Fact) -> bool:
    """Whether a result is more than what kernels give."""
    return any(fact.units) or bool(fact.sparsity)


class _Text:
    """The text of the function and what it names."""

    def __init__(self, call: GraphCall, step: KernelRun) -> None:
        self.call = call
        self.step = step
        self.space: dict[str, Any] = {"np": np}

    def function(self, operands: Sequence[Any]) -> Callable[..., Any] | None:
        """Define the function, given the operands of the call that was made."""
        program, trace = self.call.program, self.call.trace
        assert self.step.written is not None
        names = [each.name for each in program.graph.inputs]
        values = program.begin(operands)
        args, given = [], []
        for name in self.step.written.operands:
            text, value = self._operand(name, values)
            if text is None:
                return None
            args.append(text)
            given.append(value)
        kernel = has_short_way(self.step.key(given))
        if kernel is None:
            return None
        self.space["call"] = kernel
        lines = [f"def route({', '.join(names)}):"]
        if conditions := self._conditions():
            lines += [f"    if {conditions}:", "        return None"]
        if trace.free.cells or trace.free.names or trace.free.held:
            self.space["hold"] = trace.free.hold
            lines += ["    if not hold():", "        return None"]
        lines.append(f"    found = call({', '.join(args)})")
        lines.append(f"    return {self._result()}")
        exec("\n".join(lines), self.space)
        found: Callable[..., Any] = self.space["route"]
        return found

    def _operand(self, name: str, values: dict[str, Any]) -> tuple[str | None, Any]:
        """The expression of an operand of the kernel, and its value; None where there is none."""
        graph = self.call.program.graph
        value, fact = values[name], graph.facts[name]
        if any(fact.units):
            if is_scipy_sparse(value) or isinstance(value, Tensor):
                return None, None
            key = ", ".join("0" if unit else ":" for unit in fact.units)
            text = name if name in {each.name for each in graph.inputs} else f"const_{name}"
            self.space[f"const_{name}"] = value
            found = value[tuple(0 if unit else slice(None) for unit in fact.units)]
            return f"{text}[{key}{',' if len(fact.units) == 1 else ''}]", found
        for number in graph.numbers:
            if number.name == name:
                maker = dict(self.call.program.makers)[name]
                self.space[f"make_{name}"] = maker
                return f"make_{name}({number.extent})", value
        if name not in {each.name for each in graph.inputs}:
            self.space[f"const_{name}"] = value
            return f"const_{name}", value
        return name, value

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
            told.append(f"{extent} != expected{place}")
        return " or ".join(told)

    def _result(self) -> str:
        """The expression of what is returned of what the kernels give."""
        results = self.step.written.results  # type: ignore[union-attr]
        outputs = self.call.program.graph.outputs
        if len(results) == 1:
            parts = ["found"] * len(outputs)
        else:
            parts = [f"found[{results.index(name)}]" for name in outputs]
        text = self._template(self.call.trace.template, parts)
        return text if text == "found" else f"None if found is None else {text}"

    def _template(self, template: Any, parts: Sequence[str]) -> str:
        if isinstance(template, Output):
            return parts[template.place]
        if type(template) is tuple:
            return f"({''.join(f'{self._template(each, parts)}, ' for each in template)})"
        if type(template) is list:
            return f"[{', '.join(self._template(each, parts) for each in template)}]"
        if type(template) is dict:
            pairs = (f"{key!r}: {self._template(e, parts)}" for key, e in template.items())
            return f"{{{', '.join(pairs)}}}"
        name = f"other{len(self.space)}"
        self.space[name] = template
        return name


def _is_equality(extent: Extent) -> bool:
    sizes = all(isinstance(each, Extent) and each.operator == "size" for each in extent.args)
    return extent.operator == "==" and sizes
