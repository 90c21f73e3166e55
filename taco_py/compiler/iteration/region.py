"""Iteration regions: the coordinates of one index at which an expression can differ from its fill.

A region is a set expression over the coordinate sets of sparse levels. It follows from operator
algebra alone (Henry, Hsu et al. 2021): an operand whose fill value annihilates the operator
intersects, any other one unites.

    region of A[i,j] * (B[i,j] + C[i,j]) at j, all compressed:   A ∩ (B ∪ C), fill 0
    region of exp(A[i,j]) at j:                                  A, fill 1
    region of A[i,j] + b[i] at j:                                everything

A statement has something to do where its value differs from what its target holds already: zero, or
what its operator makes no difference to.
"""

from __future__ import annotations

from collections.abc import Iterator as Iterable
from collections.abc import Mapping
from dataclasses import field, replace
from functools import reduce
from typing import assert_never

from codegen.records import dataclass
from taco_py.compiler.concrete.nodes import (
    Assign,
    Forall,
    Sequence,
    Statement,
    Where,
    Workspace,
)
from taco_py.language.legal.absent import (
    arg_fill,
    call_fill,
    differing,
    operator_of,
    reduced_fill,
    same,
)
from taco_py.language.notation.nodes import Access, Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import Number, Operator


@dataclass(frozen=True, slots=True)
class Iterator:
    """The sparse level number `level` of `access`, which stores coordinates of one index."""

    access: Access
    level: int

    def __str__(self) -> str:
        return f"{self.access.tensor}{self.level + 1}"


@dataclass(frozen=True, slots=True)
class Everything:
    """All coordinates of the dimension."""

    def __str__(self) -> str:
        return "all"


@dataclass(frozen=True, slots=True)
class Nothing:
    """No coordinate."""

    def __str__(self) -> str:
        return "none"


@dataclass(frozen=True, slots=True)
class Coordinates:
    """The coordinates that an iterator meets."""

    iterator: Iterator

    def __str__(self) -> str:
        return str(self.iterator)


@dataclass(frozen=True, slots=True)
class Intersection:
    left: Region
    right: Region

    def __str__(self) -> str:
        return f"({self.left} ∩ {self.right})"


@dataclass(frozen=True, slots=True)
class Union:
    left: Region
    right: Region

    def __str__(self) -> str:
        return f"({self.left} ∪ {self.right})"


Region = Everything | Nothing | Coordinates | Intersection | Union


def intersect(left: Region, right: Region) -> Region:
    """Return `left ∩ right`, with the trivial cases removed."""
    if isinstance(left, Nothing) or isinstance(right, Nothing):
        return Nothing()
    if isinstance(left, Everything):
        return right
    if isinstance(right, Everything) or left == right:
        return left
    return Intersection(left, right)


def unite(left: Region, right: Region) -> Region:
    """Return `left ∪ right`, with the trivial cases removed; `everything ∪ A` stays: it tells
    where A is present."""
    if isinstance(left, Nothing):
        return right
    if isinstance(right, Nothing) or left == right:
        return left
    return Union(left, right)


@dataclass(frozen=True, slots=True)
class Regions:
    """Computes regions of expressions and statements at one index.

    levels   for each access, the iterator of each of its indices that a sparse level stores
    absent   accesses known to be not stored here
    scalars  scalar workspaces, each with the region of its producer along the index in question
    initial  initial values of workspaces and the result, where not zero, by their names
    """

    levels: Mapping[Access, Mapping[str, Iterator]]
    absent: frozenset[Access]
    scalars: Mapping[Access, Region] = field(default_factory=dict)
    initial: dict[str, Number] = field(default_factory=dict)

    def expression(self, expr: Expr, index: str, nothing: Number = 0) -> Region:
        """Return where `expr` may differ from `nothing` along `index`."""
        region, fill = self._visit(expr, index)
        return region if same(fill, nothing) or fill is None else unite(Everything(), region)

    def _visit(self, expr: Expr, index: str) -> tuple[Region, Number | None]:
        """Return where `expr` may differ from its fill value, and that fill value."""
        match expr:
            case Access():
                return self._access(expr, index), self._fill(expr)
            case Literal(value):
                return Nothing(), value
            case Call(operator, args):
                visited = [self._argument(operator, arg, index) for arg in args]
                fills = tuple(fill for _, fill in visited)
                operator = operator_of(expr)
                region = combine(operator, tuple(region for region, _ in visited), fills)
                fill = call_fill(operator, fills)
                alone = fill is None and None not in fills
                return (look_out(region) if alone else region), fill
            case Reduce(operator, _, body):
                region, fill = self._visit(body, index)
                result_fill = reduced_fill(operator, fill)
                return (
                    Everything() if fill is not None and result_fill is None else region
                ), result_fill
            case _:
                assert_never(expr)

    def _argument(self, operator: Operator, arg: Expr, index: str) -> tuple[Region, Number | None]:
        region, arg_value = self._visit(arg, index)
        fill = arg_fill(operator, arg, arg_value)
        return (region if fill is not None or arg_value is None else Everything()), fill

    def _access(self, access: Access, index: str) -> Region:
        if access in self.absent:
            return Nothing()
        if access in self.scalars:
            return self.scalars[access]
        iterator = self.levels.get(access, {}).get(index)
        return Everything() if iterator is None else Coordinates(iterator)

    def _fill(self, access: Access) -> Number | None:
        """Return the value of an access where it is not stored; None where it is always stored."""
        has_fill = access in self.absent or access in self.scalars or self.levels.get(access)
        return self.initial.get(access.tensor, 0) if has_fill else None

    def statement(self, statement: Statement, index: str) -> Region:
        """Return the coordinates of `index` at which `statement` has something to do."""
        match statement:
            case Assign(target, value):
                return self.expression(value, index, self.initial.get(target.tensor, 0))
            case Forall(_, body):
                return self.statement(body, index)
            case Sequence(statements):
                region: Region = Nothing()
                for part in statements:
                    region = unite(region, self.statement(part, index))
                return region
            case Where(workspace, consumer, producer):
                if not workspace.is_number and index in workspace.indices:
                    return self.statement(consumer, index)
                regions = self
                if workspace.initial != 0:
                    initial = {**self.initial, workspace.name: workspace.initial}
                    regions = replace(self, initial=initial)
                reduced = regions._reduced(workspace, producer, index)
                if reduced is None:
                    region = regions.statement(producer, index)
                else:
                    region, fill = reduced
                    regions = replace(regions, initial={**regions.initial, workspace.name: fill})
                scalars = {**self.scalars, workspace.access: region}
                return replace(regions, scalars=scalars).statement(consumer, index)
            case _:
                assert_never(statement)

    def _reduced(
        self, workspace: Workspace, producer: Statement, index: str
    ) -> tuple[Region, Number] | None:
        """Return where a reduction may differ from a reduction of absent elements, and the latter.

        t, from -inf; forall i: t max= x[j] * D[i,k]    →    x along j, 0

        None where the loops of the producer are over the index in question, and where the value
        depends on the number of elements or is what the workspace begins with.
        """
        while isinstance(producer, Forall):
            if producer.index == index:
                return None
            producer = producer.body
        if not isinstance(producer, Assign) or producer.operator is None:
            return None
        if producer.target != workspace.access:
            return None
        region, fill = self._visit(producer.value, index)
        result_fill = reduced_fill(producer.operator, fill)
        return (
            None
            if result_fill is None or same(result_fill, workspace.initial)
            else (region, result_fill)
        )

    def reads(self, statement: Statement, workspace: Access) -> bool:
        """Tell whether `statement` depends on `workspace`, which an absent operand may
        annihilate."""
        mark = Coordinates(Iterator(workspace, -1))
        marked = replace(self, scalars={**self.scalars, workspace: mark})
        return mark in _parts(marked.statement(statement, ""))

    def is_absent(self, expr: Expr, nothing: Number = 0) -> bool:
        """Tell whether `expr` is `nothing` because of the absent accesses."""
        return isinstance(self.expression(expr, "", nothing), Nothing)

    def fill(self, expr: Expr) -> Number | None:
        """Return the value of `expr` where none of its operands stores anything."""
        return self._visit(expr, "")[1]

    def constant(self, expr: Expr) -> Number | None:
        """Return the fill value of `expr` if the absent accesses make it that here, else None."""
        region, fill = self._visit(expr, "")
        return fill if isinstance(region, Nothing) else None


def _parts(region: Region) -> Iterable[Region]:
    yield region
    if isinstance(region, Intersection | Union):
        yield from _parts(region.left)
        yield from _parts(region.right)


def look_out(region: Region) -> Region:
    """Return `everything ∪ region`: all coordinates, while the region's iterators are still
    known."""
    if isinstance(region, Nothing | Everything):
        return Everything()
    return unite(Everything(), region)


def combine(
    operator: Operator, regions: tuple[Region, ...], fills: tuple[Number | None, ...]
) -> Region:
    """Return the region of `operator` over operands with these regions and fill values.

    The intersection of the unions that `legal.absent.differing` groups. Operands that are in no
    group are looked out for there.
    """
    if operator.everywhere:
        return look_out(regions[0])
    groups = differing(operator, fills)
    parts = {group[0]: reduce(unite, (regions[place] for place in group)) for group in groups}
    for place in {*range(len(regions))}.difference(*groups):
        parts[place] = look_out(regions[place])
    return reduce(intersect, (parts[place] for place in sorted(parts)))
