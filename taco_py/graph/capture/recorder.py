"""What a function computes while it is traced, noted as a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from taco_py.arguments.operands import describe
from taco_py.data.interop.scipy_arrays import is_scipy_sparse
from taco_py.data.tensors.tensor import Tensor
from taco_py.graph.capture.symbolic_size import Size
from taco_py.graph.capture.traced_line import call_with_line, refuse, user_place
from taco_py.graph.extents import Extent, const, evaluated
from taco_py.graph.nodes import NOWHERE, Constant, Fact, Graph, Input, Node, Number, Origin, Shape
from taco_py.graph.samples import weak_name
from taco_py.language.diagnostics.errors import DimensionError

SUPPORTED = "biufc"
"""The kinds of types of elements that are traced."""


class Recorder:
    """The graph of what has been computed so far, over operands by name.

    matrices    the values that are matrices of scipy.sparse, of which * is a product of matrices
    guards      numbers of the operands with the values for which alone the trace holds
    operations  what traced arrays do, by NumPy's names
    origin      the function of `tp.nn` whose operators are noted, if any
    differentiated  the values that gradients inside the function depend on, though these may not
    """

    def __init__(self, operands: Mapping[str, Any], operations: Mapping[str, Any]) -> None:
        self.operands = dict(operands)
        self.operations = operations
        self.guards: dict[Extent, Any] = {}
        self.facts: dict[str, Fact] = {}
        self.inputs: list[Input] = []
        self.constants: dict[int, Constant] = {}
        self.numbers: dict[tuple[Extent, str], Number] = {}
        self.nodes: list[Node] = []
        self.matrices = {*operations["matrices"]}
        self.closed = False
        self.origin = NOWHERE
        self.differentiated: set[str] = set()
        self._values: dict[Extent, Any] = {}

    # ------------------------------------------------------------ sizes

    def guard(self, extent: Extent, value: Any) -> None:
        """Note that the trace holds only where a number has this value."""
        if extent.constant is None:
            self.guards[extent] = value

    def value(self, extent: Extent) -> Any:
        """Return a number in the call that is traced."""
        if extent.constant is not None:
            return extent.constant
        if extent not in self._values:
            self._values[extent] = evaluated(extent, self.operands)
        return self._values[extent]

    def size(self, extent: Extent) -> Any:
        """Return a size for the user: a number where it is the same in all calls."""
        constant = extent.constant
        return Size(self.value(extent), extent, self) if constant is None else constant

    def result_size(self, extent: Extent) -> Extent:
        """Return a size of a result, as a constant where it is 0 or 1: shapes stretch by that."""
        value = self.value(extent)
        if extent.constant is None and value in (0, 1):
            self.guard(extent, value)
            return const(value)
        return extent

    def same(self, one: Extent, other: Extent) -> bool:
        """Tell whether two sizes are equal; the trace then holds where they are."""
        if one == other:
            return True
        if self.value(one) != self.value(other):
            return False
        self.guard(Extent("==", (one, other)), True)
        return True

    def stretched(self, *shapes: Shape) -> Shape:
        """Find the shape that all shapes stretch to. Raises DimensionError."""
        order = max(map(len, shapes), default=0)
        result: list[Extent] = []
        for axis in range(-order, 0):
            sizes = [shape[axis] for shape in shapes if len(shape) >= -axis]
            wide = [size for size in sizes if size.constant != 1] or sizes[:1]
            if not all(self.same(wide[0], size) for size in wide[1:]):
                shapes_text = " and ".join(str(self.concrete(shape)) for shape in shapes)
                refuse(
                    f"Expected shapes that stretch to each other, found {shapes_text}",
                    "sizes are compared from the last mode on, and have to be equal or 1; "
                    ".reshape(…) or x[:, None] adds modes of size 1",
                    DimensionError,
                )
            result.append(wide[0])
        return tuple(result)

    def concrete(self, shape: Shape) -> tuple[int, ...]:
        """Return a shape in the call that is traced."""
        return tuple(self.value(extent) for extent in shape)

    # ------------------------------------------------------------ values

    def add_input(self, name: str, obj: Any) -> Any:
        """Note an operand, and return its stand-in for the function."""
        shape = tuple(
            const(size) if size in (0, 1) else Extent("size", (name, axis))
            for axis, size in enumerate(obj.shape)
        )
        fact = fact_of(obj, name, shape)
        self.inputs.append(Input(name, fact))
        self.facts[name] = fact
        return self.traced(name)

    def traced(self, name: str, owned: bool = False) -> Any:
        """Return the stand-in of a value in the function; owned as `TracedArray` has it."""
        return self.operations["traced"](self, name, owned)

    def name_of(self, obj: Any) -> str:
        """Name the value that an object of the function is: traced, a size, or a constant.

        Raises OperandTypeError for what is no array and no number.
        """
        if isinstance(obj, self.operations["TracedArray"]):
            if obj.recorder is not self:
                refuse(
                    "Expected an array of this trace, found one of another",
                    "what a function computes stays inside: return it",
                )
            return str(obj.name)
        if isinstance(obj, Size):
            return self._number(obj)
        return self._constant(obj)

    def _number(self, size: Size) -> str:
        weak = weak_name(size.value)
        dtype = weak or str(np.asarray(size.value).dtype)
        return self.number(size.extent, Fact((), dtype, weak=bool(weak)))

    def number(self, extent: Extent, fact: Fact) -> str:
        """Name a number that each call computes of sizes."""
        key = (extent, fact.dtype)
        if key not in self.numbers:
            number = Number(f"n{len(self.numbers)}", fact, extent)
            self.numbers[key] = number
            self.facts[number.name] = fact
        return self.numbers[key].name

    def _constant(self, obj: Any) -> str:
        if isinstance(obj, list | tuple):
            obj = self._array_of(obj)
        if id(obj) not in self.constants:
            name = f"c{len(self.constants)}"
            weak = weak_name(obj)
            fact = Fact((), weak, weak=True) if weak else self._constant_fact(obj, name)
            self.constants[id(obj)] = Constant(name, fact, obj)
            self.facts[name] = fact
        return self.constants[id(obj)].name

    def _array_of(self, obj: Any) -> Any:
        if any(isinstance(element, self.operations["TracedArray"]) for element in obj):
            refuse(
                "Expected an array, found a list of traced arrays", "write np.stack([…]) of them"
            )
        return np.asarray(obj)

    def _constant_fact(self, obj: Any, name: str) -> Fact:
        if not is_operand(obj):
            refuse(
                f"Expected an array or a number, found {type(obj).__name__}",
                "NumPy and scipy.sparse arrays, Tensors and numbers are traced",
            )
        return fact_of(obj, name, tuple(const(size) for size in np.shape(obj)))

    def add(
        self,
        operator: str,
        inputs: Sequence[str],
        shape: Shape,
        dtype: str,
        /,
        **attributes: Any,
    ) -> Any:
        """Note an operation on named values, and return the stand-in of its result."""
        if self.closed:
            refuse(
                "Expected arrays to be used while the function is traced, found one used after it",
                "return what is wanted of the function",
            )
        pairs = tuple(sorted(attributes.items()))
        fact = Fact(tuple(map(self.result_size, shape)), dtype)
        name = f"v{len(self.nodes)}"
        node = Node(name, operator, tuple(inputs), pairs, fact, user_place(), self.origin)
        self.nodes.append(node)
        self.facts[node.name] = fact
        read = self.matrices.intersection(inputs)
        every = operator in ("matmul", "einsum", "tensordot", "evaluate")
        if read and len(shape) == 2 and (not every or read == {*inputs}) and operator != "to_dense":
            self.matrices.add(node.name)  # as SciPy's classes have it
        return self.traced(node.name, True)

    def argument(self, obj: Any) -> Any:
        """Note a value as the argument of a gradient, which others that it is read by are not."""
        name = self.name_of(obj)
        argument = self.add("argument", (name,), self.facts[name].shape, self.facts[name].dtype)
        self.facts[argument.name] = self.facts[name]
        self.nodes[-1] = replace(self.nodes[-1], fact=self.facts[name])
        if name in self.matrices:
            self.matrices.add(argument.name)
        return argument

    @contextmanager
    def part_of(self, function: str) -> Iterator[None]:
        """Note operators as parts of a function, or of the one around it."""
        before = self.origin
        if before is NOWHERE:
            self.origin = Origin(f"{function} of v{len(self.nodes)}")
        try:
            yield
        finally:
            self.origin = before

    def ufunc(self, function: np.ufunc, method: str, inputs: Any, options: Any) -> Any:
        """Note one of NumPy's functions of elements."""
        note: Callable[..., Any] = self.operations["ufunc"]
        return call_with_line(note, self, function, method, inputs, options)

    def graph(self, outputs: Sequence[str]) -> Graph:
        """Return the graph that the outputs depend on, and end the trace."""
        self.closed = True
        constants = tuple(self.constants.values())
        numbers = tuple(self.numbers.values())
        complete = Graph(tuple(self.inputs), constants, numbers, tuple(self.nodes), tuple(outputs))
        return complete.pruned


def is_operand(obj: Any) -> bool:
    """Tell whether an object is an array of a type that is traced."""
    if isinstance(obj, np.matrix | np.ma.MaskedArray):
        return False  # their operators mean other things
    if isinstance(obj, np.ndarray | np.generic):
        return obj.dtype.kind in SUPPORTED
    return isinstance(obj, Tensor) or is_scipy_sparse(obj)


def fact_of(obj: Any, name: str, shape: Shape) -> Fact:
    """Return the facts of an operand: its type, and its format where it is sparse."""
    if isinstance(obj, np.ndarray | np.generic):
        return Fact(shape, str(obj.dtype))
    type = describe(obj, name).operand.type
    dense = type.format.is_dense and not type.fill
    fill = type.fill_value.item() if type.fill else 0
    return Fact(shape, type.dtype, "" if dense else str(type.format), fill)
