"""The oracle: any index notation on NumPy arrays, one array operation a node.

It is as simple as possible and forms every intermediate result in full, over all indices that occur
in it; the compiler's results are compared with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, assert_never

import numpy as np
from numpy.typing import ArrayLike, NDArray

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import DimensionError, OperandError, OperandTypeError
from taco_py.language.formats import Format
from taco_py.language.legal.absent import arg_fill, call_fill, differing, operator_of, reduced_fill
from taco_py.language.notation.checks import (
    accesses,
    check_assignment,
    check_elements,
    operand_names,
    unique,
)
from taco_py.language.notation.dtypes import (
    DType,
    answers,
    check_defined,
    expression_dtype,
    in_place_dtype,
    is_weak,
    operand_dtype,
    result_dtype,
)
from taco_py.language.notation.half_types import computed_dtype, is_half, number_kind
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import ADD, MUL, Number, Operator
from taco_py.language.notation.rewrites.reduce import insert_reductions
from taco_py.language.notation.tree import map_children

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class _Value:
    """An array with one distinct index for each axis.

    fill  its value where not `stored`, None where it is stored everywhere
    """

    indices: tuple[str, ...]
    array: Array
    stored: Array
    fill: Number | None


def evaluate_dense(
    assignment: Assignment,
    operands: Mapping[str, ArrayLike],
    initial: ArrayLike | None = None,
    stored: Mapping[str, ArrayLike] | None = None,
    sum_type: Callable[[DType], DType] = np.dtype,
) -> Array:
    """Evaluate the right-hand side of `assignment` and return the left-hand side, a new array.

    evaluate_dense(y[i] = A[i,j] * x[j], {"A": A, "x": x}) = A @ x

    Implicit sums of the text are inserted (`insert_reductions`); every node is computed in the
    dtype of `expression_dtype`, which for 16-bit operands is float32, and a result of a 16-bit
    dtype is rounded. For booleans that makes products "and" and sums "or"; integers wrap around.
    Where `sum_type` returns another dtype for a sum, all operands that it sums are converted to
    that first, also for the sums inside it. Scalar operands count with their NumPy dtype, Python's
    2.0 as float64; only literals are weak.

    Unstored elements of a sparse operand, and literals, are absent: the operators' annihilators
    make a product with an absent factor and a quotient with an absent numerator absent too; other
    operations are absent where all of their arguments are. An absent value is the fill value of its
    expression (0 of operands), whatever the other operand is there:

        A[i,j] / x[i] = 0        where A stores nothing, also if x[i] is 0, infinite or NaN
        A[i,j] / x[i] = 0 / 0    where A stores a zero, or is a dense array: NaN, as in NumPy
        b[i] / A[i,j] = b[i] / 0 where A stores nothing: a divisor annihilates nothing

    operands  arrays or scalars by name; names that the assignment does not use are ignored
    initial   what the left-hand side holds before `+=`; the operator's identity when not given
    stored    by name, the boolean array of an operand's stored elements; other operands store every
              element, as NumPy arrays do
    sum_type  function from the dtype of terms to that of their sum; by default the same, as in
              einsum

    Raises:
        NotationError, OperandError: as `insert_reductions` and `check_assignment`; an operand is
            missing, or has another number of modes than indices.
        DimensionError: two uses of an index, or `initial`, disagree about its size.
        OperandTypeError: an operand has no numeric dtype, or an operator does not take it.
    """
    result, _ = evaluate_stored(assignment, operands, stored, sum_type)
    if assignment.operator is None or initial is None:
        return result
    start, result = _initial(assignment.target, initial, result.shape), _computed(result)
    update = Call(assignment.operator, (assignment.target, assignment.value), assignment.span)
    check_defined(update, np.result_type(_computed(start), result))
    dtype = in_place_dtype(assignment, result.dtype, start.dtype)
    with np.errstate(all="ignore"):
        return np.asarray(assignment.operator.evaluate(_computed(start), result)).astype(dtype)


def evaluate_stored(
    assignment: Assignment,
    operands: Mapping[str, ArrayLike],
    stored: Mapping[str, ArrayLike] | None = None,
    sum_type: Callable[[DType], DType] = np.dtype,
) -> tuple[Array, Array]:
    """Evaluate `assignment` as `evaluate_dense`; return the result and where it is not absent."""
    if not isinstance(assignment, Assignment) or not isinstance(operands, Mapping):
        raise OperandTypeError(
            "Expected an Assignment and a mapping of operands, found "
            f"{type(assignment).__name__} and {type(operands).__name__}",
            hint="evaluate takes text, and operands by name",
        )
    assignment = insert_reductions(assignment)
    check_assignment(assignment)
    original = {name: _array(name, operands) for name in operand_names(assignment)}
    arrays = {name: _computed(array) for name, array in original.items()}
    sizes = _sizes(assignment, arrays)
    check_elements(assignment, sizes)
    dtypes = _dtypes(arrays)
    leaves = {name: _leaf(name, array, stored) for name, array in arrays.items()}
    world = _World(leaves, dtypes, sum_type)
    target = assignment.target
    with np.errstate(all="ignore"):
        value = _evaluate(assignment.value, world)
    shape = tuple(sizes[index] for index in target.indices)
    result, places = (
        np.array(np.broadcast_to(_spread(part, value.indices, target.indices), shape))
        for part in (value.array, value.stored)
    )
    if not any(is_half(array.dtype) for array in original.values()):
        return result, places
    dtype = result_dtype(replace(assignment, operator=None), _dtypes(original))
    half = is_half(dtype) and result.dtype == computed_dtype(dtype)
    return result.astype(dtype) if half else result, places


def stored_positions(has: Array, form: Format) -> Array:
    """Return where a tensor in a format stores something, which has values at some places.

    A dense level stores every coordinate below a position, a compressed one those that lead to a
    value.
    """
    ordered = has.transpose(form.mode_order)
    stored = np.ones((1,) * ordered.ndim, bool)
    for depth, level in enumerate(form.levels, 1):
        below = tuple(range(depth, ordered.ndim))
        leads = ordered.any(axis=below, keepdims=True)
        stored = np.broadcast_to(stored, leads.shape) if level.full else stored & leads
    stored = np.broadcast_to(stored, ordered.shape)
    return stored.transpose(np.argsort(form.mode_order)) if ordered.ndim else stored


# ---------------------------------------------------------------- operands


def _array(name: str, operands: Mapping[str, ArrayLike]) -> Array:
    if name not in operands:
        raise OperandError(
            f"Expected an operand named {name}, found {', '.join(operands) or 'none'}"
        )
    return _numbers(name, operands[name])


def _numbers(name: str, operand: ArrayLike) -> Array:
    try:
        array = np.asarray(operand)
    except (TypeError, ValueError) as error:
        raise OperandTypeError(
            f"Expected a NumPy array of numbers for {name}, found something that NumPy cannot "
            f"convert: {error}",
            hint="nested lists need rows of equal length",
        ) from error
    if number_kind(array.dtype) not in "biufc":
        raise OperandTypeError(
            f"Expected a NumPy array of numbers for {name}, found {type(operand).__name__} "
            f"of dtype {array.dtype}",
            hint="convert a sparse operand first, for instance with A.toarray()",
        )
    return array


def _dtypes(arrays: Mapping[str, Array]) -> dict[str, DType]:
    return {name: array.dtype for name, array in arrays.items()}


def _computed(array: Array) -> Array:
    """Convert elements of 16 bits to the dtype that they are computed in."""
    return array.astype(computed_dtype(array.dtype), copy=False)


@dataclass(frozen=True, slots=True, eq=False)
class _Leaf:
    """An operand, where it stores something, and its value elsewhere; None of dense ones."""

    array: Array
    stored: Array
    fill: Number | None


def _leaf(name: str, array: Array, stored: Mapping[str, ArrayLike] | None) -> _Leaf:
    fill = None if stored is None or name not in stored else 0
    return _Leaf(array, _places(name, array, stored), fill)


def _places(name: str, array: Array, stored: Mapping[str, ArrayLike] | None) -> Array:
    if stored is None or name not in stored:
        return np.broadcast_to(np.True_, array.shape)
    places = np.asarray(stored[name], dtype=bool)
    if places.shape != array.shape:
        raise DimensionError(
            f"Expected where {name} stores something as an array of its shape {array.shape}, found "
            f"shape {places.shape}"
        )
    return places


def _initial(target: Access, initial: ArrayLike, shape: tuple[int, ...]) -> Array:
    array = _numbers(target.tensor, initial)
    if array.shape != shape:
        raise DimensionError(
            f"Expected {target.tensor} of shape {shape} to add to, found shape {array.shape}",
            target.span,
        )
    return array


def _sizes(assignment: Assignment, arrays: Mapping[str, Array]) -> dict[str, int]:
    """Return the size of each index, on which all of its uses agree. Raises DimensionError."""
    sizes: dict[str, tuple[int, str]] = {}
    for access in accesses(assignment):
        name, shape = access.tensor, arrays[access.tensor].shape
        if len(shape) != len(access.indices):
            raise OperandError(
                f"Expected {name} with {len(access.indices)} modes, found shape {shape}",
                access.span,
            )
        for index, size in zip(access.indices, shape, strict=True):
            first, where = sizes.setdefault(index, (size, name))
            if first != size:
                raise DimensionError(
                    f"Expected one size for index {index}, found {first} in {where} and {size} in "
                    f"{name}",
                    access.span,
                )
    return {index: size for index, (size, _) in sizes.items()}


# ---------------------------------------------------------------- nodes


@dataclass(frozen=True, slots=True, eq=False)
class _World:
    """The environment of evaluation: operands, their dtypes, and the dtypes of sums.

    wide  the dtype of the enclosing sum, to which operands and results of comparisons are
          converted; None without one
    """

    leaves: Mapping[str, _Leaf]
    dtypes: Mapping[str, DType]
    sum_type: Callable[[DType], DType]
    wide: DType | None = None

    def inside(self, expr: Reduce) -> _World:
        """Return the environment of a sum's terms: its dtype where that differs from theirs."""
        terms = expression_dtype(_with_ones(expr.body), self.dtypes)
        wide = self.sum_type(terms) if expr.operator in (ADD, MUL) else terms
        return self if wide == terms or self.wide is not None else replace(self, wide=wide)

    def answers(self, expr: Call) -> bool:
        """Tell whether an operation has another dtype than its arguments, as a comparison has."""
        ones = _with_ones(expr)
        assert isinstance(ones, Call)
        return answers(ones, self.dtypes)


def _with_ones(expr: Expr) -> Expr:
    """Replace integer literals by ones, since only the type of the sum has to hold them."""
    if isinstance(expr, Literal) and type(expr.value) is int:
        return replace(expr, value=1)
    return map_children(expr, _with_ones)


def _evaluate(expr: Expr, world: _World) -> _Value:
    match expr:
        case Access():
            return _read(_access(expr, world.leaves[expr.tensor]), world.wide)
        case Literal():
            number = np.asarray(expr.value, dtype=expression_dtype(expr, world.dtypes))
            return _Value((), number, np.asarray(False), expr.value)
        case Call() if world.wide is not None and world.answers(expr):
            return _read(_evaluate(expr, replace(world, wide=None)), world.wide)
        case Call():
            args = [_argument(expr.operator, arg, world) for arg in expr.args]
            dtype = _common_dtype(expr, args)
            indices = unique(index for arg in args for index in arg.indices)
            values = [_spread(arg.array, arg.indices, indices).astype(dtype) for arg in args]
            places = [_spread(arg.stored, arg.indices, indices) for arg in args]
            value = np.asarray(expr.operator.evaluate(*values))
            fills = [arg.fill for arg in args]
            operator = operator_of(expr)
            fill = call_fill(operator, fills, dtype)
            stored = _stored(operator, places, fills)
            if operator.condition is not None:
                stored = stored & (values[operator.condition] != 0)
                fill = 0 if fill is None else fill
            stored = np.broadcast_to(stored, value.shape)
            if fill is None and None not in fills:
                stored = np.ones_like(stored)
            if fill is not None and _constant(operator, fills):
                value = np.where(stored, value, value.dtype.type(fill))
            return _Value(indices, value, stored, fill)
        case Reduce() if world.wide is not None and expr.operator.reduces_truths:
            return _read(_evaluate(expr, replace(world, wide=None)), world.wide)
        case Reduce():
            return _reduce(expr, _evaluate(expr.body, world.inside(expr)))
        case _:
            assert_never(expr)


def _read(value: _Value, wide: DType | None) -> _Value:
    return value if wide is None else replace(value, array=value.array.astype(wide))


def _argument(operator: Operator, arg: Expr, world: _World) -> _Value:
    """Evaluate an argument; an unabsorbed reduction counts as stored everywhere."""
    value = _evaluate(arg, world)
    if value.fill is None or arg_fill(operator, arg, value.fill) is not None:
        return value
    return replace(value, stored=np.ones_like(value.stored), fill=None)


def _common_dtype(call: Call, args: Sequence[_Value]) -> DType:
    """Return the dtype in which a call is computed on its arguments' values; literals are weak."""
    names = [f"a{place}" for place in range(len(args))]
    dtypes = {name: arg.array.dtype for name, arg in zip(names, args, strict=True)}
    stand_ins = tuple(
        arg if is_weak(arg) else Access(name, ())
        for name, arg in zip(names, call.args, strict=True)
    )
    stand_in = replace(call, args=stand_ins)
    expression_dtype(stand_in, dtypes)  # which raises where the operator is not defined
    return operand_dtype(stand_in, dtypes)


def _stored(operator: Operator, places: Sequence[Array], fills: Sequence[Number | None]) -> Array:
    """Return where `operator` has its own value: where one of each group of operands is stored."""
    groups = differing(operator, fills)
    unions = (reduce(np.logical_or, (places[place] for place in group)) for group in groups)
    return reduce(np.logical_and, unions)


def _constant(operator: Operator, fills: Sequence[Number | None]) -> bool:
    """Tell whether absent elements have a fixed value instead of the function of their fills.

    They have one by an annihilator, or for internal operators of the compiler.
    """
    zeros = (operator.annihilated(place, fill) for place, fill in enumerate(fills))
    return operator.at_absent is not None or any(zero is not None for zero in zeros)


def _access(access: Access, leaf: _Leaf) -> _Value:
    """Return the array itself, or its diagonal over indices that occur more than once."""
    fill = None if leaf.stored.all() and leaf.stored.size else leaf.fill
    value = _Value(access.indices, leaf.array, leaf.stored, fill)
    for index in access.indices:
        while value.indices.count(index) > 1:
            value = _diagonal(value, index)
    return value


def _diagonal(value: _Value, index: str) -> _Value:
    first = value.indices.index(index)
    second = value.indices.index(index, first + 1)
    rest = tuple(name for axis, name in enumerate(value.indices) if axis not in (first, second))
    array = np.diagonal(value.array, axis1=first, axis2=second)
    stored = np.diagonal(value.stored, axis1=first, axis2=second)
    return _Value((*rest, index), array, stored, value.fill)


def _reduce(expr: Reduce, body: _Value) -> _Value:
    axis = body.indices.index(expr.index)
    rest = body.indices[:axis] + body.indices[axis + 1 :]
    check_defined(expr, body.array.dtype)
    value = _reduced(expr.operator, body.array, axis)
    fill = reduced_fill(expr.operator, body.fill)
    counts = fill is None and body.fill is not None
    if (
        expr.operator.annihilated(0, body.fill) is not None
    ):  # one absent element makes the reduction absent
        value = np.where(body.stored.all(axis=axis), value, value.dtype.type(body.fill))
    return _Value(rest, value, np.asarray(body.stored.any(axis=axis) | counts), fill)


def _reduced(operator: Operator, array: Array, axis: int) -> Array:
    """Reduce `array` along `axis` in its own dtype; `numpy.sum` would widen small integers."""
    function = operator.evaluate
    empty = None if array.shape[axis] else operator.identity_of(array.dtype)
    if empty is not None:
        return np.full(array.shape[:axis] + array.shape[axis + 1 :], empty, array.dtype)
    if isinstance(function, np.ufunc):
        return np.asarray(function.reduce(array, axis=axis, dtype=array.dtype))
    slices = list(np.moveaxis(array, axis, 0))
    if operator.identity is not None:
        shape = array.shape[:axis] + array.shape[axis + 1 :]
        slices.insert(0, np.full(shape, operator.identity, array.dtype))
    return np.asarray(reduce(function, slices))


def _spread(array: Array, present: tuple[str, ...], indices: tuple[str, ...]) -> Array:
    """Transpose and expand `array`, whose axes are `present`, to one axis for each of `indices`."""
    order = [present.index(index) for index in indices if index in present]
    places = tuple(axis for axis, index in enumerate(indices) if index not in present)
    return np.expand_dims(array.transpose(order), places)
