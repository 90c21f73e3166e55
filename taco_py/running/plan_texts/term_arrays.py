"""Index notation over arrays of terms, one array a node, with the meaning that the oracle has.

Where a sparse operand stores nothing is drawn; what it stores are symbols.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, assert_never

import numpy as np

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import OperandError
from taco_py.language.legal.absent import arg_fill, call_fill, differing, reduced_fill
from taco_py.language.notation.checks import unique
from taco_py.language.notation.dtypes import check_defined, expression_dtype, is_weak, operand_dtype
from taco_py.language.notation.nodes import Access, Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import Number, Operator
from taco_py.running.plan_texts.entry_terms import NOTHING, Atoms, DType, Term, TooLargeError
from taco_py.running.plan_texts.term_operators import applied, cast, reduced

Array = np.ndarray[Any, Any]
MOST_ELEMENTS = 20_000
"""Of an array over all indices of an expression."""


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """A tensor of terms, its type, and where it is stored; `fill` of what is not stored, None where
    everything is."""

    array: Array
    stored: Array
    fill: Number | None
    dtype: DType


@dataclass(frozen=True, slots=True, eq=False)
class _Value:
    """A tensor with an index for each of its modes, all different."""

    indices: tuple[str, ...]
    terms: Terms


def filled(shape: Sequence[int], term: Term) -> Array:
    """Return an array of one term."""
    terms = np.empty(tuple(shape), object)
    for place in np.ndindex(terms.shape):
        terms[place] = term
    return terms


def map_terms(array: Array, function: Any) -> Array:
    """Return an array of a function's results for each term."""
    results = np.empty(array.shape, object)
    for place in np.ndindex(array.shape):
        results[place] = function(array[place])
    return results


def in_type(atoms: Atoms, terms: Terms, dtype: DType) -> Terms:
    """Return a tensor with its values converted."""
    if terms.dtype == dtype:
        return terms
    array = map_terms(terms.array, lambda term: cast(atoms, term, terms.dtype, dtype))
    return replace(terms, array=array, dtype=dtype)


def evaluate(
    expr: Expr, target: tuple[str, ...], leaves: Mapping[str, Terms], atoms: Atoms
) -> Terms:
    """Return the value of an expression over the indices of a target.

    Raises OperandError for an operand that is missing, TooLargeError, and ValueError where sizes do
    not fit.
    """
    result = _evaluate(expr, leaves, atoms)
    sizes = _sizes(expr, leaves)
    shape = tuple(sizes[index] for index in target)
    if {*result.indices} - {*target}:
        raise ValueError(f"Expected indices of {target}, found {result.indices}")
    spread = (_spread(a, result.indices, target) for a in (result.terms.array, result.terms.stored))
    array, stored = (np.broadcast_to(a, shape) for a in spread)
    return replace(result.terms, array=array, stored=stored)


def _sizes(expr: Expr, leaves: Mapping[str, Terms]) -> dict[str, int]:
    """Return the size of each index."""
    sizes: dict[str, int] = {}
    stack = [expr]
    while stack:
        match stack.pop():
            case Access(tensor, indices):
                shape = _leaf(tensor, leaves).array.shape
                for index, size in zip(indices, shape, strict=True):
                    if sizes.setdefault(index, size) != size:
                        raise ValueError(f"Expected one size of {index}, found another")
            case Call(_, args):
                stack.extend(args)
            case Reduce(_, _, body):
                stack.append(body)
    return sizes


def _leaf(name: str, leaves: Mapping[str, Terms]) -> Terms:
    if name not in leaves:
        raise OperandError(f"Expected an operand named {name}, found none")
    return leaves[name]


def _evaluate(expr: Expr, leaves: Mapping[str, Terms], atoms: Atoms) -> _Value:
    match expr:
        case Access():
            return _access(expr, _leaf(expr.tensor, leaves))
        case Literal(value):
            dtype = expression_dtype(expr, {})
            number = filled((), cast(atoms, atoms.number(value), np.dtype(object), dtype))
            return _Value((), Terms(number, np.asarray(False), value, dtype))
        case Call():
            return _call(
                expr, [_argument(expr.operator, a, leaves, atoms) for a in expr.args], atoms
            )
        case Reduce():
            return _reduce(expr, _evaluate(expr.body, leaves, atoms), atoms)
        case _:
            assert_never(expr)


def _argument(operator: Operator, arg: Expr, leaves: Mapping[str, Terms], atoms: Atoms) -> _Value:
    """Return the value of an argument, stored everywhere where it is a number whatever was
    reduced."""
    value = _evaluate(arg, leaves, atoms)
    terms = value.terms
    if terms.fill is None or arg_fill(operator, arg, terms.fill) is not None:
        return value
    return replace(value, terms=replace(terms, stored=np.ones_like(terms.stored), fill=None))


def _call(call: Call, args: Sequence[_Value], atoms: Atoms) -> _Value:
    operator, dtype = call.operator, _common_dtype(call, args)
    indices = unique(index for arg in args for index in arg.indices)
    arrays = (in_type(atoms, arg.terms, dtype).array for arg in args)
    values = [_spread(a, arg.indices, indices) for a, arg in zip(arrays, args, strict=True)]
    places = [_spread(arg.terms.stored, arg.indices, indices) for arg in args]
    fills = [arg.terms.fill for arg in args]
    fill = call_fill(operator, fills, dtype)
    result_dtype = np.asarray(operator.evaluate(*[np.empty(0, dtype) for _ in args])).dtype
    shape = np.broadcast_shapes(*(v.shape for v in values))
    stored = np.broadcast_to(_stored(operator, places, fills), shape)
    if fill is None and None not in fills:
        stored = np.ones_like(stored)
    zeros = (operator.annihilated(place, fill_value) for place, fill_value in enumerate(fills))
    constant = operator.at_absent is not None or any(zero is not None for zero in zeros)
    absent = atoms.number(fill) if fill is not None and constant else None
    array = _elementwise(operator, values, shape, (dtype, result_dtype), (stored, absent), atoms)
    return _Value(indices, Terms(array, stored, fill, result_dtype))


def _elementwise(
    operator: Operator,
    values: Sequence[Array],
    shape: tuple[int, ...],
    types: tuple[DType, DType],
    absent: tuple[Array, Term | None],
    atoms: Atoms,
) -> Array:
    """Return an operator of the elements of arrays; a number where nothing is stored."""
    array = np.empty(shape, object)
    if array.size > MOST_ELEMENTS:
        raise TooLargeError
    wide: list[Any] = [np.broadcast_to(v, shape) for v in values]
    stored, number = absent
    for place in np.ndindex(shape):
        if number is not None and not stored[place]:
            array[place] = number
        else:
            arguments: list[Any] = [v[place] for v in wide]
            array[place] = applied(atoms, operator, arguments, *types)
    return array


def _common_dtype(call: Call, args: Sequence[_Value]) -> DType:
    """Return the type in which a call is computed; numbers of the text are weak."""
    names = [f"a{place}" for place in range(len(args))]
    dtypes = {name: arg.terms.dtype for name, arg in zip(names, args, strict=True)}
    stand_ins = tuple(
        arg if is_weak(arg) else Access(name, ())
        for name, arg in zip(names, call.args, strict=True)
    )
    stand_in = replace(call, args=stand_ins)
    expression_dtype(stand_in, dtypes)
    return operand_dtype(stand_in, dtypes)


def _stored(operator: Operator, places: Sequence[Array], fills: Sequence[Number | None]) -> Array:
    groups = differing(operator, fills)
    unions = (reduce(np.logical_or, (places[place] for place in group)) for group in groups)
    return np.asarray(reduce(np.logical_and, unions))


def _access(access: Access, terms: Terms) -> _Value:
    """Return the tensor, or its diagonal over indices that occur more than once."""
    value = _Value(access.indices, terms)
    for index in access.indices:
        while value.indices.count(index) > 1:
            value = _diagonal(value, index)
    return value


def _diagonal(value: _Value, index: str) -> _Value:
    first = value.indices.index(index)
    second = value.indices.index(index, first + 1)
    rest = tuple(name for axis, name in enumerate(value.indices) if axis not in (first, second))
    terms = value.terms
    pair = (np.diagonal(a, axis1=first, axis2=second) for a in (terms.array, terms.stored))
    array, stored = pair
    return _Value((*rest, index), replace(terms, array=array, stored=stored))


def _reduce(expr: Reduce, body: _Value, atoms: Atoms) -> _Value:
    terms, operator = body.terms, expr.operator
    axis = body.indices.index(expr.index)
    rest = body.indices[:axis] + body.indices[axis + 1 :]
    check_defined(expr, terms.dtype)
    fill = reduced_fill(operator, terms.fill)
    counts = fill is None and terms.fill is not None
    rows = np.moveaxis(terms.array, axis, -1)
    array = np.empty(rows.shape[:-1], object)
    for place in np.ndindex(array.shape):
        array[place] = reduced(atoms, operator, list(rows[place]), terms.dtype)
    if operator.annihilated(0, terms.fill) is not None:
        every = terms.stored.all(axis=axis)
        number = NOTHING if terms.fill is None else atoms.number(terms.fill)
        for place in zip(*np.nonzero(~every), strict=True):
            array[place] = number
    stored = np.asarray(terms.stored.any(axis=axis) | counts)
    return _Value(rest, Terms(array, stored, fill, terms.dtype))


def _spread(array: Array, present: tuple[str, ...], indices: tuple[str, ...]) -> Array:
    """Return `array` with an axis for each of `indices` in order: of size 1 for those it has
    not."""
    order = [present.index(index) for index in indices if index in present]
    places = tuple(axis for axis, index in enumerate(indices) if index not in present)
    return np.expand_dims(array.transpose(order), places)
