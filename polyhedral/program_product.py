"""Which statements of a nest run as products of matrices, in packed blocks and register tiles.

    S: C[i, j] += alpha * A[i, k] * B[k, j]     for i in 0..N, j in 1..M, k in 0..K

is a contraction of the part of C at [0, 1] with N rows and M - 1 columns. It may run as one where

- its loops make a box: no bound or guard has the index of another loop;
- each subscript is one loop and an offset, and of the three classes none is empty;
- no other statement shares its band of loops, so that all of it runs before what comes later;
- of its instances, only those depend on each other that add to one element: then any order will do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

from codegen.types import ScalarType
from polyhedral.affine import Affine, affine, variable
from polyhedral.contraction import Contraction, contraction
from polyhedral.contraction_plan import ContractionPlan, plan_contraction
from polyhedral.isl.held import Held
from polyhedral.model import Access, Loop, Mode, Statement
from polyhedral.register_tile import Machine

LEAST = 8
"""Rows, columns and depth from which on copies and register tiles pay."""


@dataclass(frozen=True, slots=True)
class Product:
    """That a statement adds `left * right` to its target, or subtracts it, all of one type.

    scaled  the operand that a factor multiplies first, where there is a factor
    """

    left: Access
    right: Access
    element: ScalarType
    scaled: Access | None = None


@dataclass(frozen=True, slots=True)
class ProductPlan:
    """How a statement runs as a contraction.

    loops     its loops, a box
    uses      its target, left and right, with the offsets that the contraction is without
    threaded  whether threads may share it
    """

    statement: str
    loops: tuple[Loop, ...]
    uses: tuple[Access, Access, Access]
    contraction: ContractionPlan
    element: ScalarType
    threaded: bool

    @property
    def reasons(self) -> tuple[str, ...]:
        _, left, right = self.uses
        head = f"{self.statement}: contraction of {left} and {right}, added to what is there"
        return (head, *(f"  {line}" for line in str(self.contraction).splitlines()))


def plan_product(
    held: Held,
    statement: Statement,
    product: Product,
    values: Mapping[str, int],
    machine: Machine,
    threaded: bool,
) -> ProductPlan | None:
    """The plan of a statement that has its band of loops for itself, for parameters about
    `values`; None where it is no contraction, or too small for one."""
    loops, found = box(statement), as_contraction(statement, product)
    if loops is None or found is None or not _in_any_order(held, statement):
        return None
    extents = _extents(loops, values)
    sizes = [prod(extents[x] for x in loops) for loops in (found.rows, found.columns, found.depth)]
    if min(sizes) < LEAST:
        return None
    plan = plan_contraction(found, machine, extents)
    left, right = product.left, product.right
    if _plain(left, statement) != found.left:
        left, right = right, left
    uses = (statement.accesses[0], left, right)
    return ProductPlan(statement.name, loops, uses, plan, product.element, threaded)


def as_contraction(statement: Statement, product: Product) -> Contraction | None:
    """`statement` as a contraction of a box at the origin."""
    uses = (statement.accesses[0], product.left, product.right)
    if not all(_is_simple(use, statement) for use in uses):
        return None
    plain = (_plain(use, statement) for use in uses)
    loops = tuple(Loop(x, (affine(0),), (variable(f"n_{x}"),)) for x in statement.variables)
    found = contraction(Statement(statement.name, loops, tuple(plain), (0,) * (len(loops) + 1)))
    if found is None or found.batch or not (found.rows and found.columns and found.depth):
        return None
    scaled = None if product.scaled is None else _plain(product.scaled, statement)
    return found if scaled in (None, found.left) else None


def box(statement: Statement) -> tuple[Loop, ...] | None:
    """The loops of `statement` where none has another one's index in its bounds; guards of one
    loop each are bounds of it."""
    loops = {loop.name: loop for loop in statement.loops}
    for guard in statement.guards:
        used = [name for name in guard.names if name in loops]
        if len(used) != 1 or abs(guard.coefficient(used[0])) != 1:
            return None
        loops[used[0]] = _guarded(loops[used[0]], guard)
    bounds = (bound for loop in loops.values() for bound in (*loop.lower, *loop.upper))
    free = not any(loops.keys() & set(bound.names) for bound in bounds)
    return tuple(loops.values()) if free else None


def _guarded(loop: Loop, guard: Affine) -> Loop:
    """`loop` where `guard`, in which its index has the factor 1 or -1, is 0 or more."""
    factor = guard.coefficient(loop.name)
    rest = guard - variable(loop.name) * factor
    if factor == 1:
        return replace(loop, lower=(*loop.lower, -rest))
    return replace(loop, upper=(*loop.upper, rest + 1))


def _extents(loops: tuple[Loop, ...], values: Mapping[str, int]) -> dict[str, int]:
    """The length of each loop of a box."""
    return {
        loop.name: min(bound.evaluate(values) for bound in loop.upper)
        - max(bound.evaluate(values) for bound in loop.lower)
        for loop in loops
    }


def loop_of(subscript: Affine, statement: Statement) -> str | None:
    """The loop that `subscript` advances with."""
    return next((name for name in subscript.names if name in statement.variables), None)


def _is_simple(access: Access, statement: Statement) -> bool:
    """Whether each subscript is at most one loop, another for each, and an offset."""
    inner = set(statement.variables)
    used = [inner & set(subscript.names) for subscript in access.subscripts]
    loops = [name for names in used for name in names]
    alone = all(len(names) < 2 for names in used) and len(set(loops)) == len(loops)
    return alone and all(
        subscript.coefficient(name) == 1
        for subscript, names in zip(access.subscripts, used, strict=True)
        for name in names
    )


def _plain(access: Access, statement: Statement) -> Access:
    """`access` without offsets: the loops of its subscripts alone."""
    loops = (loop_of(subscript, statement) for subscript in access.subscripts)
    subscripts = tuple(variable(loop) for loop in loops if loop is not None)
    return Access(access.array, subscripts, access.mode, access.operator)


def _in_any_order(held: Held, statement: Statement) -> bool:
    """Whether instances of `statement` depend on each other in sums only."""
    target = held.names.nest.statement(statement.name).accesses[0]
    return (
        target.mode is Mode.UPDATE
        and target.operator == "+"
        and not any(
            each.source.name == each.sink.name == statement.name and not each.commuting
            for each in held.dependents
        )
    )
