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
    told: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Factor:
    """A factor that is computed, the type that it has by itself, and its product's."""

    expr: Expr
    own: DType
    whole: DType

    @property
    def may_widen(self) -> bool:
        return sum_may_widen(self.own, self.whole) and (rounds(self.own) or not _differs(self.expr))


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Read operands in the type of the products that sums of them are factors of."""
    new = widened(program.last, program.facts)
    why = "\n".join((*new.told, *new.left))
    if not why and new.operands == program.facts:
        return None
    return Rewrite(program.with_facts(new.operands), why)


def widened(assignment: Assignment, operands: Mapping[str, Operand]) -> Widened:
    """Return the operands as they are read where sums in products are computed in the products'
    type."""
    dtypes = {name: np.dtype(operand.type.dtype) for name, operand in operands.items()}
    factors = tuple(_factors(assignment.value, dtypes))
    if not factors and not _mixes(assignment.value, dtypes):
        return Widened(operands)
    reading = _Reading(dtypes)
    reading.visit(assignment.value, None)
    new = {n: t for n, t in reading.types if not operands[n].type.stored and t != dtypes[n]}
    known = {**operands, **{name: _read_as(operands[name], type) for name, type in new.items()}}
    after = {**dtypes, **new}
    told = (_told(f, new) for f in factors if expression_dtype(f.expr, after) == f.whole)
    left = (_left(f) for f in factors if expression_dtype(f.expr, after) != f.whole)
    return Widened(known, tuple(dict.fromkeys(told)), tuple(dict.fromkeys(left)))


def _factors(expr: Expr, dtypes: Mapping[str, DType]) -> Iterator[_Factor]:
    """Yield the factors of real products that are computed themselves, in another type; where any
    index is summed around or inside them, for else there are no loops to be saved."""
    summed = (t.body for t in split_terms(expr) if t.reduced or any(reductions(t.body)))
    for node, _ in chain.from_iterable(map(walk, summed)):
        if not isinstance(node, Call) or node.operator.additive or not any(node.operator.linear):
            continue
        whole = operand_dtype(node, dtypes)
        for arg, linear in zip(node.args, node.operator.linear, strict=False):
            if linear and is_real(whole) and _computes(arg):
                own = expression_dtype(arg, dtypes)
                if own != whole:
                    yield _Factor(arg, own, whole)


def _mixes(expr: Expr, dtypes: Mapping[str, DType]) -> bool:
    """Tell whether there is a product of several real operands and of one of another type, which it
    converts anyway: by themselves, two of these would be multiplied in a type of their own."""
    for term in split_terms(expr):
        product = as_product(term.body, dtypes)
        if product is not None and len(product.factors) > 2 and term.reduced:
            types = {dtypes[f.tensor] for f in product.factors if isinstance(f, Access)}
            if len(types) > 1:
                return True
    return False


def _computes(expr: Expr) -> bool:
    """Tell whether a factor adds up or multiplies more than one operand."""
    return any(
        isinstance(n, Reduce)
        or (is_additive(n) and free_indices(n))
        or sum(bool(free_indices(child)) for child in children(n)) > 1
        for n, _ in walk(expr)
    )


def _differs(expr: Expr) -> bool:
    """Tell whether anything is subtracted in an expression, as far as its text says."""
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
        """Yield the operands that have one type wherever they are used, and that type."""
        for name, found in self.uses.items():
            if len(found) == 1:
                (only,) = found
                yield name, only

    def visit(self, expr: Expr, wanted: DType | None) -> None:
        """Note the uses below an expression, whose value may be computed in the type `wanted`."""
        match expr:
            case Access():
                self.uses.setdefault(expr.tensor, set()).add(wanted or self.dtypes[expr.tensor])
            case Reduce(operator, _, body):
                self.visit(body, wanted if operator.additive and self._may(body, wanted) else None)
            case Call():
                self._visit_call(expr, wanted)

    def _may(self, expr: Expr, wanted: DType | None) -> bool:
        """Tell whether sums of an expression may be of the type `wanted`."""
        return wanted is not None and sum_may_widen(expression_dtype(expr, self.dtypes), wanted)

    def _visit_call(self, call: Call, wanted: DType | None) -> None:
        own = operand_dtype(call, self.dtypes)
        if wanted is not None and (own == wanted or not sum_may_widen(own, wanted)):
            wanted = None
        operator = call.operator
        for arg, linear in zip_longest(call.args, operator.linear[: operator.arity]):
            if isinstance(arg, Access):
                direct = wanted if wanted is not None and (linear or operator.additive) else own
                self.visit(
                    arg, direct if converts_on_reading(self.dtypes[arg.tensor], direct) else None
                )
            elif wanted is not None and (linear or operator.additive):
                self.visit(arg, wanted)
            else:
                self.visit(arg, self._inside(arg, own) if linear else None)

    def _inside(self, arg: Expr, own: DType) -> DType | None:
        """Return the type of a product, for one of its factors that may be computed in it."""
        if not is_real(own) or is_weak(arg):
            return None
        factor = _Factor(arg, expression_dtype(arg, self.dtypes), own)
        return own if factor.own != own and factor.may_widen else None


def _read_as(operand: Operand, type: DType) -> Operand:
    return replace(operand, type=operand.type.read_as(type.name))


def _told(factor: _Factor, new: Mapping[str, DType]) -> str:
    names = dict.fromkeys(a.tensor for a in accesses(factor.expr) if a.tensor in new)
    return (
        f"{to_text(factor.expr)} is computed in {factor.whole} like the product that it is a "
        f"factor of, with {', '.join(names)} read as {factor.whole}"
    )


def _left(factor: _Factor) -> str:
    return (
        f"{to_text(factor.expr)} is computed in {factor.own} by itself, as it is written, and then "
        f'multiplied in {factor.whole}; dtype="{factor.whole}" computes all in one type, in '
        "whatever order is cheaper"
    )


RULE = Rule(
    "widen_sums",
    Phase.FORMS,
    apply,
    result,
    Numbers.WIDER_TYPE,
    traits=Trait.SUMS | Trait.FACTORS | Trait.TYPES,
)
