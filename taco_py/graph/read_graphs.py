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


def refuse(wanted: str, value: Any) -> NoReturn:
    """Raise WrongGraphError for a value that is something else."""
    raise WrongGraphError(f"expected {wanted}, found {value!r:.60}")


def read_graph(whole: Any, known: Collection[Constant] = ()) -> Graph:
    """Return the graph that `plain_graph` wrote. Raises WrongGraphError for what is none.

    known  constants of the graph that it was written after
    """
    if not isinstance(whole, Mapping):
        refuse("an object", whole)
    return _Reader(whole, known).graph()


class _Reader:
    """Reads the parts of a graph in order, each by what stands before it."""

    def __init__(self, whole: Mapping[str, Any], known: Collection[Constant]) -> None:
        self.whole = whole
        self.known = {each.name: each for each in known}
        self.names: set[str] = set()
        self.orders: dict[str, int] = {}
        self.weak: set[str] = set()

    def graph(self) -> Graph:
        """Read the graph."""
        parts = [_rows(self.whole.get("inputs"), (2,), "inputs")]
        parts += [_rows(self.whole.get(each), (3,), each) for each in ("constants", "numbers")]
        for row in parts[0]:  # sizes are those of inputs, in any order
            self.orders[self.new_name(row[0])] = _length_of_shape(row[1])
            if _is_weak(row[1]):
                self.weak.add(row[0])
        inputs = tuple(Input(name, self.fact(fact)) for name, fact in parts[0])
        constants = tuple(self.constant(*row) for row in parts[1])
        numbers = tuple(self.number(*row) for row in parts[2])
        nodes = tuple(self.node(row) for row in _rows(self.whole.get("nodes"), (6, 7), "nodes"))
        outputs = tuple(map(self.known_name, _list(self.whole.get("outputs"), "outputs")))
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
        """Read a constant, which has to be what its fact says."""
        name, expected = self.new_name(name), self.fact(fact)
        if isinstance(value, Mapping) and [*value] == [SAME]:
            same = self.known.get(value[SAME]) if type(value[SAME]) is str else None
            if same is None:
                refuse("the name of a constant", value[SAME])
            found = same.value
        else:
            found = self.value(value)
        if not _is_so(found, expected):
            refuse(f"{name} to be {expected}", found)
        return Constant(name, expected, found)

    def number(self, name: Any, fact: Any, extent: Any) -> Number:
        """Read a number of each call."""
        name, known = self.new_name(name), self.fact(fact)
        if known.shape or known.sparsity:
            refuse(f"{name} to be a number", str(known))
        return Number(name, known, self.extent(extent))

    def node(self, row: list[Any]) -> Node:
        """Read a node, whose operator has to be known."""
        name, operator, inputs, told, fact, place, *rest = row
        if type(operator) is not str or not is_operator(operator):
            refuse("an operator", operator)
        if type(place) is not str:
            refuse("a line of a file", place)
        own = tuple(map(self.known_name, _list(inputs, "inputs")))
        rows = _rows(told, (2,), "attributes")
        of = next((e for key, e in rows if key == "primitive" and type(e) is str), operator)
        pairs = tuple(self.attribute(of, *row) for row in rows)
        if len({key for key, _ in pairs}) != len(pairs):
            refuse("each attribute once", [key for key, _ in pairs])
        known = self.fact(fact)
        return Node(self.new_name(name), operator, own, pairs, known, place, _origin(rest))

    def attribute(self, operator: str, key: Any, value: Any) -> tuple[str, Any]:
        """Read an attribute, of a kind that the table has for its name."""
        check = ATTRIBUTES.get(key) if type(key) is str else None
        found = self.value(value)
        if check is None or not check(operator, found):
            refuse(f"an attribute of {operator}", f"{key}={found!r}")
        return key, found

    def fact(self, given: Any) -> Fact:
        """Read what is known of a value."""
        ((shape, dtype, sparsity, fill, weak),) = _rows([given], (5,), "facts")
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
        found = self.value(value)
        return found if isinstance(found, Extent) else refuse("a size", found)

    def value(self, value: Any) -> Any:
        """Return a value of what JSON has for it."""
        if value is None or type(value) in (bool, int, float, str):
            return value
        if not isinstance(value, Mapping) or len(value) != 1:
            refuse("a value", value)
        ((kind, given),) = value.items()
        read = READERS.get(kind)
        return refuse("a kind of values", kind) if read is None else read(self, given)

    def _extent(self, given: Any) -> Extent:
        operator, *args = _list(given, "an extent") or [None]
        if operator == "const" and len(args) == 1:
            number = self.value(args[0])
            return Extent(operator, (number,)) if _is_number(number) else refuse("a number", number)
        if operator in ("size", "value"):
            return self._of_operand(operator, args)
        if operator == "slice" and len(args) == 4:
            whole = [None if each is None else self.extent(each) for each in args]
            return refuse("a size", None) if whole[0] is None else Extent(operator, tuple(whole))
        wanted = 2 if operator in INFIX else CALLED.get(operator) if type(operator) is str else None
        if wanted is None and type(operator) is str and operator.startswith("np."):
            function = number_function(operator.removeprefix("np."))
            wanted = None if function is None else getattr(function, "nin", 1)
        if wanted != len(args):
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

    def _dict(self, given: Any) -> dict[Any, Any]:
        pairs = [(self.value(k), self.value(e)) for k, e in _rows(given, (2,), "pairs")]
        try:
            return dict(pairs)
        except TypeError:
            return refuse("keys of a dictionary", [key for key, _ in pairs])


READERS: Mapping[str, Callable[[_Reader, Any], Any]] = MappingProxyType({
    "extent": lambda reader, given: reader._extent(given),
    "output": lambda reader, given: Output(given) if _is_place(given) else refuse("a place", given),
    "tuple": lambda reader, given: tuple(map(reader.value, _list(given, "a tuple"))),
    "list": lambda reader, given: [*map(reader.value, _list(given, "a list"))],
    "dict": lambda reader, given: reader._dict(given),
    "complex": lambda reader, given: _complex(given),
    "array": lambda reader, given: _array(given),
    "number": lambda reader, given: _number(given),
    "sparse": lambda reader, given: _sparse(given),
})  # fmt: skip


def read_trace(whole: Mapping[str, Any], graph: Graph, count: int) -> tuple[Any, Any, Any]:
    """Return what a file says of a trace besides its graph: template, conditions, their values.

    count  the number of results
    """
    reader = _Reader(whole, ())
    reader.orders = {each.name: each.fact.order for each in graph.inputs}
    reader.weak = {each.name for each in graph.inputs if each.fact.weak}
    template = reader.value(whole.get("returns"))
    for place in _places(template):
        if place >= count:
            refuse(f"one of {count} results", place)
    rows = _rows(whole.get("holds"), (2,), "holds")
    conditions = tuple(reader.extent(each) for each, _ in rows)
    expected = tuple(reader.value(each) for _, each in rows)
    if not all(map(_is_number, expected)):
        refuse("numbers that conditions have", expected)
    return template, conditions, expected


def _places(template: Any) -> Iterable[int]:
    if isinstance(template, Output):
        yield template.place
    elif isinstance(template, tuple | list):
        for each in template:
            yield from _places(each)
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
    """Tell whether a constant is what its fact says."""
    if fact.weak:
        return weak_name(value) == fact.dtype
    if not hasattr(value, "dtype") or [each.constant for each in fact.shape] != [*value.shape]:
        return False
    return str(value.dtype) == fact.dtype and sp.issparse(value) == bool(fact.sparsity)


def _complex(given: Any) -> complex:
    parts = _list(given, "two numbers")
    if len(parts) != 2 or not all(type(each) in (int, float) for each in parts):
        refuse("two numbers", given)
    real, imaginary = (each if isfinite(each) else float(each) for each in parts)
    return complex(real, imaginary)


def _array(given: Any) -> np.ndarray[Any, Any]:
    if type(given) is not str:
        refuse("an array", given)
    try:
        return read_npy(base64.b64decode(given, validate=True))
    except ValueError as error:
        raise WrongGraphError(f"expected an array, found {error}") from error


def _number(given: Any) -> Any:
    array = _array(given)
    return array[()] if array.shape == () else refuse("a number", array.shape)


def _sparse(given: Any) -> Any:
    name, shape, *parts = _list(given, "a sparse array") or [None, None]
    if type(name) is not str or name not in CLASSES:
        refuse("a class of scipy.sparse", name)
    sizes = _list(shape, "sizes")
    if not parts or len(parts) != len(sizes) + 1 or not all(map(_is_place, sizes)):
        refuse("sizes, coordinates and values", sizes)
    *coords, data = map(_array, parts)
    kinds = [each.dtype.kind for each in coords]
    if any(each.shape != data.shape or each.ndim != 1 for each in coords) or {*kinds} - {*"iu"}:
        refuse("coordinates of each value", kinds)
    if name[:3] not in ("coo", "dok") and max(sizes) > MOST_PLACES + 64 * data.size:
        refuse("sizes that the entries explain", sizes)
    if name.startswith("dia") and len({*(coords[1] - coords[0])}) * sizes[1] > MOST_PLACES:
        refuse("diagonals that the entries explain", sizes)
    return CLASSES[name](sp.coo_array((data, tuple(coords)), shape=tuple(sizes)))
