"""Mark the innermost loops whose iterations may run side by side in vector lanes.

    for p in a..b:                          vector for p in a..b reducing + acc:
      acc += x[p] * y[q + p]         ->       acc += x[p] * y[q + p]

The emitter writes `#pragma omp simd reduction(+:acc)`: the compiler may sum in any order here and
nowhere else (-ffast-math would do so everywhere). A loop is marked when

- it has no control flow, only declarations, stores and reductions, and calls no functions but
  those that compilers make vectors of;
- every array is read at a place that advances by one element an iteration, or stays: gcc turns an
  indirect x[crd[p]] into a vector gather, several times slower than scalar loads. Where a function
  takes tens of instructions, lanes pay however its arguments come (exp(x[crd[p]]): 5 times faster);
- an array that it writes advances by one, and its other uses in the loop are at that very place.
  Different arrays never overlap.

Lanes of minima and maxima of floats are combined by the runtime's own functions: C's `<` would lose
a NaN.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from codegen.infer import c_function, function_of_update, type_of
from codegen.ir import (
    Apply,
    Array,
    Assign,
    Binary,
    Call,
    Cast,
    Comment,
    Const,
    Declare,
    Expr,
    For,
    Load,
    LoopKind,
    Module,
    Reduction,
    Store,
    Var,
)
from codegen.records import dataclass
from codegen.tree import children, find, rewrite, walk
from codegen.variables import assigned_vars, declared_vars, variables_read

_REDUCING: dict[str, frozenset[str]] = {
    "int": frozenset(("+", "*", "min", "max", "&", "|", "^")),
    "uint": frozenset(("+", "*", "min", "max", "&", "|", "^")),
    "float": frozenset(("+", "*", "min", "max")),
    "complex": frozenset(),
    "bool": frozenset(),
    "vector": frozenset(),
}
Strides = dict[Var, int | None]


def vectorize(module: Module) -> Module:
    """Return `module` with every loop that qualifies marked VECTOR."""
    return rewrite(module, _mark)


def _mark(node: Any) -> Any:
    if not isinstance(node, For) or not node.is_serial or node.step != 1:
        return node
    if node.unroll:
        return node
    reductions = lanes_of(node)
    if reductions is None:
        return node
    return replace(node, kind=LoopKind.VECTOR, reductions=reductions)


def lanes_of(loop: For) -> tuple[Reduction, ...] | None:
    """Return the reductions of a loop that may be vectorized; None for one that may not."""
    if not all(isinstance(s, Declare | Assign | Store | Comment) for s in loop.body.body):
        return None
    if any(map(is_scalar_call, walk(loop.body))):
        return None
    reductions = reductions_of(loop)
    if reductions is None or not (reductions or any(find(loop.body, Store))):
        return None
    strides = strides_in(loop)
    return reductions if _accesses_advance(loop, strides) else None


def is_scalar_call(node: object) -> bool:
    """Tell whether `node` calls a function that compilers call for one lane after another."""
    if isinstance(node, Assign | Store):
        update = function_of_update(node)
        return update is not None and not update.vectorizes
    return isinstance(node, Call) or (isinstance(node, Apply) and not c_function(node).vectorizes)


def reductions_of(loop: For, also_complex: bool = False) -> tuple[Reduction, ...] | None:
    """Return the scalars that a loop carries from one iteration to the next; None if one is no
    reduction.

    A reduction is updated with one operator and read by nothing else in the loop. Complex numbers
    count where `also_complex`; vector lanes do not hold them.
    """
    reductions: dict[Var, Reduction] = {}
    read = variables_read(loop.body)
    for stmt in find(loop.body, Assign):
        op = stmt.op
        kind = stmt.var.type.kind
        if (
            op is None
            or op not in _REDUCING["float" if kind == "complex" and also_complex else kind]
        ):
            return None
        reduction = Reduction(op, stmt.var)
        if stmt.var in read or reductions.setdefault(stmt.var, reduction) != reduction:
            return None
    local = declared_vars(loop.body)
    return None if local & reductions.keys() else tuple(reductions.values())


def carried(loop: For) -> tuple[Reduction, ...] | None:
    """Return the reductions of a loop over whose other effects nothing is carried, as its maker
    knows.

    Inner loops may update variables of their own. None where a variable from outside is no
    reduction.
    """
    local = declared_vars(loop.body)
    read = variables_read(loop.body)
    reductions: dict[Var, Reduction] = {}
    for stmt in find(loop.body, Assign):
        if stmt.var in local:
            continue
        op = stmt.op
        if op is None or op not in _REDUCING[stmt.var.type.kind] or stmt.var in read:
            return None
        if reductions.setdefault(stmt.var, Reduction(op, stmt.var)).op != op:
            return None
    return tuple(reductions.values())


# ---------------------------------------------------------------- how places advance


def strides_in(loop: For) -> Strides:
    """Return the stride of each variable of `loop`; None where it is not constant."""
    strides: Strides = dict.fromkeys(assigned_vars(loop.body), None)
    strides[loop.var] = 1
    for stmt in loop.body.body:
        if isinstance(stmt, Declare):
            strides[stmt.var] = stride(stmt.value, strides)
    return strides


def stride(expr: Expr, strides: Strides) -> int | None:
    """Return the stride of `expr` in an iteration; None where it is not constant."""
    match expr:
        case Var():
            return strides.get(expr, 0)
        case Binary(op="+" | "-" | "*" as op, left=left, right=right) if _is_integer(expr):
            return _combine(op, left, right, strides)
        case Cast(type=scalar, operand=operand) if scalar.is_integer and _is_integer(operand):
            return stride(operand, strides)
    operands = (child for child in children(expr) if isinstance(child, Expr))
    return 0 if all(stride(operand, strides) == 0 for operand in operands) else None


def _combine(op: str, left: Expr, right: Expr, strides: Strides) -> int | None:
    one, other = stride(left, strides), stride(right, strides)
    if one is None or other is None:
        return None
    if op == "+":
        return one + other
    if op == "-":
        return one - other
    match left, right:
        case Const(value=factor), _:
            return int(factor.real) * other
        case _, Const(value=factor):
            return int(factor.real) * one
    return 0 if one == other == 0 else None


def _is_integer(expr: Expr) -> bool:
    return type_of(expr).is_integer


@dataclass(frozen=True, slots=True)
class _Access:
    array: Array
    index: Expr


def _accesses_advance(loop: For, strides: Strides) -> bool:
    stores = [_Access(s.array, s.index) for s in find(loop.body, Store)]
    loads = [_Access(e.array, e.index) for e in find(loop.body, Load)]
    stores_of = {access.array: access.index for access in stores}
    if any(stride(access.index, strides) != 1 for access in stores):
        return False
    gathers = any(stride(access.index, strides) not in (0, 1) for access in loads)
    if gathers and not any(c_function(call).is_long for call in find(loop.body, Apply)):
        return False
    return all(
        stores_of.get(access.array, access.index) == access.index for access in stores + loads
    )
