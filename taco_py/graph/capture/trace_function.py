"""A function and the arguments of a call → the graph of what it computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.graph.capture.free_variables import FreeVariables, free_variables
from taco_py.graph.capture.recorder import Recorder
from taco_py.graph.capture.signature_of_call import Leaves, replaced
from taco_py.graph.capture.symbolic_size import Size
from taco_py.graph.capture.traced_array import TracedArray
from taco_py.graph.capture.traced_line import span_of
from taco_py.graph.capture.traced_table import operations
from taco_py.graph.extents import Extent, compiled
from taco_py.graph.nodes import Fact, Graph, Input, Output
from taco_py.graph.samples import weak_name
from taco_py.language.diagnostics.errors import OperandTypeError, TacoError


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """The graph of a function, and for which calls it is what the function computes.

    template  what is returned, with an `Output` for each array
    guards    from the operands to numbers that have to be `expected`
    differentiated  values that gradients inside of the function depend on
    """

    graph: Graph
    template: Any
    guards: Callable[..., tuple[Any, ...]] | None
    expected: tuple[Any, ...]
    conditions: tuple[Extent, ...]
    free: FreeVariables
    differentiated: frozenset[str] = frozenset()

    def holds(self, operands: Sequence[Any]) -> bool:
        """Tell whether the graph computes the function's results of operands."""
        if self.guards is not None and self.guards(*operands) != self.expected:
            return False
        return self.free.hold()

    def returned(self, results: Sequence[Any]) -> Any:
        """Put results into the structure that the function returns."""
        return fill(self.template, results)


def fill(template: Any, results: Sequence[Any]) -> Any:
    """Put results in the places of a template."""
    if isinstance(template, Output):
        return results[template.place]
    if isinstance(template, tuple) and hasattr(template, "_fields"):
        return type(template)(*(fill(part, results) for part in template))
    if isinstance(template, tuple | list):
        return type(template)(fill(part, results) for part in template)
    if isinstance(template, dict):
        return {key: fill(part, results) for key, part in template.items()}
    return template


def trace_function(
    function: Callable[..., Any], arguments: Mapping[str, Any], leaves: Leaves, call: Any
) -> Trace:
    """Call a function with stand-ins for its operands, and note its operations.

    call  from what stands for the arguments to the function's result

    Raises OperandTypeError, with the line, where values would decide what is computed.
    """
    operands = leaves.operands
    recorder = Recorder(operands, operations(leaves.matrices))
    names = iter(operands)

    def stand_in(value: Any) -> Any:
        name = next(names)
        if kind := weak_name(value):
            recorder.inputs.append(Input(name, Fact((), kind, weak=True)))
            return Size(value, Extent("value", (name,)), recorder)
        return recorder.add_input(name, value)

    try:
        result = call(replaced(arguments, stand_in))
    except TacoError:
        raise
    except Exception as error:
        error.add_note(
            "raised while the function was traced: arrays that stand for its operands went into "
            "it, whose elements are not known; docs/graphs.md lists the functions that take them"
        )
        raise
    free = free_variables(function)  # what it changes itself while it is traced is no reason
    outputs: list[str] = []
    template = _template(recorder, result, outputs, function)
    graph = recorder.graph(outputs)
    guards = recorder.guards
    names_ = tuple(operands)
    return Trace(
        graph, template, compiled(tuple(guards), names_) if guards else None,
        tuple(guards.values()), tuple(guards), free, frozenset(recorder.differentiated),
    )  # fmt: skip


def _holds_traced(value: Any) -> bool:
    """Tell whether an object of a class of its own has traced arrays as attributes."""
    attributes = getattr(value, "__dict__", None)
    names = getattr(type(value), "__slots__", ())
    slots = [getattr(value, name, None) for name in ((names,) if type(names) is str else names)]
    values = [*(attributes.values() if isinstance(attributes, dict) else ()), *slots]
    return any(isinstance(element, TracedArray | Size) for element in values)


def _template(recorder: Recorder, result: Any, outputs: list[str], function: Any) -> Any:
    def visit(value: Any) -> Any:
        if isinstance(value, TracedArray | Size):
            outputs.append(recorder.name_of(value))
            return Output(len(outputs) - 1)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*map(visit, value))
        if isinstance(value, tuple | list):
            return type(value)(map(visit, value))
        if isinstance(value, dict):
            return {key: visit(element) for key, element in value.items()}
        if callable(value) or hasattr(value, "__next__") or _holds_traced(value):
            code = getattr(function, "__code__", None)
            span = None if code is None else span_of(code.co_filename, code.co_firstlineno)
            raise OperandTypeError(
                f"Expected arrays to be returned, found {type(value).__name__}",
                span,
                "return arrays, or tuples, lists and dictionaries of them",
            )
        if isinstance(value, np.ndarray):  # each call makes it anew
            outputs.append(recorder.operations["copy"](recorder, value).name)
            return Output(len(outputs) - 1)
        return value

    return visit(result)
