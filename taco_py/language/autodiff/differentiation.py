"""The common base of forward and reverse mode, which add statements to given ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace

from codegen.records import dataclass
from taco_py.language.autodiff.forward_values import mask_factors, where_stored, with_forward_values
from taco_py.language.autodiff.index_names import FreshNames, with_indices
from taco_py.language.autodiff.kinks_in_branches import with_kinks_in_branches
from taco_py.language.autodiff.simplified import simplified
from taco_py.language.diagnostics.errors import DerivativeError
from taco_py.language.notation.checks import accesses, free_indices, operand_names
from taco_py.language.notation.computed_alike import is_computed_alike
from taco_py.language.notation.functions.function_table import EQUAL, WHERE
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import ADD, DIV, MUL
from taco_py.language.notation.rewrites.index_numbers import index_number, index_of, is_size
from taco_py.language.notation.tree import map_accesses, walk

Place = tuple[str, int]
"""A tensor and one of its modes, which has the size of an index; ("", 0) for none."""


@dataclass(slots=True, eq=False)
class Differentiation:
    """Statements and the state of their differentiation.

    outputs     the tensors that are differentiated
    operands    the tensors by which derivatives are taken
    sparse      operands that leave elements out
    dense       operands that store every element
    masks       operands that are 0 where they leave elements out
    conjugates  whether values may be complex
    names       fresh names of tensors and indices
    derivatives statements that compute derivatives, or values that these read
    sizes       scalar operands that hold the size of a mode of a tensor, by name
    active      the tensors that depend on `operands`
    enclosing   the operands that make the visited expression 0 where they store nothing
    """

    statements: Sequence[Assignment]
    outputs: Sequence[str]
    operands: Sequence[str]
    sparse: Collection[str]
    dense: Collection[str] = ()
    masks: Collection[str] = ()
    conjugates: bool = False
    names: FreshNames = field(default_factory=lambda: FreshNames(()))
    derivatives: list[Assignment] = field(default_factory=list)
    sizes: dict[str, Place] = field(default_factory=dict)
    active: frozenset[str] = frozenset()
    enclosing: tuple[Access, ...] = ()

    def begin(self) -> None:
        """Move sums inside functions to separate statements, and find the active tensors."""
        self.names = FreshNames(every_name(self.statements))
        self.statements = tuple(map(self._with_sizes, self.statements))
        self.statements = with_forward_values(self.statements, self.masks, self.names)
        self.statements = with_kinks_in_branches(self.statements)
        self.active = self._active()

    def _with_sizes(self, statement: Assignment) -> Assignment:
        """Replace sizes of indices in a statement by scalar operands."""

        def number(access: Access) -> Expr:
            if not is_size(access):
                return access
            index = index_of(access)
            return self.size(index, place_of(index, statement.value))

        return replace(statement, value=map_accesses(statement.value, number))

    def size(self, index: str, place: Place) -> Access:
        """Return the scalar operand that holds the size of an index. Raises DerivativeError."""
        if not place[0]:
            raise DerivativeError(
                f"Expected an operand with the index {index} alone as a subscript, which says its "
                "size, found none",
                hint="multiply by an operand of that size, as an array of ones",
            )
        name = next((n for n, mode in self.sizes.items() if mode == place), "")
        if not name:
            name = self.names.fresh(f"size_{index}")
            self.sizes[name] = place
        return Access(name, ())

    def _active(self) -> frozenset[str]:
        """Return the tensors that depend on the operands of differentiation."""
        tensors = {*self.operands}
        for statement in self.statements:
            if not tensors.isdisjoint(operand_names(statement)):
                tensors.add(statement.target.tensor)
        return frozenset(tensors)

    def is_active(self, expr: Expr) -> bool:
        return any(access.tensor in self.active for access in accesses(expr))

    def argument(self, call: Call, place: int) -> Expr:
        """Visit an argument: add the other factors of a product to `enclosing`.

        The caller restores `enclosing`.
        """
        if call.operator == MUL:
            other_args = (arg for at, arg in enumerate(call.args) if at != place)
            self.enclosing += tuple(m for arg in other_args for m in mask_factors(arg, self.masks))
        return call.args[place]

    def masks_of(self, expr: Expr) -> tuple[Access, ...]:
        """Return the first enclosing sparse factor whose indices all belong to an expression."""
        free = {*free_indices(expr)}
        return tuple(mask for mask in self.enclosing if {*mask.indices} <= free)[:1]

    @property
    def has_turns(self) -> bool:
        """Tell whether statements may be computed in several calls, of which one scatters."""
        nodes = (node for statement in self.statements for node, _ in walk(statement.value))
        read = any(isinstance(node, Access) and node.subscripts for node in nodes)
        return read or any(statement.target.subscripts for statement in self.statements)

    def define(self, expr: Expr, name: str) -> Access:
        """Add a statement that computes an expression, and return its access."""
        target = Access(self.names.fresh(name), free_indices(expr))
        self.derivatives.append(Assignment(target, expr))
        return target

    def of_reduction(self, expr: Reduce, index: str, body: Expr, derivative: Expr) -> Expr:
        """Return the factor of a reduction's derivative, combined with the given derivative.

        index  the name that the reduction's index has in the body

        Raises DerivativeError where there is none.
        """
        rule = REDUCTIONS.get(expr.operator.name)
        if rule is None:
            raise DerivativeError(
                f"Expected a reduction with a derivative, found {expr.operator.name}",
                expr.span,
                f"reductions with one are {', '.join(REDUCTIONS)}",
            )
        return rule(self, expr, index, body, derivative)


def check_operator(statement: Assignment) -> None:
    """Raise DerivativeError where a statement accumulates by another operator than +."""
    if statement.operator not in (None, ADD):
        raise DerivativeError(
            f"Expected = or += in a statement with a derivative, found {statement.operator}=",
            statement.span,
            "write the whole right-hand side with =",
        )


def place_of(index: str, expr: Expr) -> Place:
    """Return a tensor and its mode that an index runs over; ("", 0) for none."""
    for access in accesses(expr):
        for mode, subscript in enumerate(access.modes):
            if subscript.index == index:
                return access.tensor, mode
    return "", 0


def every_name(statements: Sequence[Assignment]) -> Iterator[str]:
    """Yield the names of tensors and indices."""
    for statement in statements:
        yield statement.target.tensor
        yield from statement.target.indices
        for node, _ in walk(statement.value):
            if isinstance(node, Reduce):
                yield node.index
            if isinstance(node, Access):
                yield node.tensor
                yield from node.indices


# ---------------------------------------------------------------- reductions


def _of_sum(_: Differentiation, expr: Reduce, index: str, body: Expr, derivative: Expr) -> Expr:
    return derivative


def _of_extremum(
    state: Differentiation, expr: Reduce, index: str, body: Expr, derivative: Expr
) -> Expr:
    """Return the derivative, shared by the values that equal the extremum.

    The values are compared with their extremum: where they are rounded, they are computed once and
    stored. Below a sparse factor all of these are computed where the factor stores something.
    """
    masks, inside, at_index = state.masks_of(expr), state.masks_of(expr.body), body
    values, reduced = expr.body, where_stored(expr.body, inside)
    if not is_computed_alike(values, conjugates=state.conjugates):
        values = reduced
        if not inside or {*inside[0].indices} == {*free_indices(values)} or state.has_turns:
            values = reduced = state.define(values, "v")
        at_index = with_indices(values, {expr.index: index})
    extremum = state.define(where_stored(replace(expr, body=reduced), masks), expr.operator.name)
    inner = state.names.fresh(expr.index)
    values_at_inner = with_indices(values, {expr.index: inner})
    equal = Call(WHERE, (Call(EQUAL, (values_at_inner, extremum)), Literal(1.0), Literal(0.0)))
    count = state.define(where_stored(Reduce(ADD, inner, equal), masks), "count")
    share = Call(DIV, (derivative, count))
    return Call(WHERE, (Call(EQUAL, (at_index, extremum)), share, Literal(0)))


def _of_product(
    state: Differentiation, expr: Reduce, index: str, body: Expr, derivative: Expr
) -> Expr:
    """Return the derivative times the product of all other factors, recomputed since one may be
    0."""
    inner = state.names.fresh(expr.index)
    body_at_inner = with_indices(expr.body, {expr.index: inner})
    same = Call(EQUAL, (index_number(inner), index_number(index)))
    other_factors = Reduce(expr.operator, inner, Call(WHERE, (same, Literal(1), body_at_inner)))
    return simplified(Call(MUL, (derivative, other_factors)))


REDUCTIONS: Mapping[str, Callable[[Differentiation, Reduce, str, Expr, Expr], Expr]] = {
    "add": _of_sum,
    "min": _of_extremum,
    "max": _of_extremum,
    "mul": _of_product,
}
"""Derivatives of reductions, by the names of their operators."""
