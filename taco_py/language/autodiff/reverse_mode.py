"""Reverse mode: from statements to statements that compute the cotangents of their operands.

    y[i] = sum(j, A[i,j] * x[j])    →    d_A[i,j] = stored(A[i,j]) * (d_y[i] * x[j])
                                         d_x[j] = sum(i, d_y[i] * A[i,j])

The cotangent of a sparse operand is computed where the operand stores something, that of one at
subscripts too: it begins with zeros of its pattern. A minimum or
maximum shares its cotangent among the values that equal it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from functools import reduce as fold

from codegen.records import dataclass
from taco_py.language.autodiff.cotangents import cotangent_of
from taco_py.language.autodiff.differentiation import (
    Differentiation,
    Place,
    check_operator,
    place_of,
)
from taco_py.language.autodiff.index_names import with_indices
from taco_py.language.autodiff.sides import NO_SIDES, Sides, compares_order, sides_below
from taco_py.language.notation.checks import accesses, free_indices, unique
from taco_py.language.notation.functions.function_table import EQUAL, WHERE
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import ADD, COMPILER, MUL
from taco_py.language.notation.rewrites.index_numbers import index_number
from taco_py.language.notation.tree import children


@dataclass(frozen=True, slots=True)
class Contribution:
    """The term that one access of an operand adds to its cotangent.

    value  over the indices of the access and others, which are summed
    scope  the indices of the sums around the access, each with a tensor and a mode of its size
    """

    access: Access
    value: Expr
    scope: Mapping[str, Place] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Cotangents:
    """The statements that compute cotangents.

    statements  of values, then of cotangents
    seeds       the names of the cotangents of outputs, by output
    cotangents  the name of the cotangent of each operand, None where it is 0
    scattered   cotangents that are added to an operand of zeros, by the name of the operand
    sizes       scalar operands that hold the size of a mode of a tensor, by name
    """

    statements: tuple[Assignment, ...]
    seeds: Mapping[str, str]
    cotangents: Mapping[str, str | None]
    scattered: Mapping[str, str]
    sizes: Mapping[str, Place]


@dataclass(slots=True, eq=False)
class Reverser(Differentiation):
    """Reverse traversal of the statements.

    contributions  the terms of the cotangent of each tensor
    scattered      cotangents that are added to zeros, by the operand of their shape
    scope          the indices of the sums around the visited expression
    seeds          the names of the cotangents of outputs
    seeded         the outputs whose seed was added
    """

    contributions: dict[str, list[Contribution]] = field(default_factory=dict)
    scattered: dict[str, str] = field(default_factory=dict)
    scope: dict[str, Place] = field(default_factory=dict)
    seeds: dict[str, str] = field(default_factory=dict)
    seeded: set[str] = field(default_factory=set)

    def cotangents(self) -> Cotangents:
        """Build the statements. Raises DerivativeError."""
        self.begin()
        self.seeds = {name: self.names.fresh(f"d_{name}") for name in self.outputs}
        for statement in reversed(self.statements):
            self._reverse(statement)
        cotangents = {name: self._sum_up(name) for name in self.operands}
        statements = (*self.statements, *self.derivatives)
        return Cotangents(statements, self.seeds, cotangents, self.scattered, self.sizes)

    def _reverse(self, statement: Assignment) -> None:
        """Add the contributions of a statement to the cotangents of its operands."""
        target = statement.target
        name = target.tensor
        if name not in self.active:
            return
        check_operator(statement)
        terms = self.contributions.setdefault(name, [])
        if name in self.seeds and name not in self.seeded:
            self.seeded.add(name)
            full_access = self._target(target)
            terms.append(Contribution(full_access, replace(full_access, tensor=self.seeds[name])))
        cotangent = self._sum_up(name)
        if cotangent is None:
            return
        if statement.operator is not None:  # the earlier value has the same cotangent
            full_access = self._target(target)
            self.contributions[name] = [
                Contribution(full_access, replace(full_access, tensor=cotangent))
            ]
        seed = replace(target, tensor=cotangent)
        for contribution in self._contributions(statement.value, seed):
            self.contributions.setdefault(contribution.access.tensor, []).append(contribution)

    # ------------------------------------------------------------ down an expression

    def _contributions(
        self, expr: Expr, cotangent: Expr, sides: Sides = NO_SIDES
    ) -> Iterator[Contribution]:
        """Yield the contributions of the accesses in an expression with a cotangent."""
        if isinstance(expr, Access):
            if not expr.is_number and expr.tensor in self.active:
                yield Contribution(expr, cotangent, dict(self.scope))
        elif isinstance(expr, Reduce) and self.is_active(expr):
            yield from self._of_reduction(expr, cotangent)
        elif isinstance(expr, Call):
            joint = compares_order(expr) and self.is_active(expr.args[0])
            for place, arg in enumerate(expr.args):
                if self.is_active(arg):
                    is_branch = joint and place > 0
                    below = cotangent_of(expr, place, cotangent, self.conjugates, is_branch, sides)
                    if below is not None:
                        before = self.enclosing
                        argument_sides = sides_below(expr, place, sides)
                        inside = self.argument(expr, place)
                        yield from self._contributions(inside, below, argument_sides)
                        self.enclosing = before

    def _of_reduction(self, expr: Reduce, cotangent: Expr) -> Iterator[Contribution]:
        """Yield the contributions of a reduction's body, whose index gets a fresh name."""
        index = self.names.fresh(expr.index)
        body = with_indices(expr.body, {expr.index: index})
        below = self.of_reduction(expr, index, body, cotangent)
        self.scope[index] = place_of(index, body)
        yield from self._contributions(body, below)
        del self.scope[index]

    # ------------------------------------------------------------ up again

    def _sum_up(self, name: str) -> str | None:
        """Add the statements of a cotangent from its contributions; return its name, None without
        any."""
        contributions = self.contributions.pop(name, [])
        if not contributions:
            return None
        if (
            len(contributions) == 1
            and _is_full_tensor(contributions[0])
            and name not in self.sparse
        ):
            assert isinstance(contributions[0].value, Access)
            return contributions[0].value.tensor
        target = self._target(contributions[0].access)
        cotangent = self.names.fresh(f"d_{name}")
        plain = [
            contribution for contribution in contributions if not contribution.access.subscripts
        ]
        rest = [contribution for contribution in contributions if contribution.access.subscripts]
        if plain:
            terms = [
                self._placed(contribution, target, name in self.sparse) for contribution in plain
            ]
            value = fold(lambda one, other: Call(ADD, (one, other)), terms)
            self.derivatives.append(Assignment(replace(target, tensor=cotangent), value))
        elif rest:
            self.scattered[cotangent] = name
        for contribution in rest:
            self.derivatives.append(self._scatter(contribution, cotangent, name in self.sparse))
        return cotangent

    def _target(self, access: Access) -> Access:
        """Return an access of the same tensor with a distinct index for each mode."""
        names = (mode.index or "m" for mode in access.modes)
        return Access(access.tensor, tuple(map(self.names.fresh, names)))

    def _placed(self, contribution: Contribution, target: Access, sparse: bool) -> Expr:
        """Return a contribution at the indices of the cotangent, summed over the others."""
        access = contribution.access
        names: dict[str, str] = {}
        conditions: list[Expr] = []
        for index, mode in zip(access.indices, target.indices, strict=True):
            if index in names:
                equal = Call(EQUAL, (index_number(names[index]), index_number(mode)))
                conditions.append(equal)
            else:
                names[index] = mode
        value = with_indices(self._summed(contribution), names)
        for condition in conditions:
            value = Call(WHERE, (condition, value, Literal(0)))
        dense = {*self.dense, *self.seeds.values()}
        if sparse and not {a.tensor for a in accesses(value)} <= dense:
            value = Call(COMPILER["value"], (value,))  # all of the pattern, if it has less
        if sparse or not {*target.indices} <= {*_sized(value)}:
            stored = Call(COMPILER["stored"], (replace(target, tensor=access.tensor),))
            value = Call(MUL, (stored, value))
        return value

    def _summed(self, contribution: Contribution) -> Expr:
        """Sum the value over the indices that the access lacks.

        Multiply by the size of an index of an enclosing sum that the value does not depend on.
        """
        value, access_indices = contribution.value, contribution.access.indices
        free = free_indices(value)
        for index, place in contribution.scope.items():
            if index not in free and index not in access_indices:
                value = Call(MUL, (value, self.size(index, place)))
        for index in reversed([index for index in free if index not in access_indices]):
            value = Reduce(ADD, index, value)
        return value

    def _scatter(self, contribution: Contribution, cotangent: str, sparse: bool) -> Assignment:
        """Return the statement that adds a contribution at the positions of its subscripts.

        d_A[p[i],j] += stored(A[p[i],j]) * d_C[i,j]    of C[i,j] = A[p[i],j], A sparse
        """
        access, value = contribution.access, self._summed(contribution)
        if sparse:
            value = Call(MUL, (Call(COMPILER["stored"], (access,)), value))
        return Assignment(replace(access, tensor=cotangent), value, ADD)


def _is_full_tensor(contribution: Contribution) -> bool:
    """Tell whether a contribution is a full tensor with the same modes."""
    access, value = contribution.access, contribution.value
    if not isinstance(value, Access) or access.subscripts or value.subscripts:
        return False
    distinct = len({*access.indices}) == len(access.indices)
    return distinct and value.indices == access.indices and not contribution.scope


def _sized(expr: Expr) -> tuple[str, ...]:
    """Return the free indices of an expression whose sizes its tensors determine."""
    if isinstance(expr, Access) and expr.is_number:
        return ()
    below = unique(index for child in children(expr) for index in _sized(child))
    if isinstance(expr, Access):
        return unique(mode.index for mode in expr.modes if mode.index is not None)
    return tuple(i for i in below if i != expr.index) if isinstance(expr, Reduce) else below
