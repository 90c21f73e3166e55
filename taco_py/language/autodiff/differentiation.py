"""What forward and reverse mode share: statements that are made beside those that are there."""

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
"""A tensor and a mode of it, which has the size of an index; ("", 0) where there is none."""


@dataclass(slots=True, eq=False)
class Differentiation:
    """Statements whose derivatives are made.

    outputs     their results
    wanted      the operands by which derivatives are taken
    sparse      operands that leave elements out
    dense       operands that do not
    masks       of those that leave elements out the ones that are 0 there
    conjugates  whether values may be complex
    names       of what is made
    made        statements that compute derivatives, or what these read
    sizes       numbers that are passed: the size of a mode of a tensor, by name
    active      the tensors that depend on what is wanted
    around      the operands that make what is looked at 0 where they store nothing
    """

    statements: Sequence[Assignment]
    outputs: Sequence[str]
    wanted: Sequence[str]
    sparse: Collection[str]
    dense: Collection[str] = ()
    masks: Collection[str] = ()
    conjugates: bool = False
    names: FreshNames = field(default_factory=lambda: FreshNames(()))
    made: list[Assignment] = field(default_factory=list)
    sizes: dict[str, Place] = field(default_factory=dict)
    active: frozenset[str] = frozenset()
    around: tuple[Access, ...] = ()

    def begin(self) -> None:
        """Give sums inside functions statements of their own, and see which tensors matter."""
        self.names = FreshNames(every_name(self.statements))
        self.statements = tuple(map(self._with_sizes, self.statements))
        self.statements = with_forward_values(self.statements, self.masks, self.names)
        self.statements = with_kinks_in_branches(self.statements)
        self.active = self._active()

    def _with_sizes(self, statement: Assignment) -> Assignment:
        """Return a statement with numbers that are passed in the place of sizes of indices."""

        def number(access: Access) -> Expr:
            if not is_size(access):
                return access
            index = index_of(access)
            return self.size(index, place_of(index, statement.value))

        return replace(statement, value=map_accesses(statement.value, number))

    def size(self, index: str, place: Place) -> Access:
        """Return the size of an index, as a number that is passed. Raises DerivativeError."""
        if not place[0]:
            raise DerivativeError(
                f"Expected an operand with the index {index} alone as a subscript, which says its "
                "size, found none",
                hint="multiply by an operand of that size, as an array of ones",
            )
        name = next((n for n, each in self.sizes.items() if each == place), "")
        if not name:
            name = self.names.fresh(f"size_{index}")
            self.sizes[name] = place
        return Access(name, ())

    def _active(self) -> frozenset[str]:
        """Return the tensors that depend on what is wanted."""
        found = {*self.wanted}
        for each in self.statements:
            if not found.isdisjoint(operand_names(each)):
                found.add(each.target.tensor)
        return frozenset(found)

    def is_active(self, expr: Expr) -> bool:
        return any(each.tensor in self.active for each in accesses(expr))

    def argument(self, call: Call, place: int) -> Expr:
        """Look at an argument, around which the other factors of a product are; the caller puts
        `around` back."""
        if call.operator == MUL:
            others = (arg for at, arg in enumerate(call.args) if at != place)
            self.around += tuple(m for arg in others for m in mask_factors(arg, self.masks))
        return call.args[place]

    def masks_of(self, expr: Expr) -> tuple[Access, ...]:
        """Return the sparse factor around what is looked at that has indices of an expression
        alone."""
        free = {*free_indices(expr)}
        return tuple(mask for mask in self.around if {*mask.indices} <= free)[:1]

    @property
    def has_turns(self) -> bool:
        """Tell whether statements may be computed in several calls, one of which scatters."""
        nodes = (node for each in self.statements for node, _ in walk(each.value))
        read = any(isinstance(node, Access) and node.subscripts for node in nodes)
        return read or any(each.target.subscripts for each in self.statements)

    def define(self, expr: Expr, name: str) -> Access:
        """Make a statement for a value, and return its access."""
        target = Access(self.names.fresh(name), free_indices(expr))
        self.made.append(Assignment(target, expr))
        return target

    def of_reduction(self, expr: Reduce, index: str, body: Expr, derivative: Expr) -> Expr:
        """What the derivative of a reduction's body is multiplied by, or that of the reduction.

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
    """Return a tensor and its mode that an index runs over; ("", 0) where there is none."""
    for access in accesses(expr):
        for mode, subscript in enumerate(access.modes):
            if subscript.index == index:
                return access.tensor, mode
    return "", 0


def every_name(statements: Sequence[Assignment]) -> Iterator[str]:
    """Yield the names of tensors and indices."""
    for each in statements:
        yield each.target.tensor
        yield from each.target.indices
        for node, _ in walk(each.value):
            if isinstance(node, Reduce):
                yield node.index
            if isinstance(node, Access):
                yield node.tensor
                yield from node.indices


# ---------------------------------------------------------------- reductions


def _of_sum(_: Differentiation, expr: Reduce, index: str, body: Expr, derivative: Expr) -> Expr:
    return derivative


def _of_extremum(
    made: Differentiation, expr: Reduce, index: str, body: Expr, derivative: Expr
) -> Expr:
    """Return the derivative, shared by the values that equal the extremum.

    They are compared with what was taken from them: where computing them rounds, they are computed
    once. Below a sparse factor all of that is taken where the factor stores something.
    """
    masks, inside, at_index = made.masks_of(expr), made.masks_of(expr.body), body
    values, reduced = expr.body, where_stored(expr.body, inside)
    if not is_computed_alike(values, conjugates=made.conjugates):
        values = reduced
        if not inside or {*inside[0].indices} == {*free_indices(values)} or made.has_turns:
            values = reduced = made.define(values, "v")
        at_index = with_indices(values, {expr.index: index})
    extremum = made.define(where_stored(replace(expr, body=reduced), masks), expr.operator.name)
    inner = made.names.fresh(expr.index)
    own = with_indices(values, {expr.index: inner})
    equal = Call(WHERE, (Call(EQUAL, (own, extremum)), Literal(1.0), Literal(0.0)))
    count = made.define(where_stored(Reduce(ADD, inner, equal), masks), "count")
    share = Call(DIV, (derivative, count))
    return Call(WHERE, (Call(EQUAL, (at_index, extremum)), share, Literal(0)))


def _of_product(
    made: Differentiation, expr: Reduce, index: str, body: Expr, derivative: Expr
) -> Expr:
    """Return the derivative times all other factors, which are multiplied anew: one may be 0."""
    inner = made.names.fresh(expr.index)
    own = with_indices(expr.body, {expr.index: inner})
    same = Call(EQUAL, (index_number(inner), index_number(index)))
    others = Reduce(expr.operator, inner, Call(WHERE, (same, Literal(1), own)))
    return simplified(Call(MUL, (derivative, others)))


REDUCTIONS: Mapping[str, Callable[[Differentiation, Reduce, str, Expr, Expr], Expr]] = {
    "add": _of_sum,
    "min": _of_extremum,
    "max": _of_extremum,
    "mul": _of_product,
}
"""By the names of operators that reduce."""
