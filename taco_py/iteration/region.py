"""Iteration regions: the coordinates of one index at which an expression can differ from zero.

A region is a set expression over the coordinate sets of sparse levels. It follows from operator
algebra alone (Henry, Hsu et al. 2021): an operand whose fill value annihilates the operator
intersects, any other one unites.

    region of A[i,j] * (B[i,j] + C[i,j]) at j, all compressed:   A ∩ (B ∪ C)
    region of A[i,j] + b[i] at j:                                everything
"""

from __future__ import annotations

from collections.abc import Iterator as Iterable
from collections.abc import Mapping
from dataclasses import field, replace
from typing import assert_never

from codegen.records import dataclass
from taco_py.concrete.nodes import Assign, Forall, Sequence, Statement, Where, WorkspaceKind
from taco_py.notation.nodes import Access, Call, Expr, Literal, Reduce
from taco_py.notation.operators import Operator


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
    """∩ with the trivial cases removed."""
    if isinstance(left, Nothing) or isinstance(right, Nothing):
        return Nothing()
    if isinstance(left, Everything):
        return right
    if isinstance(right, Everything) or left == right:
        return left
    return Intersection(left, right)


def unite(left: Region, right: Region) -> Region:
    """∪ with the trivial cases removed; `everything ∪ A` stays: it tells where A is present."""
    if isinstance(left, Nothing):
        return right
    if isinstance(right, Nothing) or left == right:
        return left
    return Union(left, right)


@dataclass(frozen=True, slots=True)
class Regions:
    """Computes regions of expressions and statements at one index.

    levels  for each access, the iterator of each of its indices that a sparse level stores
    absent  accesses known to be zero here
    made    scalar workspaces, each with the region of its producer along the index in question
    """

    levels: Mapping[Access, Mapping[str, Iterator]]
    absent: frozenset[Access]
    made: Mapping[Access, Region] = field(default_factory=dict)

    def expression(self, expr: Expr, index: str) -> Region:
        """Where `expr` may differ from zero along `index`."""
        match expr:
            case Access():
                if expr in self.absent:
                    return Nothing()
                if expr in self.made:
                    return self.made[expr]
                iterator = self.levels.get(expr, {}).get(index)
                return Everything() if iterator is None else Coordinates(iterator)
            case Literal(value):
                return Nothing() if value == 0 else Everything()
            case Call(operator, args):
                return combine(operator, tuple(self.expression(arg, index) for arg in args))
            case Reduce(_, _, body):
                return self.expression(body, index)
            case _:
                assert_never(expr)

    def statement(self, statement: Statement, index: str) -> Region:
        """Where `statement` has something to do along `index`."""
        match statement:
            case Assign(_, value):
                return self.expression(value, index)
            case Forall(_, body):
                return self.statement(body, index)
            case Sequence(statements):
                region: Region = Nothing()
                for part in statements:
                    region = unite(region, self.statement(part, index))
                return region
            case Where(workspace, consumer, producer):
                if workspace.kind is not WorkspaceKind.SCALAR and index in workspace.indices:
                    return self.statement(consumer, index)
                region = self.statement(producer, index)
                made = {**self.made, workspace.access: region}
                return replace(self, made=made).statement(consumer, index)
            case _:
                assert_never(statement)

    def reads(self, statement: Statement, workspace: Access) -> bool:
        """Whether `statement` depends on `workspace`, which an absent operand may annihilate."""
        mark = Coordinates(Iterator(workspace, -1))
        known = replace(self, made={**self.made, workspace: mark})
        return mark in _parts(known.statement(statement, ""))

    def is_absent(self, expr: Expr) -> bool:
        """Whether `expr` is zero because of the absent accesses."""
        return isinstance(self.expression(expr, ""), Nothing)


def _parts(region: Region) -> Iterable[Region]:
    yield region
    if isinstance(region, Intersection | Union):
        yield from _parts(region.left)
        yield from _parts(region.right)


def look_out(region: Region) -> Region:
    """Everything, while `region` still tells where its iterators are: `everything ∪ region`."""
    if isinstance(region, Nothing | Everything):
        return Everything()
    return unite(Everything(), region)


def combine(operator: Operator, regions: tuple[Region, ...]) -> Region:
    """The region of `operator` over operands with these regions, whose fill value is zero.

    An annihilating operand restricts the result to its own region; the others are looked out for
    there. Without one, the region is the union of all regions, provided that the operator of zeros
    alone is zero; otherwise everything.
    """
    annihilators = operator.annihilators[: operator.arity]
    restricts = [a is not None and a == 0 for a in annihilators]
    if any(restricts):
        region: Region = Everything()
        for other, restricting in zip(regions, restricts, strict=True):
            region = intersect(region, other if restricting else look_out(other))
        return region
    zeros = operator.evaluate(*(0,) * operator.arity)
    region = Nothing() if zeros == 0 else Everything()
    for other in regions:
        region = unite(region, other)
    return region
