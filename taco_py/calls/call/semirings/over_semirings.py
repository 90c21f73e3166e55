"""Calls with semiring= or mask=: their assignment over numbers, and what is done around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from codegen.names import Names
from codegen.records import dataclass
from taco_py.arguments.call_arguments import CallArguments
from taco_py.arguments.device_tensor import DeviceTensor
from taco_py.arguments.operands import (
    BoundOperand,
    bind_operands,
    check_names,
    check_orders,
    check_sizes,
    read_operand,
)
from taco_py.arguments.options import CallOptions
from taco_py.arguments.result_table import TENSOR
from taco_py.arguments.results import result_kind
from taco_py.arguments.semiring_mask import SemiringMask
from taco_py.data.interop.scipy_arrays import is_scipy_sparse
from taco_py.data.storage.tensor_data import TensorData
from taco_py.data.tensors.tensor import Tensor, with_fill
from taco_py.language.diagnostics.errors import DimensionError, OperandError
from taco_py.language.legal.stored import is_full
from taco_py.language.notation.checks import operand_names
from taco_py.language.notation.dtypes import value_dtype
from taco_py.language.notation.einsum import Squeezed
from taco_py.language.notation.functions.function_table import NOT, nonzero
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Literal
from taco_py.language.notation.operators import STORED
from taco_py.language.notation.rewrites.masks import Mask, masked, with_mask
from taco_py.language.notation.rewrites.semirings import (
    Semiring,
    with_semiring,
    without_fill,
)  # fmt: skip
from taco_py.language.problem import TensorType

TENSORS = (Tensor, DeviceTensor)
"""What has a fill value of its own."""


def to_arithmetic(
    assignment: Assignment, call: CallArguments, squeezed: Squeezed = ()
) -> tuple[Assignment, CallArguments]:
    """Write an assignment over a semiring, under a mask, as one over numbers.

    Returns it with the arguments of its call. Their key is None where operands are others than the
    user passed. Sums of truths are truths, also where others are widened.

    Raises DimensionError for a mask of another shape than the result's, and as `with_semiring`.
    """
    over, objects, options = call.over, call.objects, call.options
    if over is None:
        return assignment, call
    truth_dtype = options.dtype if over.semiring.computes_truths else None
    if over.semiring.computes_truths:
        options = replace(options, wide_sums=False, dtype=None)
    names, target = operand_names(assignment), assignment.target.tensor
    accumulates = assignment.operator is not None and target not in names
    check_names(assignment, [name for name in objects if not (accumulates and name == target)])
    unfilled = {name: unfilled_operand(name, obj, over.semiring) for name, obj in objects.items()}
    if assignment.operator is not None and target in objects:
        unfilled[target] = added_to(target, objects[target], over.semiring)
    plain = all(unfilled[name] is obj for name, obj in objects.items())
    objects, operands = unfilled, bind_operands(unfilled, options.dtype, options.weak)
    dtypes = {n: options.dtype or g.data.dtype for n, g in operands.items()}
    sparse = [name for name in names if not is_full(operands[name].data.format)]
    onto = dtypes.get(target) if assignment.operator is not None else None
    read = with_semiring(assignment, over.semiring, dtypes, sparse, onto, truth_dtype)
    dtype = value_dtype(read.value, dtypes)
    zero = over.semiring.zero_of(dtype)
    zero = None if zero == 0 else zero
    result_form = assignment
    if over.mask is not None:
        allowed, array, name = _allowed(assignment, operands, over.mask, options, squeezed)
        plain = plain and array is over.mask.array
        objects = {**objects, name: array}
        operands = {**operands, **bind_operands({name: array}, None, False)}
        typed = None if zero is None else Literal(zero, dtype=dtype.name)
        result_form = replace(assignment, value=with_mask(assignment.value, allowed, None))
        read = masked(read, allowed, typed, dtype)
    fills = zero is not None and assignment.operator is None
    if fills and _is_scipys(result_form, operands, options):
        read = replace(read, value=without_fill(read.value, dtype))
    key = call.key if plain else None
    return read, CallArguments(objects, options, call.out, None, key)


def _is_scipys(
    assignment: Assignment, operands: Mapping[str, BoundOperand], options: CallOptions
) -> bool:
    """Tell whether a result is a scipy.sparse array, which has no fill value: what it does not
    store is left out, whatever the zero is."""
    kind = result_kind(assignment, operands, options.format)
    return kind.kind != TENSOR and not is_full(kind.format)


def unfilled_operand(name: str, obj: Any, semiring: Semiring) -> Any:
    """Return a Tensor whose fill value is the semiring's zero as one whose fill value is 0.

    A Tensor that stores every element has no use for its fill value. Raises OperandError.
    """
    if semiring.is_arithmetic or not isinstance(obj, TENSORS) or not obj.data.fill:
        return obj
    zero = semiring.zero_of(obj.data.dtype)
    absent = not obj.data.format.is_dense
    if absent and obj.fill_value != zero and zero == zero:
        raise OperandError(
            f"Expected {name} with a fill value that is the zero of {semiring.name}, {zero}, found "
            f"{obj.fill_value}",
            hint=f"pass {name}.to_numpy(), which stores all elements",
        )
    return _refilled(obj, 0)


def _refilled(obj: Tensor | DeviceTensor, fill: Any) -> Tensor | DeviceTensor:
    """Return the tensor in the same arrays, with another fill value."""
    data = with_fill(obj.data, fill)
    return Tensor(data) if isinstance(obj, Tensor) else obj.over(data)


def added_to(name: str, obj: Any, semiring: Semiring) -> Any:
    """Return the tensor that a call adds to: what it does not store is the semiring's zero.

    Raises OperandError for a scipy.sparse array where that is not 0, for its result has none.
    """
    data = read_operand(obj, name)
    zero = semiring.zero_of(data.dtype)
    if is_full(data.format) or zero is None or zero == 0:
        return unfilled_operand(name, obj, semiring)
    if not isinstance(obj, TENSORS):
        remedy = f"tensor({name}, fill_value={zero})"
        raise _no_sparse_sum(name, semiring, type(obj).__name__, remedy)
    return _refilled(obj, zero)


def _no_sparse_sum(name: str, semiring: Semiring, storage: str, remedy: str) -> OperandError:
    return OperandError(
        f"Expected {name}, which is added to over {semiring.name}, to be an array or a Tensor with "
        f"a fill value, found a {storage}, which is 0 where nothing is stored",
        hint=f"pass tp.{remedy}",
    )


def _allowed(
    assignment: Assignment,
    operands: Mapping[str, BoundOperand],
    mask: Mask,
    options: CallOptions,
    squeezed: Squeezed,
) -> tuple[Expr, Any, str]:
    """Return the condition that a mask is, its tensor, and the tensor's name."""
    data = read_operand(mask.array, "the mask")
    target = assignment.target
    _check_shape(data, assignment, operands, squeezed)
    name = Names((*operands, *operand_names(assignment), target.tensor)).fresh("mask")
    allowed, array = allowed_by(mask, Access(name, target.indices), options)
    return allowed, array, name


def allowed_by(mask: Mask, element: Access, options: CallOptions) -> tuple[Expr, Any]:
    """Return the condition that a mask is, by one of its elements, and its tensor."""
    data = read_operand(mask.array, "the mask")
    by_value = mask.by_value or data.format.is_dense
    array = mask.array
    if isinstance(array, TENSORS) and not by_value and data.fill:
        array = _refilled(array, 0)
    if options.dtype is not None:  # to which all operands are converted
        array = _as_truths(array, data)
    return condition(element, by_value, mask.complement), array


def condition(element: Access, by_value: bool, complement: bool) -> Expr:
    """Return the truth that a mask is, by one of its elements."""
    condition: Expr = nonzero(element) if by_value else Call(STORED, (element,))
    return Call(NOT, (condition,)) if complement else condition


def _as_truths(array: Any, data: TensorData) -> Any:
    if isinstance(array, np.ndarray):
        return array != 0
    if is_scipy_sparse(array):
        copy = array.copy()
        copy.data = copy.data != 0
        return copy
    return Tensor(replace(data, values=data.values != 0))


def _check_shape(
    data: TensorData,
    assignment: Assignment,
    operands: Mapping[str, BoundOperand],
    squeezed: Squeezed,
) -> None:
    shapes = {name: g.data.shape for name, g in operands.items()}
    for name, axes in squeezed:
        shapes[name] = tuple(n for axis, n in enumerate(shapes[name]) if axis not in axes)
    check_orders(assignment, shapes)
    target = assignment.target
    target_sizes = dict(zip(target.indices, shapes.get(target.tensor, ()), strict=False))
    sizes = {**target_sizes, **check_sizes(assignment, shapes)}
    shape = tuple(sizes[index] for index in target.indices)
    if data.shape != shape:
        raise DimensionError(
            f"Expected a mask of the result's shape {shape}, found one of shape {data.shape}",
            assignment.target.span,
            hint="the mask has the result's dimensions in their order",
        )


# ---------------------------------------------------------------- without data


@dataclass(frozen=True, slots=True, eq=False)
class ArithmeticAssignment:
    """An assignment over numbers, for operands of known types.

    mask  the name of the mask among the operands, "" without one
    zero  what a result does not store, None for 0
    """

    assignment: Assignment
    mask: str = ""
    zero: Literal | None = None


def written_over(
    assignment: Assignment, types: Mapping[str, TensorType], over: SemiringMask, mask: str
) -> ArithmeticAssignment:
    """Write an assignment over a semiring, under a mask, as one over numbers, for `compile`.

    types  of the operands, and of the mask by its name
    mask   its name

    Raises as `with_semiring`.
    """
    dtypes = {name: type.promoted for name, type in types.items()}
    names = operand_names(assignment)
    sparse = [name for name in names if not is_full(types[name].format)]
    target = types.get(assignment.target.tensor)
    onto = None if target is None else target.promoted
    read = with_semiring(assignment, over.semiring, dtypes, sparse, onto)
    dtype = value_dtype(read.value, dtypes)
    zero_value = over.semiring.zero_of(dtype)
    zero = None if zero_value is None or zero_value == 0 else Literal(zero_value, dtype=dtype.name)
    if zero is not None and target is not None and not is_full(target.format):
        raise _no_sparse_sum(assignment.target.tensor, over.semiring, "sparse one", "dense(…)")
    if over.mask is None:
        return ArithmeticAssignment(read, "", zero)
    element = Access(mask, assignment.target.indices)
    by_value = over.mask.by_value or types[mask].format.is_dense
    allowed = condition(element, by_value, over.mask.complement)
    return ArithmeticAssignment(masked(read, allowed, zero, dtype), mask, zero)


def unfilled(objects: Mapping[str, Any], semiring: Semiring) -> dict[str, Any]:
    """Return operands as kernels over a semiring take them: what is not stored is its zero
    anyway."""
    return {name: unfilled_operand(name, obj, semiring) for name, obj in objects.items()}
