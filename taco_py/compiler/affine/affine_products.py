"""Statements that add products of two elements, with their factors.

    C[i,j] += alpha * A[i,k] * B[k,j]     left A[i,k], scaled by alpha, right B[k,j]
    A[i,j] -= L[i,k] * U[k,j]             left L[i,k], right U[k,j]; the factor is -1

A factor multiplies the adjacent operand before the other one does, as written. Whether such a
statement runs as a contraction is decided in `polyhedral.programs.program_product`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from codegen.ir import Expr, Unary
from codegen.records import dataclass
from codegen.types import scalar
from polyhedral import model
from taco_py.compiler.affine.lower import Memory, OperandType, value_of
from taco_py.compiler.affine.nodes import Update, subscripts
from taco_py.compiler.affine.statements import Placed
from taco_py.language.notation import nodes
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.dtypes import DType, operand_dtype
from taco_py.language.notation.operators import ADD, MUL, SUB

if TYPE_CHECKING:
    from polyhedral.programs.product_call import ProductArguments
    from polyhedral.programs.program_product import Product


@dataclass(frozen=True, slots=True)
class _Term:
    """`factor * left * right`; the factor, where there is one, multiplies `scaled` first."""

    left: nodes.Access
    right: nodes.Access
    factor: nodes.Expr | None = None
    scaled: nodes.Access | None = None


def products(statements: Iterable[Placed], types: Mapping[str, OperandType]) -> dict[str, Product]:
    """Return the statements that add or subtract products of two elements, all of one floating
    type."""
    from polyhedral.programs.program_product import Product

    dtypes = {name: np.dtype(type.dtype) for name, type in types.items()}
    by_name: dict[str, Product] = {}
    for statement in statements:
        term = _term(statement.update)
        if term is not None and _has_one_type(statement.update, term, dtypes):
            element = scalar(dtypes[statement.update.target.tensor].name)
            scaled = None if term.scaled is None else _access(term.scaled)
            by_name[statement.name] = Product(
                _access(term.left), _access(term.right), element, scaled
            )
    return by_name


def values_of_products(
    statements: Iterable[Placed], memory: Memory, sizes: Mapping[str, Expr]
) -> dict[str, ProductArguments]:
    """Return the arrays of each sum of products, and its factor."""
    from polyhedral.programs.product_call import ProductArguments, Strided

    arrays = {
        name: Strided(data.array, data.strides)
        for name, data in memory.data.items()
        if data.array is not None
    }
    operands: dict[str, ProductArguments] = {}
    for statement in statements:
        term = _term(statement.update)
        if term is not None:
            operands[statement.name] = ProductArguments(
                arrays, _factor(statement.update, term, memory, sizes)
            )
    return operands


def _factor(update: Update, term: _Term, memory: Memory, sizes: Mapping[str, Expr]) -> Expr:
    element = scalar(memory.dtypes[update.target.tensor].name)
    factor = nodes.Literal(1) if term.factor is None else term.factor
    value = value_of(factor, memory, sizes, element)
    return Unary("-", value) if update.operator == SUB else value


def _term(update: Update) -> _Term | None:
    """Return the term of a sum of products; None where the statement is no such sum."""
    match update.value:
        case nodes.Call(operator, (one, other)) if operator == MUL:
            left, right = _scaled(one), _scaled(other)
        case _:
            return None
    if update.operator not in (ADD, SUB) or left is None or right is None:
        return None
    (factor, its), (second, other_access) = left, right
    if factor is not None and second is not None:
        return None
    scaled = its if factor is not None else other_access if second is not None else None
    return _Term(its, other_access, second if factor is None else factor, scaled)


def _scaled(value: nodes.Expr) -> tuple[nodes.Expr | None, nodes.Access] | None:
    """Return `value` as an element, or as a number times an element."""
    match value:
        case nodes.Access():
            pair: tuple[nodes.Expr | None, nodes.Expr] = (None, value)
        case nodes.Call(operator, (one, other)) if operator == MUL:
            pair = (one, other) if _is_number(one) else (other, one)
        case _:
            return None
    number, element = pair
    if not isinstance(element, nodes.Access) or _is_number(element):
        return None
    return (number, element) if number is None or _is_number(number) else None


def _is_number(value: nodes.Expr) -> bool:
    """Tell whether no index is in `value`."""
    return not any(access.indices for access in accesses(value))


def _has_one_type(update: Update, term: _Term, dtypes: Mapping[str, DType]) -> bool:
    """Tell whether all operations are computed in the floating type of the arrays."""
    element = dtypes[update.target.tensor]
    assert update.operator is not None  # a term says so
    call = nodes.Call(update.operator, (update.target, update.value), update.span)
    used = (dtypes[term.left.tensor], dtypes[term.right.tensor], operand_dtype(call, dtypes))
    return element.kind == "f" and all(dtype == element for dtype in used)


def _access(access: nodes.Access) -> model.Access:
    return model.Access(access.tensor, subscripts(access))
