"""Values: index notation → loop IR expressions, with NumPy's conversions written out."""

from __future__ import annotations

from typing import assert_never

from codegen import build
from codegen.ir import Binary, Expr, Load, Ranked, Unary
from codegen.libraries.scalar_functions import has_function
from codegen.types import BOOL, INT64, UINT64, ScalarType, scalar
from taco_py.compiler.lower import dense_workspaces as dense
from taco_py.compiler.lower.environment import Environment, Scope, WorkspaceArrays
from taco_py.compiler.lower.numbers import number
from taco_py.language.diagnostics.errors import InternalError
from taco_py.language.legal.absent import fill_of, is_number, operator_of, same
from taco_py.language.notation import nodes
from taco_py.language.notation.dtypes import argument_dtype, operand_dtype
from taco_py.language.notation.functions.function_table import WHERE
from taco_py.language.notation.operators import (
    CORRECTED,
    FILLED,
    KEEP,
    NONZERO,
    PLACE,
    POSITION,
    PRESENT,
    SELECTED,
    STORED,
    VALUE,
    WRAPPED,
)


def lower_value(env: Environment, scope: Scope, expr: nodes.Expr, type: ScalarType) -> Expr:
    """Return the value of `expr` here, converted to `type`; absent elements have their fill
    value."""
    if scope.regions(env).is_absent(expr):
        return _nothing(expr, type)
    match expr:
        case nodes.Literal(value):
            return number(value, type)
        case nodes.Access():
            fill = scope.regions(env).constant(expr)
            if fill is not None:
                return number(fill, type)
            return build.cast(type, load_access(env, scope, expr))
        case nodes.Call():
            return build.cast(type, _call(env, scope, expr))
        case nodes.Reduce():
            raise InternalError("A reduction was left in concrete index notation")
        case _:
            assert_never(expr)


def _nothing(expr: nodes.Expr, type: ScalarType) -> Expr:
    """Return zero, with the sign of the number that an expression is."""
    value = fill_of(expr, lambda access: 0) if is_number(expr) else None
    return build.zero(type) if value is None else number(value, type)


def _has_sign(expr: nodes.Expr, type: ScalarType) -> bool:
    """Tell whether adding zero matters, as -0.0 + 0 is 0.0; absent elements are not added."""
    return type.kind in ("float", "complex") and is_number(expr)


def _call(env: Environment, scope: Scope, call: nodes.Call) -> Expr:
    """Return the value of an operation, or its annihilator where an absent argument's fill is
    that."""
    operator = call.operator
    dtype = operand_dtype(call, env.dtypes)
    if dtype.kind == "O":
        return _compared(env, scope, call)
    type = scalar(dtype.name)
    fills = [scope.regions(env).constant(arg) for arg in call.args]
    operator = operator_of(call)
    for place, fill in enumerate(fills):
        value = operator.annihilated(place, fill)
        if value is not None:
            return number(value, type)
    if operator in _LOWERINGS:
        return _LOWERINGS[operator](env, scope, call, type)
    args = [lower_value(env, scope, arg, type) for arg in call.args]
    if has_function(operator.c_operator, type):
        return build.apply(operator.c_operator, *args)
    if operator.arity == 1:
        return Unary(operator.c_operator, args[0])
    pairs = zip(call.args, fills, strict=True)
    zeros = [same(fill, 0) and not _has_sign(arg, type) for arg, fill in pairs]
    if operator.identity is not None and zeros[0] and operator.identity == 0:
        return args[1]
    if operator.right_identity is not None and zeros[1] and operator.right_identity == 0:
        return args[0]
    return Binary(operator.c_operator, args[0], args[1])


def _compared(env: Environment, scope: Scope, call: nodes.Call) -> Expr:
    """Compare signed with unsigned integers of 64 bits, which no common type holds.

    a < b  →  a < 0 || (uint64) a < b
    """
    types = [scalar(argument_dtype(call, arg, env.dtypes).name) for arg in call.args]
    pairs = zip(call.args, types, strict=True)
    args = [lower_value(env, scope, arg, type) for arg, type in pairs]
    below = build.lt(args[types.index(INT64)], build.const(0))
    positive = build.apply(call.operator.c_operator, *(build.cast(UINT64, arg) for arg in args))
    if call.operator.at(tuple(-1 if type == INT64 else 0 for type in types)):
        return build.or_(below, positive)
    return build.and_(build.not_(below), positive)


def _stored(env: Environment, scope: Scope, call: nodes.Call, type: ScalarType) -> Expr:
    return build.const(True)


def _nonzero(env: Environment, scope: Scope, call: nodes.Call, type: ScalarType) -> Expr:
    value = lower_value(env, scope, call.args[0], type)
    return build.cast(type, build.ne(value, build.zero(type)))


def _masked(env: Environment, scope: Scope, call: nodes.Call, type: ScalarType) -> Expr:
    value, condition = (lower_value(env, scope, arg, type) for arg in call.args)
    return build.select(build.ne(condition, build.zero(type)), value, build.zero(type))


def _filled(env: Environment, scope: Scope, call: nodes.Call, type: ScalarType) -> Expr:
    absent = scope.regions(env).constant(call.args[0]) is not None
    return lower_value(env, scope, call.args[absent], type)


def _corrected(env: Environment, scope: Scope, call: nodes.Call, type: ScalarType) -> Expr:
    value, least, otherwise = (lower_value(env, scope, arg, type) for arg in call.args)
    return build.select(build.ge(value, least), value, otherwise)


def _where(env: Environment, scope: Scope, call: nodes.Call, type: ScalarType) -> Expr:
    absent = scope.regions(env).constant(call.args[0])
    if absent is not None:
        return lower_value(env, scope, call.args[1 if absent else 2], type)
    either = scope.regions(env).constant(call)  # of branches that are alike
    if either is not None:
        return number(either, type)
    condition = lower_value(env, scope, call.args[0], BOOL)
    then, orelse = (lower_value(env, scope, arg, type) for arg in call.args[1:])
    return build.select(condition, then, orelse)


def _value(env: Environment, scope: Scope, call: nodes.Call, type: ScalarType) -> Expr:
    return lower_value(env, scope, call.args[0], type)


_LOWERINGS = {
    VALUE: _value,
    POSITION: _value,
    STORED: _stored,
    PRESENT: _stored,
    NONZERO: _nonzero,
    KEEP: _masked,
    FILLED: _filled,
    WRAPPED: _filled,
    CORRECTED: _corrected,
    WHERE: _where,
    PLACE: _where,
    SELECTED: _where,
}
"""The lowering of operators that are no function of the values of their arguments."""


def load_access(env: Environment, scope: Scope, access: nodes.Access) -> Expr:
    """Return the element of `access` at the current coordinates, in the type of computation."""
    if access.tensor in env.workspaces:
        return _load_workspace(env, env.workspaces[access.tensor], scope, access)
    arrays = env.tensors[access.tensor]
    return build.cast(scalar(arrays.type.dtype), Load(arrays.values, value_position(scope, access)))


def value_position(scope: Scope, access: nodes.Access) -> Expr:
    """Return the position of the last level of `access`."""
    position = scope.position(access, len(access.indices) - 1)
    if position is None:
        raise InternalError(f"{access.tensor}[{','.join(access.indices)}] is read out of order")
    return position


def _load_workspace(
    env: Environment, arrays: WorkspaceArrays, scope: Scope, access: nodes.Access
) -> Expr:
    if arrays.scalar is not None:
        return arrays.scalar
    if arrays.values is None:
        raise InternalError(f"The workspace {access.tensor} has no values")
    if arrays.workspace.is_array:
        return Load(arrays.values, dense.position(env, scope, arrays.workspace))
    if arrays.ranked is not None:
        return Load(arrays.ranked, build.add(arrays.base, value_position(scope, access)))
    if arrays.list is not None:
        return Load(arrays.values, env.indices[access.indices[0]])
    position = value_position(scope, access)
    if arrays.table is not None:
        return Load(arrays.values, Ranked(arrays.table, position))
    return Load(arrays.values, position)
