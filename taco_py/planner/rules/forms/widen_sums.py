"""Widen sums inside products of real numbers: compute them in the products' type.

    y[i] = sum(k, sum(j, A[i,j] * B[j,k]) * x[k])    A and B of int64, x of float64
    → the same with A and B read as float64, which may then be A·(B·x)

Kernels convert the values as they read them (`TensorType.stored`), as with `dtype="float64"`: pairs
of operands, sums multiplied out and temporaries are then free to choose, for all has one type.

A sum of float32 is so rounded at fewer places. One of 64-bit integers differs where it passes 2^53,
which the product would round it to, or 2^63, where it would wrap. A difference of them is computed
as it is written: it may be small where both of its parts are not. So is what narrower integers add
up and multiply, which wraps as NumPy's does for numbers that are in use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from itertools import chain, zip_longest

import numpy as np

from codegen.records import dataclass
from taco_py.compiler.concrete.terms import reductions, split_terms
from taco_py.language.legal.types import converts_on_reading, is_real, rounds, sum_may_widen
from taco_py.language.notation.checks import accesses, free_indices
from taco_py.language.notation.dtypes import DType, expression_dtype, is_weak, operand_dtype
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Literal, Reduce
from taco_py.language.notation.printer import to_text
from taco_py.language.notation.tree import children, is_additive, walk
from taco_py.planner.algebra.products import as_product
from taco_py.planner.context import Context
from taco_py.planner.ir.nodes import Operand
from taco_py.planner.ir.program import Program
from taco_py.planner.rules.base import Numbers, Outcome, Phase, Rewrite, Rule, Site, Trait, result


@dataclass(frozen=True, slots=True)
class Widened:
    """Operands by name, some read in another type, and what to tell of it.

    left  the sums that are computed in a type of their own, as they are written, and the remedy
    """

    operands: Mapping[str, Operand]
    notes: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Factor:
    """A factor that is computed, the type that it has by itself, and its product's."""

    expr: Expr
    dtype: DType
    product_dtype: DType

    @property
    def may_widen(self) -> bool:
        return sum_may_widen(self.dtype, self.product_dtype) and (
            rounds(self.dtype) or not _differs(self.expr)
        )


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Read operands in the type of the products that sums of them are factors of."""
    new = widened(program.last, program.facts)
    reason = "\n".join((*new.notes, *new.left))
    if not reason and new.operands == program.facts:
        return None
    return Rewrite(program.with_facts(new.operands), reason)


def widened(assignment: Assignment, operands: Mapping[str, Operand]) -> Widened:
    """Return the operands as they are read where inner sums use the type of their products."""
    dtypes = {name: np.dtype(operand.type.dtype) for name, operand in operands.items()}
    factors = tuple(_factors(assignment.value, dtypes))
    if not factors and not _mixes(assignment.value, dtypes):
        return Widened(operands)
    reading = _Reading(dtypes)
    reading.visit(assignment.value, None)
    new = {n: t for n, t in reading.types if not operands[n].type.stored and t != dtypes[n]}
    widened_operands = {
        **operands,
        **{name: _read_as(operands[name], type) for name, type in new.items()},
    }
    after = {**dtypes, **new}
    notes = (
        _describe(f, new) for f in factors if expression_dtype(f.expr, after) == f.product_dtype
    )
    left = (_left(f) for f in factors if expression_dtype(f.expr, after) != f.product_dtype)
    return Widened(widened_operands, tuple(dict.fromkeys(notes)), tuple(dict.fromkeys(left)))


def _factors(expr: Expr, dtypes: Mapping[str, DType]) -> Iterator[_Factor]:
    """Yield the computed factors of real products whose own type differs from the product's."""
    summed = (t.body for t in split_terms(expr) if t.reduced or any(reductions(t.body)))
    for node, _ in chain.from_iterable(map(walk, summed)):
        if not isinstance(node, Call) or node.operator.additive or not any(node.operator.linear):
            continue
        product_dtype = operand_dtype(node, dtypes)
        for arg, linear in zip(node.args, node.operator.linear, strict=False):
            if linear and is_real(product_dtype) and _computes(arg):
                dtype = expression_dtype(arg, dtypes)
                if dtype != product_dtype:
                    yield _Factor(arg, dtype, product_dtype)


def _mixes(expr: Expr, dtypes: Mapping[str, DType]) -> bool:
    """Tell whether a product has several real operands and one of another type."""
    for term in split_terms(expr):
        product = as_product(term.body, dtypes)
        if product is not None and len(product.factors) > 2 and term.reduced:
            types = {dtypes[f.tensor] for f in product.factors if isinstance(f, Access)}
            if len(types) > 1:
                return True
    return False


def _computes(expr: Expr) -> bool:
    """Tell whether a factor adds up or multiplies several operands."""
    return any(
        isinstance(n, Reduce)
        or (is_additive(n) and free_indices(n))
        or sum(bool(free_indices(child)) for child in children(n)) > 1
        for n, _ in walk(expr)
    )


def _differs(expr: Expr) -> bool:
    """Tell whether the text of an expression subtracts anything."""
    return any(
        (isinstance(n, Call) and min(n.operator.signs, default=1) < 0)
        or (isinstance(n, Literal) and not isinstance(n.value, complex) and n.value < 0)
        for n, _ in walk(expr)
    )


@dataclass(slots=True)
class _Reading:
    """The types in which each operand may be read where it is used."""

    dtypes: Mapping[str, DType]
    uses: dict[str, set[DType]] = field(default_factory=dict)

    @property
    def types(self) -> Iterator[tuple[str, DType]]:
        """Yield the operands that have one type in all of their uses, and this type."""
        for name, dtypes in self.uses.items():
            if len(dtypes) == 1:
                (only,) = dtypes
                yield name, only

    def visit(self, expr: Expr, dtype: DType | None) -> None:
        """Note the uses below an expression, whose value may be computed in the type `dtype`."""
        match expr:
            case Access():
                self.uses.setdefault(expr.tensor, set()).add(dtype or self.dtypes[expr.tensor])
            case Reduce(operator, _, body):
                self.visit(body, dtype if operator.additive and self._may(body, dtype) else None)
            case Call():
                self._visit_call(expr, dtype)

    def _may(self, expr: Expr, dtype: DType | None) -> bool:
        """Tell whether sums of an expression may be of the type `dtype`."""
        return dtype is not None and sum_may_widen(expression_dtype(expr, self.dtypes), dtype)

    def _visit_call(self, call: Call, dtype: DType | None) -> None:
        call_dtype = operand_dtype(call, self.dtypes)
        if dtype is not None and (call_dtype == dtype or not sum_may_widen(call_dtype, dtype)):
            dtype = None
        operator = call.operator
        for arg, linear in zip_longest(call.args, operator.linear[: operator.arity]):
            if isinstance(arg, Access):
                direct = (
                    dtype if dtype is not None and (linear or operator.additive) else call_dtype
                )
                self.visit(
                    arg, direct if converts_on_reading(self.dtypes[arg.tensor], direct) else None
                )
            elif dtype is not None and (linear or operator.additive):
                self.visit(arg, dtype)
            else:
                self.visit(arg, self._inside(arg, call_dtype) if linear else None)

    def _inside(self, arg: Expr, product_dtype: DType) -> DType | None:
        """Return the product's type for a factor that may be computed in it; None for others."""
        if not is_real(product_dtype) or is_weak(arg):
            return None
        factor = _Factor(arg, expression_dtype(arg, self.dtypes), product_dtype)
        return product_dtype if factor.dtype != product_dtype and factor.may_widen else None


def _read_as(operand: Operand, type: DType) -> Operand:
    return replace(operand, type=operand.type.read_as(type.name))


def _describe(factor: _Factor, new: Mapping[str, DType]) -> str:
    names = dict.fromkeys(a.tensor for a in accesses(factor.expr) if a.tensor in new)
    return (
        f"{to_text(factor.expr)} is computed in {factor.product_dtype} like the product that it "
        f"is a factor of, with {', '.join(names)} read as {factor.product_dtype}"
    )


def _left(factor: _Factor) -> str:
    return (
        f"{to_text(factor.expr)} is computed in {factor.dtype} by itself, as it is written, and "
        f"then multiplied in {factor.product_dtype}; "
        f'dtype="{factor.product_dtype}" computes all in one '
        "type, in whatever order is cheaper"
    )


RULE = Rule(
    "widen_sums",
    Phase.FORMS,
    apply,
    result,
    Numbers.WIDER_TYPE,
    traits=Trait.SUMS | Trait.FACTORS | Trait.TYPES,
)
