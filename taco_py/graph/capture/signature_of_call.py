"""The arguments of a call: arrays and numbers, which a graph reads, and what it is traced for.

f(x, (y, 2.5), mode="full")   →   arrays x, y_0; the number y_1; "full" is part of the kinds
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from codegen.names import Names
from codegen.records import dataclass
from taco_py.arguments.operands import describe
from taco_py.data.interop.scipy_arrays import is_scipy_sparse
from taco_py.data.tensors.tensor import Tensor
from taco_py.graph.capture.recorder import is_operand
from taco_py.graph.samples import weak_name
from taco_py.language.diagnostics.errors import OperandTypeError

STATIC = (bool, str, bytes, type(None), np.dtype, type)
"""Types of arguments whose values a trace is made for."""


@dataclass(frozen=True, slots=True, eq=False)
class Leaves:
    """The arrays and numbers of a call, in order, and what else it says.

    values   the arrays and numbers
    places   where the arguments have them: y_0 is the first of y
    kinds    what tells traces apart: types and formats of operands, and modes of size 0 and 1
    """

    values: tuple[Any, ...]
    places: tuple[str, ...]
    kinds: tuple[object, ...]

    @property
    def operands(self) -> Mapping[str, Any]:
        """Return the arrays and numbers by the names that graphs have for them."""
        names = Names(RESERVED)
        spellings = (f"{place}_" if OUR_NAME.fullmatch(place) else place for place in self.places)
        return dict(zip(map(names.fresh, spellings), self.values, strict=True))

    @property
    def matrices(self) -> frozenset[str]:
        """Return the operands that are matrices of scipy.sparse, which are no arrays."""
        return frozenset(
            name for name, obj in self.operands.items() if type(obj).__name__.endswith("_matrix")
        )


def leaves_of(arguments: Mapping[str, Any]) -> Leaves:
    """Take the arguments of a call apart. Raises OperandTypeError for what is none."""
    values: list[Any] = []
    places: list[str] = []
    kinds: list[object] = []

    def visit(name: str, value: Any) -> None:
        if is_leaf(value):
            values.append(value)
            places.append(name)
            kinds.append((name, kind_of(value)))
        elif isinstance(value, tuple | list):
            kinds.append((name, type(value), len(value)))
            for place, element in enumerate(value):
                visit(f"{name}_{place}", element)
        elif isinstance(value, dict):
            kinds.append((name, dict, tuple(value)))
            for key, element in value.items():
                visit(f"{name}_{key}", element)
        elif isinstance(value, STATIC) or callable(value) or isinstance(value, slice):
            kinds.append((name, value if not isinstance(value, slice) else repr(value)))
        else:
            raise OperandTypeError(
                f"Expected {name} to be an array, a number, or a container of them, found "
                f"{type(value).__name__}",
                hint="NumPy and scipy.sparse arrays, Tensors, numbers, texts, tuples, lists and "
                "dictionaries are passed to traced functions",
            )

    for name, value in arguments.items():
        visit(name, value)
    return Leaves(tuple(values), tuple(places), tuple(kinds))


OUR_NAME = re.compile(r"[vpcnkm]\d+")
"""What values of graphs are called."""

RESERVED = ("np", "max", "min", "len", "range", "abs", "call", "complex", "route")
"""Names that the text of a short way uses."""


def is_leaf(value: Any) -> bool:
    """Tell whether an argument is an array or a number that is traced."""
    return weak_name(value) in ("int", "float", "complex") or is_operand(value)


def kind_of(value: Any) -> tuple[object, ...]:
    """Return the kind of operand a trace holds for: not its sizes, but which are 0 or 1."""
    if type(value) is np.ndarray:  # most are
        return (np.ndarray, value.dtype, tuple([min(size, 2) for size in value.shape]))
    if name := weak_name(value):
        return (name,)
    shape = tuple(min(size, 2) for size in np.shape(value))
    if isinstance(value, Tensor) or is_scipy_sparse(value):
        type_ = describe(value, "operand").operand.type
        return (type(value), type_, shape)
    return (type(value) if isinstance(value, np.generic) else np.ndarray, value.dtype, shape)


def replaced(arguments: Mapping[str, Any], stand_in: Callable[[Any], Any]) -> dict[str, Any]:
    """Put stand-ins in the places of arrays and numbers, in order."""

    def visit(value: Any) -> Any:
        if is_leaf(value):
            return stand_in(value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*map(visit, value))
        if isinstance(value, tuple | list):
            return type(value)(map(visit, value))
        if isinstance(value, dict):
            return {key: visit(element) for key, element in value.items()}
        return value

    return {name: visit(value) for name, value in arguments.items()}
