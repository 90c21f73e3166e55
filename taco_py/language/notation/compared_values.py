"""Values that are looked for among others: comparisons of an expression with itself.

    sum(k, U[u,k] * Y[i,k]) == max(j, sum(k, U[u,k] * Y[j,k]))    the sum, at i and at some j
    e[i,j] < e[i,k]                                              e, at j and at k

Two kernels, or two loops of one, round an expression in two ways. Where a comparison asks which
element a number was taken from, both have to be the same number: computed once, and stored. What
rounds nothing, or once, is the same wherever it is computed (`notation.computed_alike`).
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
"""An expression with its indices named by their first use, and the names that free ones have."""
SELECT_FIRST = frozenset(("filled", "kept", "value", "wrapped"))
"""The compiler's own operators that are their first argument, or a number."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What is compared with itself.

    forms    of expressions that are to be computed once
    tensors  that are to be stored, not computed where they are read
    """

    forms: frozenset[Expr]
    tensors: frozenset[str]


def form_of(expr: Expr) -> Form:
    """Name the indices of an expression by their first use; equal forms are equal but for names.

    A[u,k] * B[k]  →  A[0,1] * B[1], (u, k)
    """
    names: dict[str, str] = {}
    numbers = count()

    def free(index: str) -> str:
        return names.setdefault(index, f"{next(numbers)}")

    return _named(expr, free, numbers, {}), tuple(names)


def _named(
    expr: Expr, free: Callable[[str], str], numbers: Iterator[int], bound: Mapping[str, str]
) -> Expr:
    """Return the expression with names for bound indices that nothing has, and others for free
    ones."""
    if isinstance(expr, Access):
        indices = (bound[i] if i in bound else free(i) for i in expr.indices)
        return replace(expr, indices=tuple(indices))
    if isinstance(expr, Reduce):
        name = f"{next(numbers)}b"
        body = _named(expr.body, free, numbers, {**bound, expr.index: name})
        return replace(expr, index=name, body=body)
    return map_children(expr, lambda child: _named(child, free, numbers, bound))


def compared(assignments: Sequence[Assignment], dtypes: Mapping[str, DType]) -> Compared:
    """Find what assignments, each of which may read what those before it make, compare with itself.

    dtypes  of all tensors
    """
    found = _Search({}, dtypes)
    for each in assignments:
        found.look_through(each.value)
        if each.operator is None:
            found.values[each.target.tensor] = each
    return Compared(frozenset(found.forms), frozenset(found.tensors))


@dataclass(slots=True, eq=False)
class _Search:
    """What was found; `values` has the assignments by the tensors that they make."""

    values: dict[str, Assignment]
    dtypes: Mapping[str, DType]
    forms: set[Expr] = field(default_factory=set)
    tensors: set[str] = field(default_factory=set)
    fresh: Iterator[int] = field(default_factory=count)

    def look_through(self, expr: Expr) -> None:
        """Look at each comparison in an expression."""
        for node, _ in walk(expr):
            if isinstance(node, Call) and node.operator.compares:
                one, other = node.args
                if one != other:  # which asks for NaN
                    self._match(one, other)

    def _match(self, one: Expr, other: Expr) -> None:
        """Note each expression that both sides may have their value from."""
        if not (accesses(one) and accesses(other)):
            return
        ours, theirs = self._selected(one), self._selected(other)
        both = ours.keys() & theirs.keys()
        for side, others in ((one, theirs), (other, ours)):
            largest = self._selected(side, both)
            for form in largest.keys() & others.keys():
                self._note(largest[form], form)

    def _selected(self, expr: Expr, whole: Collection[Expr] = ()) -> dict[Expr, Expr]:
        """Return an expression, and those that its value is one of, by their forms.

        whole  forms that are not looked into
        """
        found: dict[Expr, Expr] = {}
        pending = [expr]
        while pending:
            each = pending.pop()
            form, _ = form_of(each)
            if form not in found:
                found[form] = each
                if form not in whole:
                    pending += self._one_of(each)
        return found

    def _one_of(self, expr: Expr) -> Iterable[Expr]:
        if isinstance(expr, Reduce):
            return (expr.body,) if expr.operator.limit else ()
        if isinstance(expr, Access):
            own = self.values.get(expr.tensor)
            return () if own is None or expr.subscripts else (self._value(own, expr),)
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

    def _value(self, own: Assignment, access: Access) -> Expr:
        """What is assigned to a tensor, at the indices of an access."""
        names = dict(zip(own.target.indices, access.indices, strict=True))
        numbers = (f"{next(self.fresh)} within" for _ in count())  # apart from all others
        return _renamed(own.value, names, numbers)

    def _note(self, expr: Expr, form: Expr) -> None:
        """Note that an expression is compared with itself."""
        if not is_computed_alike(expr, self.dtypes):
            self.forms.add(form)
            return
        for access in accesses(expr):
            own = self.values.get(access.tensor)
            if own is not None and not isinstance(own.value, Access):
                self.tensors.add(access.tensor)


def _is_truth(expr: Expr) -> bool:
    """Tell whether an expression asks what is stored: times that, a value is itself, or 0."""
    return isinstance(expr, Call) and expr.operator in (STORED, PRESENT)


def _renamed(expr: Expr, names: Mapping[str, str], numbers: Iterator[str]) -> Expr:
    """Return the expression with other free indices, its bound ones named anew."""
    if isinstance(expr, Access):
        return replace(expr, indices=tuple(names.get(i, i) for i in expr.indices))
    if isinstance(expr, Reduce):
        name = next(numbers)
        body = _renamed(expr.body, {**names, expr.index: name}, numbers)
        return replace(expr, index=name, body=body)
    return map_children(expr, lambda child: _renamed(child, names, numbers))


def occurrences(expr: Expr, forms: frozenset[Expr]) -> Iterator[tuple[Expr, Form]]:
    """Find the largest parts of an expression that have one of the forms, with their forms."""
    if isinstance(expr, Call | Reduce):
        form = form_of(expr)
        if form[0] in forms:
            yield expr, form
            return
    for child in children(expr):
        yield from occurrences(child, forms)
