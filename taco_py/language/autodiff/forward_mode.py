"""Forward mode: from statements to statements that compute the tangents of their results.

    y[i] = sum(j, A[i,j] * x[j])    →    t_y[i] = sum(j, t_A[i,j] * x[j] + A[i,j] * t_x[j])

An operator's table entry has the factor of cotangents, which is also that of tangents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from codegen.records import dataclass
from taco_py.language.autodiff.cotangents import cotangent_of, tangent_of
from taco_py.language.autodiff.differentiation import Differentiation, Place, check_operator
from taco_py.language.autodiff.index_names import with_indices
from taco_py.language.autodiff.sides import NO_SIDES, Sides, compares_order, sides_below
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.functions.function_table import OR, WHERE
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Reduce
from taco_py.language.notation.operators import ADD, COMPILER


@dataclass(frozen=True, slots=True, eq=False)
class Tangents:
    """The statements that compute tangents.

    statements  of values, then of tangents
    seeds       the names of the tangents of operands, by operand
    tangents    the name of the tangent of each output, None where it is 0
    names       the names of all tangents that are not 0, by tensor
    sizes       scalar operands that hold the size of a mode of a tensor, by name
    """

    statements: tuple[Assignment, ...]
    seeds: Mapping[str, str]
    tangents: Mapping[str, str | None]
    sizes: Mapping[str, Place]
    names: Mapping[str, str]


@dataclass(slots=True, eq=False)
class Forwarder(Differentiation):
    """Forward traversal of the statements; `tangents` has the names of tangents by tensor."""

    tangents: dict[str, str] = field(default_factory=dict)

    def forward(self) -> Tangents:
        """Build the statements. Raises DerivativeError."""
        self.begin()
        seeds = {name: self.names.fresh(f"t_{name}") for name in self.operands}
        self.tangents = dict(seeds)
        for statement in self.statements:
            self._advance(statement)
        tangents = {name: self.tangents.get(name) for name in self.outputs}
        return Tangents(
            (*self.statements, *self.derivatives), seeds, tangents, self.sizes, dict(self.tangents)
        )

    def _advance(self, statement: Assignment) -> None:
        """Add the statement that computes the tangent of a statement's result, unless it is 0."""
        name = statement.target.tensor
        if name not in self.active:
            return
        check_operator(statement)
        tangent = self._tangent(statement.value)
        before = self.tangents.get(name) if statement.operator is not None else None
        if tangent is None:
            return
        tangent_name = before or self.names.fresh(f"t_{name}")
        adds = ADD if before or statement.target.subscripts else None
        tangent = _sized_like(tangent, statement)
        self.derivatives.append(
            Assignment(replace(statement.target, tensor=tangent_name), tangent, adds)
        )
        self.tangents[name] = tangent_name

    def _tangent(self, expr: Expr, sides: Sides = NO_SIDES) -> Expr | None:
        """Return the tangent of an expression, None where it is 0."""
        if isinstance(expr, Access):
            name = None if expr.is_number else self.tangents.get(expr.tensor)
            return None if name is None else replace(expr, tensor=name)
        if isinstance(expr, Reduce) and self.is_active(expr):
            return self._of_reduction(expr)
        if isinstance(expr, Call):
            return self._of_call(expr, sides)
        return None

    def _of_call(self, expr: Call, sides: Sides) -> Expr | None:
        """Return the sum of the terms that the arguments' tangents contribute."""
        total: Expr | None = None
        joint = compares_order(expr) and self.is_active(expr.args[0])
        for place, arg in enumerate(expr.args):
            before = self.enclosing
            argument_sides = sides_below(expr, place, sides)
            inside = self.argument(expr, place)
            below = self._tangent(inside, argument_sides) if self.is_active(arg) else None
            self.enclosing = before
            if below is None:
                continue
            tied = joint and place > 0
            rule = tangent_of if self.conjugates else _real_tangent
            term = rule(expr, place, below, tied, sides)
            if term is not None:
                total = term if total is None else Call(ADD, (total, term))
        return total

    def _of_reduction(self, expr: Reduce) -> Expr | None:
        index = self.names.fresh(expr.index)
        body = with_indices(expr.body, {expr.index: index})
        below = self._tangent(body)
        if below is None:
            return None
        return Reduce(ADD, index, self.of_reduction(expr, index, body, below))


def _sized_like(tangent: Expr, statement: Assignment) -> Expr:
    """Let a tangent read operands that have the sizes of the target's indices.

    C[i,j] = a[i] + b[j]    →    t_C[i,j] = where(stored(b[j]), t_a[i], t_a[i])
    """
    target_indices = {*statement.target.indices}
    sized = {index for access in _plain(tangent) for index in access.indices}
    for access in _plain(statement.value):
        if not target_indices.intersection(access.indices) - sized:
            continue
        sized.update(access.indices)
        condition: Expr = Call(COMPILER["stored"], (access,))
        for index in access.indices:
            if index not in target_indices:
                condition = Reduce(OR, index, condition)
        tangent = Call(WHERE, (condition, tangent, tangent))
    return tangent


def _plain(expr: Expr) -> list[Access]:
    """Return the accesses whose subscripts are indices."""
    return [access for access in accesses(expr) if not access.is_number and not access.subscripts]


def _real_tangent(call: Call, place: int, tangent: Expr, joint: bool, sides: Sides) -> Expr | None:
    return cotangent_of(call, place, tangent, False, joint, sides)
