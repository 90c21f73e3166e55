"""Elementwise operations: one assignment in index notation each.

    T + U                R[i,j] = a0[i,j] + a1[i,j]             by `evaluate`
    T + 2, exp(T)        r[p] = a[p] + 2                        over the values of T alone

One tensor beside numbers keeps its pattern: stored values are computed, and the expression of the
fill value is the new fill value. Numbers are operands, so that one kernel serves all numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
import scipy.sparse as sp

from taco_py.api.evaluate import call_fast_path, evaluate
from taco_py.api.evaluate_dense import evaluate_dense
from taco_py.arrays.spelling import elementwise_text
from taco_py.calls.remapped.joined_results import without_ends
from taco_py.data.storage.pack import canonical, pack_coo
from taco_py.data.storage.tensor_data import dense_data
from taco_py.data.tensors.remapped_tensor import RemappedTensor
from taco_py.data.tensors.tensor import Tensor, as_data
from taco_py.language.diagnostics.errors import DimensionError, FormatError
from taco_py.language.fill import as_text
from taco_py.language.formats import CSF, Format
from taco_py.language.legal.absent import differing
from taco_py.language.legal.absent import fill_of as absent_value
from taco_py.language.notation.nodes import Call
from taco_py.language.notation.parser import parse_assignment

Shape = tuple[int, ...]
NUMBERS = (bool, int, float, complex, np.generic)
"""Types of numbers; NumPy's have a type of elements of their own."""


def elementwise(name: str, *args: Any, dtype: Any = None) -> Any:
    """Compute an operation of Tensors, arrays and numbers, of which one is a Tensor.

    name   NumPy's name of the operation
    dtype  the type to compute in, as that of `evaluate`

    Returns a Tensor, or NotImplemented where an object is no operand. Raises DimensionError where
    shapes do not stretch to each other, FormatError where a sparse operand would become dense.
    """
    if len(args) == 2 and dtype is None:
        one, other = args
        if type(one) is Tensor is type(other) and one.shape == other.shape != ():
            text = elementwise_text(name, (len(one.shape),) * 2)
            result = call_fast_path(text, ("a0", "a1"), one, other)
            return as_tensor(evaluate(text, a0=one, a1=other) if result is None else result)
    operands: Sequence[Any] = [_operand(arg) for arg in args]
    if any(operand is NotImplemented for operand in operands):
        return NotImplemented
    if any(not isinstance(operand, NUMBERS) and operand.shape for operand in operands):
        operands = [_of_no_modes(operand) for operand in operands]
    arrays = [operand for operand in operands if not isinstance(operand, NUMBERS)]
    if len(arrays) > 1:
        operands = _with_numbers(operands)
        arrays = [operand for operand in operands if not isinstance(operand, NUMBERS)]
    if len(arrays) == 1:
        return on_values(name, operands, dtype)
    return _of_several(name, operands, dtype)


def _with_numbers(operands: Sequence[Any]) -> Sequence[Any]:
    """Replace dense arrays of one element by numbers, beside sparse ones of as many modes.

    T - np.ones((1, 1))  ->  T - np.float64(1): the result has one fill value
    """
    sparse = [operand.ndim for operand in operands if _absent_number(operand) is not None]
    if not sparse:
        return operands
    return [
        np.asarray(operand.to_numpy() if isinstance(operand, Tensor) else operand).reshape(-1)[0]
        if not isinstance(operand, NUMBERS)
        and _absent_number(operand) is None
        and prod(operand.shape) == 1
        and len(operand.shape) <= max(sparse)
        else operand
        for operand in operands
    ]


def _operand(obj: Any) -> Any:
    """Return an operand of `evaluate`, or NotImplemented for another object."""
    if isinstance(obj, (*NUMBERS, Tensor)) or sp.issparse(obj):
        return obj
    if isinstance(obj, list | tuple):
        obj = np.asarray(obj)
    if not isinstance(obj, np.ndarray) or obj.dtype.kind not in "biufcV":
        return NotImplemented
    return obj if obj.ndim else obj[()]


def _of_no_modes(operand: Any) -> Any:
    """Turn a Tensor of order 0 into a number."""
    return operand.to_numpy()[()] if isinstance(operand, Tensor) and not operand.shape else operand


def as_tensor(result: Any) -> Any:
    """Turn a result of `evaluate` into a Tensor; a number stays one."""
    if isinstance(result, (Tensor, *NUMBERS)):
        return result
    return Tensor(as_data(result))


# ---------------------------------------------------------------- on stored values


def on_values(name: str, operands: Sequence[Any], dtype: Any = None) -> Any:
    """Compute an operation of one array and numbers on the stored values.

    Returns a Tensor of the same pattern, with another fill value; a number where the order is 0.
    """
    place = next(n for n, operand in enumerate(operands) if not isinstance(operand, NUMBERS))
    array = operands[place]
    if isinstance(array, RemappedTensor) and array.format.is_blocked:
        stored = on_values(name, (*operands[:place], array.stored, *operands[place + 1 :]), dtype)
        data = without_ends(stored.data, array.format, array.shape)
        return RemappedTensor(data, array.format, array.shape)
    data = canonical(array.examined() if isinstance(array, Tensor) else as_data(array))
    values = data.values
    orders = [0] * len(operands)
    orders[place] = values.ndim
    arguments = {f"a{n}": operand for n, operand in enumerate(operands)}
    arguments[f"a{place}"] = values
    results = np.asarray(evaluate(elementwise_text(name, tuple(orders)), arguments, dtype=dtype))
    if not results.ndim:
        return results[()]
    if data.format.is_dense and not data.fill:
        return Tensor(dense_data(results, data.format))
    numbers = (*operands[:place], None, *operands[place + 1 :])
    kinds = tuple(type(number) for number in numbers)
    fill = _absent(name, place, numbers, kinds, data.dtype, data.fill, results.dtype)
    return Tensor(replace(data, values=results, fill=fill))


@lru_cache(512)
def _absent(
    name: str, place: int, numbers: tuple[Any, ...], kinds: tuple[type, ...],
    source: np.dtype[Any], fill: str, result: np.dtype[Any],
) -> str:  # fmt: skip
    """Compute the fill value of an operation's result from that of its one array.

    kinds  the types of `numbers`, as equal numbers of two types differ
    """
    none = np.zeros(0, source)
    empty = Tensor(pack_coo((np.zeros(0, np.int64),), none, (1,), CSF(1), None, fill))
    text = elementwise_text(name, tuple(int(n == place) for n in range(len(numbers))))
    arguments = {f"a{n}": number for n, number in enumerate(numbers)} | {f"a{place}": empty}
    (number,) = np.asarray(evaluate_dense(text, arguments))
    with np.errstate(all="ignore"):
        number = number.astype(result)
    return "" if number == 0 and not fill else as_text(number)


# ---------------------------------------------------------------- on several arrays


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """Find the shape that all shapes stretch to, as NumPy does.

    Raises DimensionError.
    """
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        listed_shapes = " and ".join(map(str, shapes))
        raise DimensionError(
            f"Expected shapes that stretch to each other, found {listed_shapes}",
            hint="sizes are compared from the last mode on, and have to be equal or 1; "
            ".reshape(…) or T[:, None] adds modes of size 1",
        ) from None


def _of_several(name: str, operands: Sequence[Any], dtype: Any) -> Any:
    shapes = [() if isinstance(operand, NUMBERS) else tuple(operand.shape) for operand in operands]
    shape = broadcast(shapes)
    literals = _literals(operands)
    text = elementwise_text(name, tuple(map(len, shapes)), literals)
    texts = dict(literals)
    arguments = {f"a{n}": operand for n, operand in enumerate(operands) if n not in texts}
    result_format = None
    if any(_absent_number(argument) is not None for argument in arguments.values()):
        result_format = _sparse_format(text, arguments, shape)
    return as_tensor(evaluate(text, arguments, format=result_format, dtype=dtype))


def _literals(operands: Sequence[Any]) -> tuple[tuple[int, str], ...]:
    """Return numbers that do not affect the dtype as texts, so that the fill value follows.

    where(T > 1, T, 0)  ->  ((2, "0"),)
    """
    kinds = [operand.dtype for operand in operands if not isinstance(operand, NUMBERS)]
    if not kinds:
        return ()
    return tuple(
        (place, f"({number!r})")
        for place, operand in enumerate(operands)
        if isinstance(operand, NUMBERS)
        and np.result_type(*kinds, operand) == np.result_type(*kinds)
        for number in [operand.item() if isinstance(operand, np.generic) else operand]
        if not isinstance(number, complex)
    )


def _sparse_format(text: str, arguments: Mapping[str, Any], shape: Shape) -> Format | None:
    """Return the result's format, None to leave it to `evaluate`.

    Raises FormatError where the result would be dense and no operand is as large.
    """
    fills = {name: _absent_number(argument) for name, argument in arguments.items()}
    shapes = {name: getattr(argument, "shape", ()) for name, argument in arguments.items()}
    if (
        not prod(shape)
        or shape == ()
        or any(fills[name] is None and shapes[name] == shape for name in arguments)
    ):
        return None
    value = parse_assignment(text).value
    absent = absent_value(value, lambda access: fills[access.tensor])
    if absent is None:
        raise FormatError(
            f"Expected operands whose result has one value where nothing is stored, found a sparse "
            f"one beside a dense one of another shape: a result of shape {shape} would be dense",
            hint="call .to_dense() of the sparse operand if the result fits into memory",
        )
    if not isinstance(value, Call) or len({*shapes.values()} - {()}) == 1:
        return None
    parts = [absent_value(arg, lambda access: fills[access.tensor]) for arg in value.args]
    return CSF(len(shape)) if len(differing(value.operator, parts)) == 1 else None


def _absent_number(obj: Any) -> Any:
    """Return an operand's fill value, or None where it stores all elements."""
    if isinstance(obj, Tensor):
        return None if obj.format.is_dense else obj.fill_value.item()
    return 0 if sp.issparse(obj) else None
