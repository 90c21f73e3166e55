"""What nodes of graphs may be: operators by their names, and what each attribute may say.

An operator from a file is looked up here before anything is made of it; attributes are numbers,
sizes, names of tables and texts in index notation, which are parsed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from codegen.names import is_plain_name
from taco_py.graph.extents import Extent
from taco_py.graph.number_functions import element_function, is_number_type
from taco_py.graph.position_operands import POSITIONS
from taco_py.graph.primitives.primitive_table import PRIMITIVES
from taco_py.graph.samples import NUMPY_CALLS

OPERATORS = frozenset((
    "sum", "prod", "mean", "var", "std", "min", "max", "any", "all", "argmin", "argmax", "cumsum",
    "cumprod", "sort", "argsort", "einsum", "matmul", "tensordot", "outer", "diagonal",
    "expand_dims", "broadcast_to", "reshape", "concatenate", "astype", "slice", "index", "parts",
    "copy", "places", "call", "to_dense", "evaluate", "program", "diag", "custom_derivative",
    "numpy", "argument", "primitive",
))  # fmt: skip
"""Operators that are neither primitives nor functions of elements."""

STORED = "stored"
"""The function of primitives that NumPy does not have."""

REDUCTIONS = ("sum", "prod", "max", "min", "any", "all", "mean", "var", "std")


def is_operator(name: str) -> bool:
    """Tell whether a name is that of an operator or a primitive."""
    if name in OPERATORS or name in PRIMITIVES:
        return True
    return is_plain_name(name) and element_function(name) is not None


def _is_function(operator: str, value: Any) -> bool:
    """Tell whether a name is that of a function that an operator calls."""
    if type(value) is not str:
        return False
    if operator == "call" or value in NUMPY_CALLS:
        return value in NUMPY_CALLS
    if operator == "reduce":
        return value in REDUCTIONS
    return value == STORED or (is_plain_name(value) and element_function(value) is not None)


def _is_call(operator: str, value: Any) -> bool:
    return type(value) is str and (value == POSITIONS or is_operator(value))


def _is_int(value: Any) -> bool:
    return type(value) is int


def _ints(value: Any) -> bool:
    return type(value) is tuple and all(map(_is_int, value))


def _axes(operator: str, value: Any) -> bool:
    return value is None or _is_int(value) or _ints(value)


def _lists_of_ints(operator: str, value: Any) -> bool:
    return type(value) is tuple and all(map(_ints, value))


def _source(operator: str, value: Any) -> bool:
    return type(value) is tuple and all(axis is None or _is_int(axis) for axis in value)


def _modes(operator: str, value: Any) -> bool:
    return type(value) is tuple and all(map(_is_mode, value))


def _is_mode(value: Any) -> bool:
    pair = type(value) is tuple and len(value) == 2
    return _is_int(value) or (pair and _is_int(value[0]) and _ints(value[1]))


def _key(operator: str, value: Any) -> bool:
    return type(value) is tuple and all(map(_is_subscript, value))


def _is_subscript(value: Any) -> bool:
    if type(value) is not tuple or not value:
        return False
    kind, *ends = value
    lengths = {"new": (0,), "at": (1,), "slice": (3,), "array": (0, 1)}
    has_kind = type(kind) is str and len(ends) in lengths.get(kind, ())
    return has_kind and all(isinstance(e, Extent) or (e is None and kind == "slice") for e in ends)


def _factors(operator: str, value: Any) -> bool:
    """Tell whether a value has the structure of `nodes.Factors`."""
    sides = type(value) is tuple and len(value) == 2
    return value is None or (sides and all(map(_are_groups_of_sizes, value)))


def _are_groups_of_sizes(groups: Any) -> bool:
    return type(groups) is tuple and all(
        type(group) is tuple and all(isinstance(size, Extent) for size in group) for group in groups
    )


def _texts(operator: str, value: Any) -> bool:
    return type(value) is tuple and all(map(is_plain_name, value))


def _options(operator: str, value: Any) -> bool:
    parameters = {name for names in NUMPY_CALLS.values() for name in names}
    return type(value) is tuple and all(
        type(pair) is tuple and len(pair) == 2 and pair[0] in parameters and _is_plain(pair[1])
        for pair in value
    )


def _is_plain(value: Any) -> bool:
    if type(value) is tuple:
        return all(map(_is_plain, value))
    return value is None or type(value) in (bool, int, float, complex, str)


def _names_operator(operator: str, value: Any) -> bool:
    return type(value) is str and is_operator(value)


def _places(operator: str, value: Any) -> bool:
    """Tell whether a value has the structure of `sampled_values.At`."""
    return type(value) is tuple and all(
        type(pair) is tuple and len(pair) == 2 and _is_int(pair[0]) and _source("", pair[1])
        for pair in value
    )


def _number(operator: str, value: Any) -> bool:
    is_numpy = isinstance(value, np.generic) and value.dtype.kind in "biuf"
    return value is None or type(value) in (bool, int, float) or is_numpy


ATTRIBUTES: Mapping[str, Callable[[str, Any], bool]] = MappingProxyType({
    "function": _is_function, "call": _is_call, "axes": _axes, "axis": _axes,
    "labels": _lists_of_ints, "kept": lambda operator, value: _ints(value), "modes": _modes,
    "source": _source, "key": _key, "factors": _factors,
    "counts": lambda operator, value: _ints(value),
    "names": _texts, "options": _options, "ddof": _number, "threads": _number,
    "keepdims": lambda operator, value: type(value) is bool,
    "filled": lambda operator, value: type(value) is bool,
    "dtype": lambda operator, value: is_number_type(value),
    "text": lambda operator, value: type(value) is str,
    "at": _places, "of": _names_operator, "primitive": _names_operator,
    "part": lambda operator, value: is_plain_name(value),
    "place": lambda operator, value: _is_int(value),
    "rule": lambda operator, value: is_plain_name(value),
})  # fmt: skip
"""By the names of attributes: whether a value, of an operator, is one."""
