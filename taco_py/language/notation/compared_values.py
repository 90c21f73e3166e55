"""Values that are searched among others: comparisons of an expression with itself.

    sum(k, U[u,k] * Y[i,k]) == max(j, sum(k, U[u,k] * Y[j,k]))    the sum, at i and at some j
    e[i,j] < e[i,k]                                              e, at j and at k

Two kernels, or two loops of one, may round an expression differently. Where a comparison looks up
the element that a number was taken from, both sides have to be the same number: computed once and
stored. An expression that is rounded at most once has the same value in every kernel
(`notation.computed_alike`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import count, permutations

from codegen.records import dataclass
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.computed_alike import is_computed_alike
from taco_py.language.notation.dtypes import DType
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Reduce
from taco_py.language.notation.operators import MUL, PRESENT, STORED
from taco_py.language.notation.tree import children, map_children, walk

Form = tuple[Expr, tuple[str, ...]]
"""An expression with indices named by first use, and the original names of its free indices."""
SELECT_FIRST = frozenset(("filled", "kept", "position", "value", "wrapped"))
"""The compiler's internal operators whose value is their first argument, or a number."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Expressions that are compared with themselves.

    forms    of expressions that have to be computed once
    tensors  that have to be stored instead of being recomputed where they are read
    """

    forms: frozenset[Expr]
    tensors: frozenset[str]


def form_of(expr: Expr) -> Form:
    """Name the indices of an expression by first use, so that renamed expressions have equal forms.

    A[u,k] * B[k]  →  A[0,1] * B[1], (u, k)
    """
    names: dict[str, str] = {}
    numbers = count()

    def free(index: str) -> str:
        return names.setdefault(index, f"{next(numbers)}")

    return _canonical_names(expr, free, numbers, {}), tuple(names)


def _canonical_names(
    expr: Expr, free: Callable[[str], str], numbers: Iterator[int], bound: Mapping[str, str]
) -> Expr:
    """Rename bound indices to fresh numbers, and free indices by `free`."""
    if isinstance(expr, Access):
        indices = (bound[i] if i in bound else free(i) for i in expr.indices)
        return replace(expr, indices=tuple(indices))
    if isinstance(expr, Reduce):
        name = f"{next(numbers)}b"
        body = _canonical_names(expr.body, free, numbers, {**bound, expr.index: name})
        return replace(expr, index=name, body=body)
    return map_children(expr, lambda child: _canonical_names(child, free, numbers, bound))


def compared(assignments: Sequence[Assignment], dtypes: Mapping[str, DType]) -> Compared:
    """Find the expressions that assignments compare with themselves.

    dtypes  of all tensors; an assignment may read the results of those before it
    """
    search = _Search({}, dtypes)
    for assignment in assignments:
        search.look_through(assignment.value)
        if assignment.operator is None:
            search.values[assignment.target.tensor] = assignment
    return Compared(frozenset(search.forms), frozenset(search.tensors))


@dataclass(slots=True, eq=False)
class _Search:
    """The state of the search; `values` has the assignments by the tensors that they compute."""

    values: dict[str, Assignment]
    dtypes: Mapping[str, DType]
    forms: set[Expr] = field(default_factory=set)
    tensors: set[str] = field(default_factory=set)
    fresh: Iterator[int] = field(default_factory=count)

    def look_through(self, expr: Expr) -> None:
        """Search each comparison in an expression."""
        for node, _ in walk(expr):
            if isinstance(node, Call) and node.operator.compares:
                one, other = node.args
                if one != other:  # x != x tests for NaN
                    self._match(one, other)

    def _match(self, one: Expr, other: Expr) -> None:
        """Record each expression from which both sides of a comparison may take their value."""
        if not (accesses(one) and accesses(other)):
            return
        ours, theirs = self._selected(one), self._selected(other)
        shared = ours.keys() & theirs.keys()
        for side, other_side in ((one, theirs), (other, ours)):
            largest = self._selected(side, shared)
            for form in largest.keys() & other_side.keys():
                self._note(largest[form], form)

    def _selected(self, expr: Expr, atomic: Collection[Expr] = ()) -> dict[Expr, Expr]:
        """Return an expression and the parts that it selects its value from, by their forms.

        atomic  forms that are not searched further
        """
        parts: dict[Expr, Expr] = {}
        pending = [expr]
        while pending:
            part = pending.pop()
            form, _ = form_of(part)
            if form not in parts:
                parts[form] = part
                if form not in atomic:
                    pending += self._one_of(part)
        return parts

    def _one_of(self, expr: Expr) -> Iterable[Expr]:
        if isinstance(expr, Reduce):
            return (expr.body,) if expr.operator.limit else ()
        if isinstance(expr, Access):
            statement = self.values.get(expr.tensor)
            return () if statement is None or expr.subscripts else (self._value(statement, expr),)
        if not isinstance(expr, Call):
            return ()
        operator = expr.operator
        if operator.chooses or operator.name == "selected":
            return expr.args[1:]
        if operator.limit or operator.name in ("fmin", "fmax"):
            return expr.args
        if operator == MUL:
            return (b for a, b in permutations(expr.args) if _is_truth(a))
        return expr.args[:1] if operator.name in SELECT_FIRST else ()

    def _value(self, assignment: Assignment, access: Access) -> Expr:
        """Return the expression assigned to a tensor, at the indices of an access."""
        names = dict(zip(assignment.target.indices, access.indices, strict=True))
        numbers = (f"{next(self.fresh)} within" for _ in count())  # unlike any other name
        return _renamed(assignment.value, names, numbers)

    def _note(self, expr: Expr, form: Expr) -> None:
        """Record that an expression is compared with itself."""
        if not is_computed_alike(expr, self.dtypes):
            self.forms.add(form)
            return
        for access in accesses(expr):
            statement = self.values.get(access.tensor)
            if statement is not None and not isinstance(statement.value, Access):
                self.tensors.add(access.tensor)


def _is_truth(expr: Expr) -> bool:
    """Tell whether an expression tests storage; a product with it is the other factor, or 0."""
    return isinstance(expr, Call) and expr.operator in (STORED, PRESENT)


def _renamed(expr: Expr, names: Mapping[str, str], numbers: Iterator[str]) -> Expr:
    """Rename free indices of an expression by `names`, bound indices to fresh names."""
    if isinstance(expr, Access):
        return replace(expr, indices=tuple(names.get(i, i) for i in expr.indices))
    if isinstance(expr, Reduce):
        name = next(numbers)
        body = _renamed(expr.body, {**names, expr.index: name}, numbers)
        return replace(expr, index=name, body=body)
    return map_children(expr, lambda child: _renamed(child, names, numbers))


def occurrences(expr: Expr, forms: frozenset[Expr]) -> Iterator[tuple[Expr, Form]]:
    """Yield the largest parts of an expression that have one of the forms, with their forms."""
    if isinstance(expr, Call | Reduce):
        form = form_of(expr)
        if form[0] in forms:
            yield expr, form
            return
    for child in children(expr):
        yield from occurrences(child, forms)
