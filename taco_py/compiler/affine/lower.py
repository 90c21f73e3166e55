"""Statements of a program as loop IR: one instance, from the values of its indices.

    S0: A[i,j] -= A[i,k] * A[k,j]   →   A_vals[i*A1_stride + j] -= A_vals[…] * A_vals[…]

Values have NumPy's dtypes; the assigned value is converted to the dtype of the target.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any, assert_never

import numpy as np

from codegen import build
from codegen.ir import Array, Binary, Call, Const, Expr, Load, Stmt, Storage, Store, Unary, Var
from codegen.libraries.scalar_functions import has_function
from codegen.names import Names
from codegen.records import dataclass
from codegen.types import ScalarType, scalar
from polyhedral.affine import Affine
from polyhedral.nests.to_loops import Body
from taco_py.compiler.affine.nodes import Update, subscripts
from taco_py.compiler.affine.statements import Placed, tensor_names, written_names
from taco_py.language.diagnostics.errors import OperandTypeError
from taco_py.language.notation import nodes
from taco_py.language.notation.dtypes import (
    DType,
    check_literal,
    expression_dtype,
    is_weak,
    operand_dtype,
)
from taco_py.language.notation.operators import ADD, Operator

_LIBRARY = {"sqrt": {32: "sqrtf", 64: "sqrt"}}


@dataclass(frozen=True, slots=True)
class OperandType:
    """The properties of an operand that a kernel depends on.

    unit  whether the stride of the last mode is one
    """

    dtype: str
    order: int
    unit: bool = True


@dataclass(frozen=True, slots=True)
class Data:
    """The data of an operand: its array with a stride for each mode, or a number."""

    array: Array | None
    strides: tuple[Expr, ...] = ()
    number: Var | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """Every operand of a program.

    scalars  the parameters that are not arrays, with their sources: ("stride", A, 0)
    """

    data: Mapping[str, Data]
    scalars: tuple[tuple[Var, tuple[str, str, int]], ...]
    dtypes: Mapping[str, DType] = field(default_factory=dict)

    @property
    def arrays(self) -> tuple[Array, ...]:
        return tuple(data.array for data in self.data.values() if data.array is not None)


def lay_out(
    statements: tuple[Placed, ...], types: Mapping[str, OperandType], names: Names
) -> Memory:
    """Return arrays and parameters for the operands of `statements`."""
    outputs = written_names(statements)
    data: dict[str, Data] = {}
    scalars: list[tuple[Var, tuple[str, str, int]]] = []
    for name in tensor_names(statements):
        type = types[name]
        element = scalar(type.dtype)
        if type.order == 0 and name not in outputs:
            var = Var(names.fresh(name), element)
            data[name] = Data(None, (), var)
            scalars.append((var, ("number", name, 0)))
            continue
        storage = Storage.OUTPUT if name in outputs else Storage.INPUT
        array = Array(names.fresh(f"{name}_vals"), element, storage)
        strides = [Var(names.fresh(f"{name}{mode + 1}_stride")) for mode in range(type.order)]
        if type.unit and strides:
            strides.pop()
        scalars += [(var, ("stride", name, mode)) for mode, var in enumerate(strides)]
        last = (build.const(1),) if len(strides) < type.order else ()
        data[name] = Data(array, (*strides, *last))
    dtypes = {name: np.dtype(type.dtype) for name, type in types.items()}
    return Memory(data, tuple(scalars), dtypes)


def bodies(
    statements: Iterable[Placed], memory: Memory, sizes: Mapping[str, Expr]
) -> dict[str, Body]:
    """Return a body for each statement; `sizes` has the values of names that no loop has."""

    def body(update: Update) -> Body:
        return lambda values: _store(update, memory, {**sizes, **values})

    return {statement.name: body(statement.update) for statement in statements}


# ---------------------------------------------------------------- one instance


def _store(update: Update, memory: Memory, values: Mapping[str, Expr]) -> Stmt:
    target, value, operator = update.target, update.value, update.operator
    element = scalar(memory.dtypes[target.tensor].name)
    place = _place(target, memory, values)
    if operator is not None and sums_in_place(update, memory.dtypes):
        number = value_of(value, memory, values, element)
        if operator.c_operator == ADD.c_operator:
            return Store(place.array, place.index, number, "+")
        return Store(place.array, place.index, number, operator.c_operator)
    if operator is not None:
        value = nodes.Call(operator, (target, value), update.span)
    return Store(place.array, place.index, value_of(value, memory, values, element))


def sums_in_place(update: Update, dtypes: Mapping[str, DType]) -> bool:
    """Tell whether an update is `target op= value`, computed in the dtype of the target.

    Otherwise each sum is converted back to that dtype after an addition.
    """
    if update.operator is None:
        return False
    call = nodes.Call(update.operator, (update.target, update.value), update.span)
    return operand_dtype(call, dtypes) == dtypes[update.target.tensor]


def _place(access: nodes.Access, memory: Memory, values: Mapping[str, Expr]) -> Load:
    data = memory.data[access.tensor]
    assert data.array is not None
    parts = [
        build.mul(_affine(subscript, values), stride)
        for subscript, stride in zip(subscripts(access), data.strides, strict=True)
    ]
    return build.load(data.array, build.add(*parts))


def _affine(value: Affine, values: Mapping[str, Expr]) -> Expr:
    parts = [build.mul(values[name], factor) for name, factor in value.terms]
    return build.add(*parts, value.constant) if parts else build.const(value.constant)


def value_of(
    expr: nodes.Expr, memory: Memory, values: Mapping[str, Expr], type: ScalarType
) -> Expr:
    """Return the value of `expr`, converted to `type`."""
    match expr:
        case nodes.Literal(value):
            return Const(_number(value, type), type)
        case nodes.Access():
            number = memory.data[expr.tensor].number
            return build.cast(type, _place(expr, memory, values) if number is None else number)
        case nodes.Call():
            call_type = scalar(operand_dtype(expr, memory.dtypes).name)
            args = [value_of(arg, memory, values, call_type) for arg in expr.args]
            return build.cast(type, _call(expr.operator, args, call_type))
        case nodes.Reduce():
            raise TypeError("a program has no sums inside expressions")
        case _:
            assert_never(expr)


def _call(operator: Operator, args: list[Expr], type: ScalarType) -> Expr:
    if operator.c_operator in _LIBRARY:
        return Call(_LIBRARY[operator.c_operator][type.bits], tuple(args), type)
    if operator.arity == 1:
        return Unary(operator.c_operator, args[0])
    if has_function(operator.c_operator, type):  # a quotient of complex numbers
        return build.apply(operator.c_operator, *args)
    return Binary(operator.c_operator, args[0], args[1])


def _number(value: complex, type: ScalarType) -> Any:
    kinds: dict[str, Any] = {"complex": complex, "float": float, "bool": bool}
    real = value if type.kind == "complex" else value.real
    return kinds.get(type.kind, int)(real)


# ---------------------------------------------------------------- checks


def check_types(statements: Iterable[Placed], types: Mapping[str, OperandType]) -> None:
    """Check that each value can be converted to the dtype of its target, as NumPy would in place.

    Raises:
        OperandTypeError
        NumberOverflowError: a literal that the dtype of its target cannot hold.
    """
    dtypes = {name: np.dtype(type.dtype) for name, type in types.items()}
    for statement in statements:
        update = statement.update
        value = expression_dtype(update.value, dtypes)
        target = dtypes[update.target.tensor]
        _check_functions(update.value, dtypes)
        if is_weak(update.value) and value.kind in "iu":
            check_literal(update.value, target, dtypes)
        elif not np.can_cast(value, target, "same_kind"):
            raise OperandTypeError(
                f"Expected a value that {update.target.tensor} of dtype {target} can hold, found "
                f"dtype {value}",
                update.span,
                f"convert {update.target.tensor} to {np.promote_types(value, target)} first",
            )


def _check_functions(expr: nodes.Expr, dtypes: Mapping[str, DType]) -> None:
    if not isinstance(expr, nodes.Call):
        return
    dtype = operand_dtype(expr, dtypes)
    if expr.operator.c_operator in ("sqrt", "min", "max") and dtype.kind in "bc":
        raise OperandTypeError(
            f"Expected real numbers in {expr.operator.name}, found dtype {dtype}", expr.span
        )
    for arg in expr.args:
        _check_functions(arg, dtypes)
