"""Operators as NumPy computes them: what no kernel can, and what only moves elements.

Sparse operands are computed with as Tensors, which keep them sparse, or refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from taco_py.api.einsum import einsum
from taco_py.api.evaluate import evaluate
from taco_py.api.program import program
from taco_py.api.tensor import tensor
from taco_py.data.interop.scipy_arrays import is_scipy_sparse
from taco_py.data.kernels import KERNELS
from taco_py.data.tensors.byte_counts import limited_result
from taco_py.data.tensors.tensor import Tensor
from taco_py.graph.nodes import Node
from taco_py.graph.number_functions import function_of_elements
from taco_py.graph.position_operands import POSITIONS
from taco_py.graph.run.check_positions import positions_operand
from taco_py.graph.samples import numpy_function
from taco_py.language.diagnostics.errors import OperandTypeError

Numbers = Sequence[Any]
"""The numbers that a node's attributes have, in order."""


def compute(node: Node, operator: str, arrays: Sequence[Any], numbers: Numbers) -> Any:
    """Compute an operator of arrays.

    numbers  sizes among its attributes, as this call has them
    """
    if operator == POSITIONS:
        return positions_operand(node, arrays, numbers)
    operands = [tensor(array) if is_scipy_sparse(array) else array for array in arrays]
    with np.errstate(all="ignore"):
        limited = KERNELS.memory.on
        result = (
            limited_result(operator, _computed, node, operator, operands, numbers)
            if limited
            else _computed(node, operator, operands, numbers)
        )
    return handed_out(result, any(isinstance(array, Tensor) for array in arrays), node.dtype)


def _computed(node: Node, operator: str, operands: Sequence[Any], numbers: Numbers) -> Any:
    """Return an operator of arrays and Tensors."""
    if operator in RUN:
        return RUN[operator](node, operands, numbers)
    return function_of_elements(operator)(*operands)


def handed_out(result: Any, tensors: bool, dtype: str) -> Any:
    """Return a result as `evaluate` does, in a type.

    tensors  whether Tensors are among the operands, of which a sparse result is one
    """
    if isinstance(result, np.ndarray | np.generic) or not hasattr(result, "dtype"):
        return result if np.asarray(result).dtype == dtype else np.asarray(result).astype(dtype)
    if isinstance(result, Tensor) and not tensors:
        if result.format.is_dense or result.data.fill:
            result = result.to_numpy()
        elif result.ndim <= 2:
            result = result.to_scipy()
    return result if result.dtype == dtype else result.astype(dtype)


def _reduction(node: Node, arrays: Sequence[Any], numbers: Numbers) -> Any:
    name = node.get("call", node.operator)
    options = {} if node.get("ddof") is None else {"ddof": node.get("ddof")}
    (array,) = arrays
    axis = node.get("axis") if np.ndim(array) else None
    return getattr(np, name)(array, axis=axis, keepdims=node.get("keepdims"), **options)


def _call_along_axis(node: Node, arrays: Sequence[Any], numbers: Numbers) -> Any:
    return getattr(np, node.get("call", node.operator))(arrays[0], axis=node.get("axis"))


def _key(node: Node, arrays: Sequence[Any], numbers: Numbers) -> tuple[Any, ...]:
    """Return the subscripts, with their numbers and arrays in place."""
    return _filled(node.get("key"), iter(numbers), iter(arrays[1:]))


def _filled(
    key: Sequence[tuple[Any, ...]], rest: Iterator[Any], positions: Iterator[Any]
) -> tuple[Any, ...]:
    """Return subscripts as Python has them, of the next numbers and arrays."""
    subscripts: list[Any] = []
    for kind, *ends in key:
        if kind == "new":
            subscripts.append(None)
        elif kind == "array":
            subscripts.append(next(positions))
        elif kind == "at":
            subscripts.append(next(rest))
        else:
            subscripts.append(slice(*(None if end is None else next(rest) for end in ends)))
    return tuple(subscripts)


def _subscript(node: Node, arrays: Sequence[Any], numbers: Numbers) -> Any:
    return arrays[0][_key(node, arrays, numbers)]


def _scattered(node: Node, arrays: Sequence[Any], numbers: Numbers) -> Any:
    """Add an array to zeros at subscripts; the sizes of the result are the first numbers."""
    count = len(node.shape)
    result = np.zeros(tuple(numbers[:count]), node.dtype)
    key = _key(node, arrays, numbers[count:])
    array = _to_dense(node, arrays[:1], ())
    if any(isinstance(entry, np.ndarray) for entry in key):
        np.add.at(result, key, array)
    else:
        result[key] = array
    return result


def _parts(node: Node, arrays: Sequence[Any], numbers: Numbers) -> Any:
    """Add arrays to zeros, each at its own slices."""
    count, rest = len(node.shape), iter(numbers[len(node.shape) :])
    result = np.zeros(tuple(numbers[:count]), node.dtype)
    entries = iter(node.get("key"))
    for array, entry_count in zip(arrays, node.get("counts"), strict=True):
        key = _filled([next(entries) for _ in range(entry_count)], rest, iter(()))
        result[key] += _to_dense(node, (array,), ())
    return result


def _contract(node: Node, arrays: Sequence[Any], numbers: Numbers) -> Any:
    labels, output_labels = node.get("labels"), node.get("kept")
    product = einsum if any(isinstance(array, Tensor) for array in arrays) else np.einsum
    pairs = (part for pair in zip(arrays, map(list, labels), strict=True) for part in pair)
    return product(*pairs, list(output_labels))


def _layout(node: Node, arrays: Sequence[Any], numbers: Numbers) -> Any:
    """Return a transpose, then modes of size 1 put in or left out."""
    (array,) = arrays
    source = node.get("source")
    axes = [axis for axis in source if axis is not None]
    off = tuple(axis for axis in range(np.ndim(array)) if axis not in axes)
    view = np.squeeze(np.transpose(array, (*axes, *off)), tuple(range(len(axes), np.ndim(array))))
    new = tuple(axis for axis, mode in enumerate(source) if mode is None)
    return np.expand_dims(view, new) if new else view


def _broadcast(node: Node, arrays: Sequence[Any], numbers: Numbers) -> Any:
    return np.broadcast_to(_layout(node, arrays, numbers), tuple(numbers))


def _text(node: Node, arrays: Sequence[Any], numbers: Numbers) -> Any:
    return evaluate(node.get("text"), dict(zip(node.get("names"), arrays, strict=True)))


def _program(node: Node, arrays: Sequence[Any], numbers: Numbers) -> Any:
    """Return one of the arrays that a program changes, in copies of them."""
    run = program(node.get("text"))
    operands = dict(zip(node.get("names"), arrays, strict=True))
    copies = {name: np.array(operands[name]) for name in run.changed}
    sizes = {name: int(operands[name]) for name in run.sizes}
    run(**{**operands, **copies, **sizes}, threads=node.get("threads"))
    return copies[node.get("part")]


def _places(node: Node, arrays: Sequence[Any], numbers: Numbers) -> Any:
    return np.arange(numbers[0])


def _call(node: Node, arrays: Sequence[Any], numbers: Numbers) -> Any:
    """Return a function of NumPy by its name. Raises OperandTypeError for sparse arrays."""
    name = node.get("function")
    if any(isinstance(array, Tensor) for array in arrays):
        raise OperandTypeError(
            f"Expected dense arrays for np.{name}, found a sparse one",
            hint="NumPy computes it: write x.toarray() in the function",
        )
    return numpy_function(name)(*arrays, **dict(node.get("options")))


def _astype(node: Node, arrays: Sequence[Any], numbers: Numbers) -> Any:
    """Convert to another type; entries with equal coordinates are added before."""
    (array,) = arrays
    dtype = np.dtype(node.get("dtype"))
    if is_scipy_sparse(array) and not getattr(array, "has_canonical_format", True):
        array = array.copy()
        array.sum_duplicates()
    return array.astype(dtype) if hasattr(array, "astype") else dtype.type(array)


def _to_dense(node: Node, arrays: Sequence[Any], numbers: Numbers) -> Any:
    (array,) = arrays
    return array.to_numpy() if isinstance(array, Tensor) else array


RUN: Mapping[str, Callable[[Node, Sequence[Any], Numbers], Any]] = MappingProxyType({
    **dict.fromkeys(("sum", "prod", "mean", "var", "std", "min", "max", "any", "all"), _reduction),
    **dict.fromkeys(("argmin", "argmax"), _reduction),
    **dict.fromkeys(("cumsum", "cumprod", "sort", "argsort"), _call_along_axis),
    **dict.fromkeys(
        ("einsum", "matmul", "tensordot", "outer", "diagonal", "contract"), _contract
    ),
    "expand": _layout,
    "transpose": lambda node, arrays, numbers: np.transpose(arrays[0], node.get("axes"))
    if node.get("axes") else _layout(node, arrays, numbers),
    "squeeze": lambda node, arrays, numbers: np.squeeze(arrays[0], node.get("axis"))
    if node.get("source") is None else _layout(node, arrays, numbers),
    "expand_dims": lambda node, arrays, numbers: np.expand_dims(arrays[0], node.get("axis")),
    "broadcast": _broadcast,
    "broadcast_to": lambda node, arrays, numbers: np.broadcast_to(arrays[0], tuple(numbers)),
    "reshape": lambda node, arrays, numbers: np.reshape(arrays[0], tuple(numbers)),
    "concatenate": lambda node, arrays, numbers: np.concatenate(arrays, node.get("axis")),
    "astype": _astype,
    "slice": _subscript, "index": _subscript, "scatter": _scattered,
    "parts": _parts,
    "copy": lambda node, arrays, numbers: arrays[0].copy(),
    "places": _places, "call": _call, "to_dense": _to_dense, "evaluate": _text, "notation": _text,
    "program": _program,
})  # fmt: skip
"""Operators by their names; functions of elements need no entry."""

NEED_SIZES = ("reshape", "broadcast_to", "broadcast", "places", "scatter", "parts", POSITIONS)
"""Operators that ask for the sizes of their result."""
