"""Elementwise operations: one assignment in index notation each.

    T + U                R[i,j] = a0[i,j] + a1[i,j]             as `evaluate` computes it
    T + 2, exp(T)        r[p] = a[p] + 2                        over the values of T alone

Of one tensor beside numbers the pattern is kept: values are computed where they are stored, and the
fill value becomes what the expression is where nothing is stored. Numbers are operands, so that one
kernel serves all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
import scipy.sparse as sp

from taco_py.api.evaluate import again, evaluate
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

    name   NumPy's
    dtype  in which it is computed, as that of `evaluate`

    Returns a Tensor, NotImplemented for what is no operand. Raises DimensionError where shapes do
    not stretch to each other, FormatError where a sparse operand would become dense.
    """
    if len(args) == 2 and dtype is None:
        one, other = args
        if type(one) is Tensor is type(other) and one.shape == other.shape != ():
            text = elementwise_text(name, (len(one.shape),) * 2)
            found = again(text, ("a0", "a1"), one, other)
            return as_tensor(evaluate(text, a0=one, a1=other) if found is None else found)
    operands: Sequence[Any] = [_operand(each) for each in args]
    if any(each is NotImplemented for each in operands):
        return NotImplemented
    if any(not isinstance(each, NUMBERS) and each.shape for each in operands):
        operands = [_of_no_modes(each) for each in operands]
    arrays = [each for each in operands if not isinstance(each, NUMBERS)]
    if len(arrays) > 1:
        operands = _with_numbers(operands)
        arrays = [each for each in operands if not isinstance(each, NUMBERS)]
    if len(arrays) == 1:
        return on_values(name, operands, dtype)
    return _of_several(name, operands, dtype)


def _with_numbers(operands: Sequence[Any]) -> Sequence[Any]:
    """Put numbers in the place of dense arrays of one element beside sparse ones of as many modes.

    T - np.ones((1, 1))  ->  T - np.float64(1): the result has one fill value
    """
    sparse = [each.ndim for each in operands if _absent_number(each) is not None]
    if not sparse:
        return operands
    return [
        np.asarray(each.to_numpy() if isinstance(each, Tensor) else each).reshape(-1)[0]
        if not isinstance(each, NUMBERS)
        and _absent_number(each) is None
        and prod(each.shape) == 1
        and len(each.shape) <= max(sparse)
        else each
        for each in operands
    ]


def _operand(obj: Any) -> Any:
    """Return a number, or what `evaluate` takes; NotImplemented for other objects."""
    if isinstance(obj, (*NUMBERS, Tensor)) or sp.issparse(obj):
        return obj
    if isinstance(obj, list | tuple):
        obj = np.asarray(obj)
    if not isinstance(obj, np.ndarray) or obj.dtype.kind not in "biufcV":
        return NotImplemented
    return obj if obj.ndim else obj[()]


def _of_no_modes(operand: Any) -> Any:
    """Return a Tensor of order 0 as a number."""
    return operand.to_numpy()[()] if isinstance(operand, Tensor) and not operand.shape else operand


def as_tensor(found: Any) -> Any:
    """Return a result of `evaluate` as a Tensor; a number stays one."""
    if isinstance(found, (Tensor, *NUMBERS)):
        return found
    return Tensor(as_data(found))


# ---------------------------------------------------------------- over values alone


def on_values(name: str, operands: Sequence[Any], dtype: Any = None) -> Any:
    """Compute an operation of one array beside numbers where values are stored.

    Returns a Tensor of the same pattern, with another fill value; a number of order 0.
    """
    place = next(n for n, each in enumerate(operands) if not isinstance(each, NUMBERS))
    array = operands[place]
    if isinstance(array, RemappedTensor) and array.format.is_blocked:
        stored = on_values(name, (*operands[:place], array.stored, *operands[place + 1 :]), dtype)
        data = without_ends(stored.data, array.format, array.shape)
        return RemappedTensor(data, array.format, array.shape)
    data = canonical(array.examined() if isinstance(array, Tensor) else as_data(array))
    values = data.values
    orders = [0] * len(operands)
    orders[place] = values.ndim
    given = {f"a{n}": each for n, each in enumerate(operands)} | {f"a{place}": values}
    found = np.asarray(evaluate(elementwise_text(name, tuple(orders)), given, dtype=dtype))
    if not found.ndim:
        return found[()]
    if data.format.is_dense and not data.fill:
        return Tensor(dense_data(found, data.format))
    numbers = (*operands[:place], None, *operands[place + 1 :])
    kinds = tuple(type(each) for each in numbers)
    fill = _absent(name, place, numbers, kinds, data.dtype, data.fill, found.dtype)
    return Tensor(replace(data, values=found, fill=fill))


@lru_cache(512)
def _absent(
    name: str, place: int, numbers: tuple[Any, ...], kinds: tuple[type, ...],
    source: np.dtype[Any], fill: str, result: np.dtype[Any],
) -> str:  # fmt: skip
    """What an operation is where its one array stores nothing.

    kinds  of the numbers, for equal ones of two types
    """
    none = np.zeros(0, source)
    empty = Tensor(pack_coo((np.zeros(0, np.int64),), none, (1,), CSF(1), None, fill))
    text = elementwise_text(name, tuple(int(n == place) for n in range(len(numbers))))
    given = {f"a{n}": each for n, each in enumerate(numbers)} | {f"a{place}": empty}
    (number,) = np.asarray(evaluate_dense(text, given))
    with np.errstate(all="ignore"):
        number = number.astype(result)
    return "" if number == 0 and not fill else as_text(number)


# ---------------------------------------------------------------- of several arrays


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """Find the shape that all shapes stretch to, as NumPy does.

    Raises DimensionError.
    """
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        told = " and ".join(map(str, shapes))
        raise DimensionError(
            f"Expected shapes that stretch to each other, found {told}",
            hint="sizes are compared from the last mode on, and have to be equal or 1; "
            ".reshape(…) or T[:, None] adds modes of size 1",
        ) from None


def _of_several(name: str, operands: Sequence[Any], dtype: Any) -> Any:
    shapes = [() if isinstance(each, NUMBERS) else tuple(each.shape) for each in operands]
    shape = broadcast(shapes)
    literals = _literals(operands)
    text = elementwise_text(name, tuple(map(len, shapes)), literals)
    written = dict(literals)
    given = {f"a{n}": each for n, each in enumerate(operands) if n not in written}
    wanted = None
    if any(_absent_number(each) is not None for each in given.values()):
        wanted = _sparse_format(text, given, shape)
    return as_tensor(evaluate(text, given, format=wanted, dtype=dtype))


def _literals(operands: Sequence[Any]) -> tuple[tuple[int, str], ...]:
    """Return the numbers that have no say in the type, as texts: what is not stored is known then.

    where(T > 1, T, 0)  ->  ((2, "0"),)
    """
    kinds = [each.dtype for each in operands if not isinstance(each, NUMBERS)]
    if not kinds:
        return ()
    return tuple(
        (place, f"({number!r})")
        for place, each in enumerate(operands)
        if isinstance(each, NUMBERS) and np.result_type(*kinds, each) == np.result_type(*kinds)
        for number in [each.item() if isinstance(each, np.generic) else each]
        if not isinstance(number, complex)
    )


def _sparse_format(text: str, given: Mapping[str, Any], shape: Shape) -> Format | None:
    """Return the format to ask for, None for what `evaluate` chooses.

    Raises FormatError where a result is dense and no operand is as large.
    """
    fills = {name: _absent_number(each) for name, each in given.items()}
    shapes = {name: getattr(each, "shape", ()) for name, each in given.items()}
    if (
        not prod(shape)
        or shape == ()
        or any(fills[name] is None and shapes[name] == shape for name in given)
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
    """What an operand is where it stores nothing; None where it stores all."""
    if isinstance(obj, Tensor):
        return None if obj.format.is_dense else obj.fill_value.item()
    return 0 if sp.issparse(obj) else None
