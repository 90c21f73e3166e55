"""Values: index notation → loop IR expressions, with NumPy's conversions written out."""

from __future__ import annotations

from typing import assert_never

from codegen import build
from codegen.infer import COMPARISONS
from codegen.ir import Binary, Const, Expr, Load, Ranked, Unary
from codegen.libraries.scalar_functions import has_function
from codegen.types import BOOL, ScalarType, scalar
from taco_py.concrete.nodes import WorkspaceKind
from taco_py.diagnostics.errors import InternalError
from taco_py.legal.absent import same
from taco_py.lower import dense_workspaces as dense
from taco_py.lower.environment import Environment, Scope, WorkspaceArrays
from taco_py.notation import nodes
from taco_py.notation.dtypes import operand_dtype
from taco_py.notation.functions import WHERE
from taco_py.notation.operators import CORRECTED, FILLED, KEPT, STORED


def lower_value(env: Environment, scope: Scope, expr: nodes.Expr, type: ScalarType) -> Expr:
    """The value of `expr` here, converted to `type`; absent operands take part as zeros."""
    if scope.regions(env).is_absent(expr):
        return build.zero(type)
    match expr:
        case nodes.Literal(value):
            return Const(_number(value, type), type)
        case nodes.Access():
            return build.cast(type, load_access(env, scope, expr))
        case nodes.Call():
            return build.cast(type, _call(env, scope, expr))
        case nodes.Reduce():
            raise InternalError("A reduction was left in concrete index notation")
        case _:
            assert_never(expr)


def _call(env: Environment, scope: Scope, call: nodes.Call) -> Expr:
    operator = call.operator
    type = scalar(operand_dtype(call, env.dtypes).name)
    known = [scope.regions(env).constant(arg) for arg in call.args]
    for value, annihilator in zip(known, operator.annihilators, strict=False):
        if annihilator is not None and same(value, annihilator):
            return Const(_number(annihilator, type), type)
    if operator == STORED:
        return build.const(True)
    if operator == FILLED:
        return lower_value(env, scope, call.args[known[0] is not None], type)
    absent = [value is not None and value == 0 for value in known]
    args = [lower_value(env, scope, arg, type) for arg in call.args]
    if has_function(operator.c_operator, type):
        return build.apply(operator.c_operator, *args)
    if operator.arity == 1:
        return _unary(operator.c_operator, args[0], type)
    if operator == CORRECTED:
        return build.select(build.ge(args[0], args[1]), args[0], args[2])
    if operator == WHERE:
        condition = lower_value(env, scope, call.args[0], BOOL)
        return build.select(condition, args[1], args[2])
    if operator == KEPT:
        return build.select(build.ne(args[1], build.zero(type)), args[0], build.zero(type))
    if absent[0] and operator.identity == 0 and operator.identity is not None:
        return args[1]
    if absent[1] and operator.right_identity == 0 and operator.right_identity is not None:
        return args[0]
    return Binary(operator.c_operator, args[0], args[1])


def _unary(c_operator: str, arg: Expr, type: ScalarType) -> Expr:
    if c_operator in COMPARISONS:
        return build.cast(type, Binary(c_operator, arg, build.zero(type)))
    return Unary(c_operator, arg)


def _number(value: complex, type: ScalarType) -> bool | int | float | complex:
    match type.kind:
        case "bool":
            return bool(value)
        case "complex":
            return complex(value)
        case "float":
            return float(value.real)
        case _:
            return int(value.real)


def load_access(env: Environment, scope: Scope, access: nodes.Access) -> Expr:
    """The element of `access` at the current coordinates, in the type that is computed in."""
    if access.tensor in env.workspaces:
        return _load_workspace(env, env.workspaces[access.tensor], scope, access)
    arrays = env.tensors[access.tensor]
    return build.cast(scalar(arrays.type.dtype), Load(arrays.values, value_position(scope, access)))


def value_position(scope: Scope, access: nodes.Access) -> Expr:
    """The position of the last level of `access`."""
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
    if arrays.workspace.kind is WorkspaceKind.DENSE:
        return Load(arrays.values, dense.position(env, scope, arrays.workspace))
    if arrays.list is not None:
        return Load(arrays.values, env.indices[access.indices[0]])
    position = value_position(scope, access)
    if arrays.table is not None:
        return Load(arrays.values, Ranked(arrays.table, position))
    return Load(arrays.values, position)
