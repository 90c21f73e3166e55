"""Graphs from what JSON has, each part checked: nothing in it is believed, nothing of it is run.

Names have to be identifiers, operators and functions entries of tables, sizes trees of numbers,
arrays as long as they say. What is wrong raises WrongGraphError, with its place.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Iterable, Mapping
from math import isfinite
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp

from codegen.names import is_plain_name
from taco_py.data.interop.scipy_arrays import CLASSES
from taco_py.data.storage.containers.npy import read_npy
from taco_py.graph.extents import CALLED, INFIX, Extent
from taco_py.graph.node_table import ATTRIBUTES, is_operator
from taco_py.graph.nodes import (
    NOWHERE,
    Constant,
    Fact,
    Graph,
    Input,
    Node,
    Number,
    Origin,
    Output,
)
from taco_py.graph.number_functions import is_number_type, number_function
from taco_py.graph.plain_graphs import SAME
from taco_py.graph.samples import WEAK, weak_name
from taco_py.language.diagnostics.errors import TacoError
from taco_py.language.formats import Format

MOST_PLACES = 1 << 26
"""Rows, columns or diagonals' elements that a sparse constant may have besides 64 an entry."""


class WrongGraphError(ValueError):
    """What was read is no graph; the message says where."""


def refuse(expected: str, value: Any) -> NoReturn:
    """Raise WrongGraphError for a value that is something else."""
    raise WrongGraphError(f"expected {expected}, found {value!r:.60}")


def read_graph(record: Any, shared: Collection[Constant] = ()) -> Graph:
    """Return the graph that `plain_graph` wrote. Raises WrongGraphError for what is none.

    shared  constants of the graph that it was written after
    """
    if not isinstance(record, Mapping):
        refuse("an object", record)
    return _Reader(record, shared).graph()


class _Reader:
    """Reads the parts of a graph in order, each by what stands before it."""

    def __init__(self, record: Mapping[str, Any], shared: Collection[Constant]) -> None:
        self.record = record
        self.shared = {constant.name: constant for constant in shared}
        self.names: set[str] = set()
        self.orders: dict[str, int] = {}
        self.weak: set[str] = set()

    def graph(self) -> Graph:
        """Read the graph."""
        parts = [_rows(self.record.get("inputs"), (2,), "inputs")]
        parts += [_rows(self.record.get(part), (3,), part) for part in ("constants", "numbers")]
        for row in parts[0]:  # sizes are those of inputs, in any order
            self.orders[self.new_name(row[0])] = _length_of_shape(row[1])
            if _is_weak(row[1]):
                self.weak.add(row[0])
        inputs = tuple(Input(name, self.fact(fact)) for name, fact in parts[0])
        constants = tuple(self.constant(*row) for row in parts[1])
        numbers = tuple(self.number(*row) for row in parts[2])
        nodes = tuple(self.node(row) for row in _rows(self.record.get("nodes"), (6, 7), "nodes"))
        outputs = tuple(map(self.known_name, _list(self.record.get("outputs"), "outputs")))
        return Graph(inputs, constants, numbers, nodes, outputs)

    # ------------------------------------------------------------ names

    def new_name(self, name: Any) -> str:
        """Read a name that nothing before has."""
        if not is_plain_name(name):
            refuse("an identifier as a name", name)
        if name in self.names:
            refuse("each name once", name)
        self.names.add(name)
        return str(name)

    def known_name(self, name: Any) -> str:
        """Read the name of something before."""
        if type(name) is not str or name not in self.names:
            refuse("the name of a value before", name)
        return name

    # ------------------------------------------------------------ leaves and nodes

    def constant(self, name: Any, fact: Any, value: Any) -> Constant:
        """Read a constant, which has to fit its fact."""
        name, expected = self.new_name(name), self.fact(fact)
        if isinstance(value, Mapping) and [*value] == [SAME]:
            same = self.shared.get(value[SAME]) if type(value[SAME]) is str else None
            if same is None:
                refuse("the name of a constant", value[SAME])
            constant = same.value
        else:
            constant = self.value(value)
        if not _is_so(constant, expected):
            refuse(f"{name} to be {expected}", constant)
        return Constant(name, expected, constant)

    def number(self, name: Any, fact: Any, extent: Any) -> Number:
        """Read a number of each call."""
        name, parsed = self.new_name(name), self.fact(fact)
        if parsed.shape or parsed.sparsity:
            refuse(f"{name} to be a number", str(parsed))
        return Number(name, parsed, self.extent(extent))

    def node(self, row: list[Any]) -> Node:
        """Read a node, whose operator has to be known."""
        name, operator, inputs, attributes, fact, place, *rest = row
        if type(operator) is not str or not is_operator(operator):
            refuse("an operator", operator)
        if type(place) is not str:
            refuse("a line of a file", place)
        operands = tuple(map(self.known_name, _list(inputs, "inputs")))
        rows = _rows(attributes, (2,), "attributes")
        of = next((e for key, e in rows if key == "primitive" and type(e) is str), operator)
        pairs = tuple(self.attribute(of, *row) for row in rows)
        if len({key for key, _ in pairs}) != len(pairs):
            refuse("each attribute once", [key for key, _ in pairs])
        parsed = self.fact(fact)
        return Node(self.new_name(name), operator, operands, pairs, parsed, place, _origin(rest))

    def attribute(self, operator: str, key: Any, value: Any) -> tuple[str, Any]:
        """Read an attribute, of a kind that the table has for its name."""
        check = ATTRIBUTES.get(key) if type(key) is str else None
        parsed = self.value(value)
        if check is None or not check(operator, parsed):
            refuse(f"an attribute of {operator}", f"{key}={parsed!r}")
        return key, parsed

    def fact(self, data: Any) -> Fact:
        """Read the facts of a value."""
        ((shape, dtype, sparsity, fill, weak),) = _rows([data], (5,), "facts")
        sizes = tuple(map(self.extent, _list(shape, "sizes")))
        if type(weak) is not bool or not (dtype in WEAK if weak else is_number_type(dtype)):
            refuse("a type of numbers", dtype)
        if type(sparsity) is not str or (sparsity and not _is_format(sparsity, len(sizes))):
            refuse("a format", sparsity)
        number = self.value(fill)
        if not _is_number(number):
            refuse("a number as a fill value", number)
        return Fact(sizes, dtype, sparsity, number, weak)

    # ------------------------------------------------------------ values

    def extent(self, value: Any) -> Extent:
        """Read a number of each call."""
        extent = self.value(value)
        return extent if isinstance(extent, Extent) else refuse("a size", extent)

    def value(self, value: Any) -> Any:
        """Read a value from the types that JSON has."""
        if value is None or type(value) in (bool, int, float, str):
            return value
        if not isinstance(value, Mapping) or len(value) != 1:
            refuse("a value", value)
        ((kind, data),) = value.items()
        read = READERS.get(kind)
        return refuse("a kind of values", kind) if read is None else read(self, data)

    def _extent(self, data: Any) -> Extent:
        operator, *args = _list(data, "an extent") or [None]
        if operator == "const" and len(args) == 1:
            number = self.value(args[0])
            return Extent(operator, (number,)) if _is_number(number) else refuse("a number", number)
        if operator in ("size", "value"):
            return self._of_operand(operator, args)
        if operator == "slice" and len(args) == 4:
            parts = [None if arg is None else self.extent(arg) for arg in args]
            return refuse("a size", None) if parts[0] is None else Extent(operator, tuple(parts))
        arity = 2 if operator in INFIX else CALLED.get(operator) if type(operator) is str else None
        if arity is None and type(operator) is str and operator.startswith("np."):
            function = number_function(operator.removeprefix("np."))
            arity = None if function is None else getattr(function, "nin", 1)
        if arity != len(args):
            refuse("an operator of numbers", operator)
        return Extent(operator, tuple(map(self.extent, args)))

    def _of_operand(self, operator: str, args: list[Any]) -> Extent:
        name, *axes = args or [None]
        if type(name) is not str or name not in self.orders:
            refuse("the name of an operand", name)
        if operator == "value":
            fits = not axes and name in self.weak
        else:
            fits = len(axes) == 1 and type(axes[0]) is int and 0 <= axes[0] < self.orders[name]
        if not fits:
            refuse("a size or a number of an operand", args)
        return Extent(operator, (name, *axes))

    def _dict(self, data: Any) -> dict[Any, Any]:
        pairs = [(self.value(k), self.value(e)) for k, e in _rows(data, (2,), "pairs")]
        try:
            return dict(pairs)
        except TypeError:
            return refuse("keys of a dictionary", [key for key, _ in pairs])


READERS: Mapping[str, Callable[[_Reader, Any], Any]] = MappingProxyType({
    "extent": lambda reader, data: reader._extent(data),
    "output": lambda reader, data: Output(data) if _is_place(data) else refuse("a place", data),
    "tuple": lambda reader, data: tuple(map(reader.value, _list(data, "a tuple"))),
    "list": lambda reader, data: [*map(reader.value, _list(data, "a list"))],
    "dict": lambda reader, data: reader._dict(data),
    "complex": lambda reader, data: _complex(data),
    "array": lambda reader, data: _array(data),
    "number": lambda reader, data: _number(data),
    "sparse": lambda reader, data: _sparse(data),
})  # fmt: skip


def read_trace(record: Mapping[str, Any], graph: Graph, count: int) -> tuple[Any, Any, Any]:
    """Read the rest of a trace from a file: template, conditions, their values.

    count  the number of results
    """
    reader = _Reader(record, ())
    reader.orders = {leaf.name: leaf.fact.order for leaf in graph.inputs}
    reader.weak = {leaf.name for leaf in graph.inputs if leaf.fact.weak}
    template = reader.value(record.get("returns"))
    for place in _places(template):
        if place >= count:
            refuse(f"one of {count} results", place)
    rows = _rows(record.get("holds"), (2,), "holds")
    conditions = tuple(reader.extent(entry) for entry, _ in rows)
    expected = tuple(reader.value(entry) for _, entry in rows)
    if not all(map(_is_number, expected)):
        refuse("numbers that conditions have", expected)
    return template, conditions, expected


def _places(template: Any) -> Iterable[int]:
    if isinstance(template, Output):
        yield template.place
    elif isinstance(template, tuple | list):
        for part in template:
            yield from _places(part)
    elif isinstance(template, dict):
        yield from _places([*template.values()])


# ---------------------------------------------------------------- parts


def _list(value: Any, what: str) -> list[Any]:
    return value if isinstance(value, list) else refuse(f"a list of {what}", value)


def _rows(value: Any, lengths: tuple[int, ...], what: str) -> list[list[Any]]:
    rows = _list(value, what)
    for row in rows:
        if not isinstance(row, list) or len(row) not in lengths:
            refuse(f"{what} of {lengths[0]} parts", row)
    return rows


def _length_of_shape(fact: Any) -> int:
    shape = fact[0] if isinstance(fact, list) and fact else None
    return len(_list(shape, "sizes"))


def _is_weak(fact: Any) -> bool:
    return isinstance(fact, list) and fact[-1] is True


def _origin(rest: list[Any]) -> Origin:
    if not rest:
        return NOWHERE
    ((operator, derivative),) = _rows(rest, (2,), "origins")
    if type(operator) is not str or type(derivative) is not bool:
        refuse("an operator, and whether it is a derivative", rest)
    return Origin(operator, derivative)


def _is_place(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_number(value: Any) -> bool:
    return bool(weak_name(value)) or (isinstance(value, np.generic) and value.dtype.kind in "biufc")


def _is_format(text: str, order: int) -> bool:
    try:
        return len(text) < 1000 and Format.parse(text).order == order
    except TacoError:
        return False


def _is_so(value: Any, fact: Fact) -> bool:
    """Tell whether a constant fits its fact."""
    if fact.weak:
        return weak_name(value) == fact.dtype
    if not hasattr(value, "dtype") or [size.constant for size in fact.shape] != [*value.shape]:
        return False
    return str(value.dtype) == fact.dtype and sp.issparse(value) == bool(fact.sparsity)


def _complex(data: Any) -> complex:
    parts = _list(data, "two numbers")
    if len(parts) != 2 or not all(type(part) in (int, float) for part in parts):
        refuse("two numbers", data)
    real, imaginary = (part if isfinite(part) else float(part) for part in parts)
    return complex(real, imaginary)


def _array(data: Any) -> np.ndarray[Any, Any]:
    if type(data) is not str:
        refuse("an array", data)
    try:
        return read_npy(base64.b64decode(data, validate=True))
    except ValueError as error:
        raise WrongGraphError(f"expected an array, found {error}") from error


def _number(data: Any) -> Any:
    array = _array(data)
    return array[()] if array.shape == () else refuse("a number", array.shape)


def _sparse(record: Any) -> Any:
    name, shape, *parts = _list(record, "a sparse array") or [None, None]
    if type(name) is not str or name not in CLASSES:
        refuse("a class of scipy.sparse", name)
    sizes = _list(shape, "sizes")
    if not parts or len(parts) != len(sizes) + 1 or not all(map(_is_place, sizes)):
        refuse("sizes, coordinates and values", sizes)
    *coords, data = map(_array, parts)
    kinds = [array.dtype.kind for array in coords]
    if any(array.shape != data.shape or array.ndim != 1 for array in coords) or {*kinds} - {*"iu"}:
        refuse("coordinates of each value", kinds)
    if name[:3] not in ("coo", "dok") and max(sizes) > MOST_PLACES + 64 * data.size:
        refuse("sizes that the entries explain", sizes)
    if name.startswith("dia") and len({*(coords[1] - coords[0])}) * sizes[1] > MOST_PLACES:
        refuse("diagonals that the entries explain", sizes)
    return CLASSES[name](sp.coo_array((data, tuple(coords)), shape=tuple(sizes)))
