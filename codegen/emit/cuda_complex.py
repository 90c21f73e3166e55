"""Complex numbers of kernels as pairs of real ones, which CUDA has: `float2` and `double2`.

y[i] += a * x[i]   →   y[i] = taco_add_c128(y[i], taco_multiply_c128(a, x[i]))
csqrt(z)           →   taco_csqrt_c128(z)
1.0 + 2.0i         →   make_double2(1.0, 2.0)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from codegen.emit.cuda_updates import PAIRS, suffix
from codegen.infer import c_function, type_of
from codegen.ir import (
    Apply,
    Array,
    Assign,
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    Kernel,
    Load,
    Store,
    Unary,
    Var,
)
from codegen.libraries.scalar_functions import CFunction, spelling_of
from codegen.tree import map_children
from codegen.types import BOOL, COMPLEX64, FLOAT32, FLOAT64, SCALARS, ScalarType

_OPERATORS = {
    "+": "add", "-": "subtract", "*": "multiply", "/": "divide", "==": "equal", "!=": "not_equal",
}  # fmt: skip


def complex_as_pairs(kernel: Kernel) -> Kernel:
    """Return the kernel without arithmetic of complex numbers: functions of pairs stand for it."""
    return in_pairs(kernel)  # type: ignore[no-any-return]


def in_pairs(node: Any) -> Any:
    """Return a tree of the loop IR without complex numbers."""
    node = map_children(node, in_pairs)
    match node:
        case Var(type=type) if type.kind == "complex":
            return replace(node, type=_pair(type))
        case Array(element=element) if element.kind == "complex":
            return replace(node, element=_pair(element))
        case Const(type=type) if type.kind == "complex":
            return _constant(complex(node.value), type)
        case Cast(type=type, operand=operand):
            return _cast(type, operand)
        case Unary(op="-", operand=operand) if type_of(operand).kind == "complex":
            return _call("negative", type_of(operand), operand)
        case Binary(op=op, left=left, right=right) if type_of(left).kind == "complex":
            return _call(_OPERATORS[op], type_of(left), left, right, truth=op in ("==", "!="))
        case Apply(args=args) if type_of(args[0]).kind == "complex":
            name = _name(c_function(node), type_of(args[0]))
            result = type_of(node)
            return Call(name, args, _pair(result) if result.kind == "complex" else result)
        case Assign(var=var, op=op) if op is not None and var.type.kind == "complex":
            return replace(node, value=_updated(var.type, op, var, node.value), op=None)
        case Store(array=array, op=op) if op is not None and array.element.kind == "complex":
            old = Load(array, node.index)
            return replace(node, value=_updated(array.element, op, old, node.value), op=None)
    return node


def definition_in_pairs(definition: str) -> str:
    """Return the definition of a function whose body is in pairs, with its types so too."""
    for name, pair in PAIRS.items():
        definition = definition.replace(SCALARS[name].c, pair)
    return definition


def _pair(type: ScalarType) -> ScalarType:
    return replace(type, c=PAIRS[type.name])


def _part(type: ScalarType) -> ScalarType:
    return FLOAT32 if type.bits == COMPLEX64.bits else FLOAT64


def _call(name: str, of: ScalarType, *args: Expr, truth: bool = False) -> Call:
    return Call(f"taco_{name}_{suffix(of)}", args, BOOL if truth else _pair(of))


def _name(function: CFunction, of: ScalarType) -> str:
    """Return our function of pairs for C's of complex numbers."""
    if function.name.startswith("taco_"):
        return function.name
    bare = function.name.removesuffix("f") if of.bits == COMPLEX64.bits else function.name
    return f"taco_{bare}_{suffix(of)}"


def _constant(value: complex, type: ScalarType) -> Call:
    part = _part(type)
    return _pair_of(type, Const(value.real, part), Const(value.imag, part))


def _pair_of(type: ScalarType, real: Expr, imag: Expr) -> Call:
    return Call(f"make_{PAIRS[type.name]}", (real, imag), _pair(type))


def _cast(type: ScalarType, operand: Expr) -> Expr:
    source = type_of(operand)
    if source.kind == "complex" and type.kind == "complex":
        if source.bits == type.bits:
            return operand
        return Call(
            "taco_widen" if type.bits > source.bits else "taco_narrow", (operand,), _pair(type)
        )
    if source.kind == "complex":
        if type == BOOL:
            return _call("truth", source, operand, truth=True)
        real = Call(f"taco_creal_{suffix(source)}", (operand,), _part(source))
        return real if type == real.type else Cast(type, real)
    if type.kind == "complex":
        part = _part(type)
        return _pair_of(type, operand if source == part else Cast(part, operand), Const(0.0, part))
    return Cast(type, operand)


def _updated(element: ScalarType, op: str, old: Expr, value: Expr) -> Expr:
    if op in _OPERATORS:
        return _call(_OPERATORS[op], element, old, value)
    function = spelling_of(op, element)
    assert isinstance(function, CFunction)
    return Call(_name(function, element), (old, value), _pair(element))
