"""Which statements of a nest run as products of matrices, in packed blocks and register tiles.

    S: C[i, j] += alpha * A[i, k] * B[k, j]     for i in 0..N, j in 1..M, k in 0..K

is a contraction of the part of C at [0, 1] with N rows and M - 1 columns. It may run as one where

- its loops make a box, where no bound or guard has the index of another loop; or a triangle in the
  result, where one has (polyhedral.programs.program_triangle);
- each subscript is one loop and an offset, and of the three classes none is empty;
- no other statement shares its band of loops, so that all of it runs before what comes later;
- of its instances, only those depend on each other that add to one element: then any order will do.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from math import ceil, prod

from codegen.records import dataclass
from codegen.types import ScalarType
from polyhedral.affine import Affine, affine, variable
from polyhedral.isl.held import Held
from polyhedral.model import Access, Loop, Mode, Statement
from polyhedral.products.contraction import Contraction, contraction
from polyhedral.products.contraction_plan import ContractionPlan, plan_contraction
from polyhedral.products.register_tile import Machine

EDGE = 96
"""The height of the strips that cut a triangle into rectangles and small triangles."""
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
class Region:
    """Loops that make a box; or a triangle, in which the bounds of `cut` advance with `strip`."""

    loops: tuple[Loop, ...]
    strip: str | None = None
    cut: str | None = None

    def loop(self, name: str | None) -> Loop:
        return next(each for each in self.loops if each.name == name)


@dataclass(frozen=True, slots=True)
class ProductPlan:
    """How a statement runs as a contraction.

    region    its loops
    uses      its target, left and right, with the offsets that the contraction is without
    threaded  whether threads may share it
    edge      height of the strips of a triangle
    """

    statement: str
    region: Region
    uses: tuple[Access, Access, Access]
    contraction: ContractionPlan
    element: ScalarType
    threaded: bool
    edge: int

    @property
    def outline(self) -> str:
        """What runs, whatever the sizes are."""
        _, left, right = self.uses
        head = f"{self.statement}: contraction of {left} and {right}, added to what is there"
        if self.region.strip is not None:
            head += f"; {self.edge} of {self.region.strip} at a time, their corner apart"
        return f"{head}\n  {self.contraction.shape}"

    @property
    def reasons(self) -> tuple[str, ...]:
        return (*self.outline.splitlines(), *(f"    {line}" for line in self.contraction.reasons))

    @property
    def kernel_key(self) -> str:
        """What of the plan decides the loops: all but the reasons, which tell of sizes."""
        return repr(replace(self, contraction=replace(self.contraction, reasons=())))


def plan_product(
    held: Held,
    statement: Statement,
    product: Product,
    values: Mapping[str, int],
    machine: Machine,
    threaded: bool,
) -> ProductPlan | None:
    """Return the plan of a statement that has its band of loops for itself, for parameters about
    `values`; None where it is no contraction, or too small for one."""
    where, found = region(statement), as_contraction(statement, product)
    if where is None or found is None or not _in_any_order(held, statement):
        return None
    extents = _extents(where, values)
    if not (_pays(found, extents) and _suits(found, where, extents)):
        return None
    inside, times = _pieces(where, extents)
    plan = plan_contraction(found, machine, inside, times=times)
    left, right = product.left, product.right
    if _plain(left, statement) != found.left:
        left, right = right, left
    uses = (statement.accesses[0], left, right)
    return ProductPlan(statement.name, where, uses, plan, product.element, threaded, EDGE)


def _pieces(where: Region, extents: Mapping[str, int]) -> tuple[Mapping[str, int], int]:
    """Return the extents of a product that runs as a whole, and how many of those there are: in a
    triangle one for each strip, on the average half as long as the longest."""
    if where.strip is None or where.cut is None:
        return extents, 1
    half = ceil(extents[where.cut] / 2)
    strip = {where.strip: min(EDGE, extents[where.strip]), where.cut: half}
    return {**extents, **strip}, ceil(extents[where.strip] / EDGE)


def _pays(found: Contraction, extents: Mapping[str, int]) -> bool:
    classes = (found.rows, found.columns, found.depth)
    return min(prod(extents[x] for x in loops) for loops in classes) >= LEAST


def _suits(found: Contraction, region: Region, extents: Mapping[str, int]) -> bool:
    """Tell whether a triangle lies in the result, of one loop a class, and is several strips
    high."""
    if region.strip is None:
        return True
    plain = (region.strip, region.cut) in (
        (found.rows[0], found.columns[0]), (found.columns[0], found.rows[0])
    )  # fmt: skip
    high = min(extents[x] for x in (region.strip, region.cut) if x) >= 2 * EDGE
    return plain and high and len(found.statement.loops) == 3


def as_contraction(statement: Statement, product: Product) -> Contraction | None:
    """Return `statement` as a contraction of a box at the origin."""
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


def region(statement: Statement) -> Region | None:
    """Where `statement` runs, as a box or a triangle; guards of one loop each are bounds of it."""
    loops = {loop.name: loop for loop in statement.loops}
    for guard in statement.guards:
        used = [name for name in guard.names if name in loops]
        if len(used) != 1 or abs(guard.coefficient(used[0])) != 1:
            return None
        loops[used[0]] = _guarded(loops[used[0]], guard)
    cut = [name for name, loop in loops.items() if _others(loop, loops.keys())]
    if not cut:
        return Region(tuple(loops.values()))
    return _triangle(loops, cut[0]) if len(cut) == 1 else None


def _others(loop: Loop, names: Collection[str]) -> set[str]:
    """Return the loops in the bounds of `loop`."""
    return {name for bound in (*loop.lower, *loop.upper) for name in bound.names if name in names}


def _triangle(loops: dict[str, Loop], cut: str) -> Region | None:
    """Where one loop's bounds advance with another one, of which only the part is left where some
    instance runs."""
    strip, *more = _others(loops[cut], loops.keys())
    lower, upper = loops[cut].lower, loops[cut].upper
    slopes = [[bound.coefficient(strip) for bound in bounds] for bounds in (lower, upper)]
    if more or any(sum(map(abs, each)) > 1 for each in slopes):
        return None
    for low in lower:
        for high in upper:
            left = high - low - 1
            if abs(left.coefficient(strip)) > 1:
                return None
            if left.coefficient(strip):
                loops[strip] = _guarded(loops[strip], left)
    return Region(tuple(loops.values()), strip, cut)


def _guarded(loop: Loop, guard: Affine) -> Loop:
    """Return `loop` where `guard`, in which its index has the factor 1 or -1, is 0 or more."""
    factor = guard.coefficient(loop.name)
    rest = guard - variable(loop.name) * factor
    if factor == 1:
        return replace(loop, lower=(*loop.lower, -rest))
    return replace(loop, upper=(*loop.upper, rest + 1))


def _extents(region: Region, values: Mapping[str, int]) -> dict[str, int]:
    """Return the length of each loop of a box, and about the greatest one of the loop that is
    cut."""
    found = {each.name: _length(each, values) for each in region.loops if each.name != region.cut}
    if region.strip is not None:
        cut, strip = region.loop(region.cut), region.loop(region.strip)
        first = max(bound.evaluate(values) for bound in strip.lower)
        count = max(found[strip.name], 1)
        some = (first, first + count // 2, first + count - 1)
        found[cut.name] = max(_length(cut, {**values, strip.name: at}) for at in some)
    return found


def _length(loop: Loop, values: Mapping[str, int]) -> int:
    first = max(bound.evaluate(values) for bound in loop.lower)
    return min(bound.evaluate(values) for bound in loop.upper) - first


def loop_of(subscript: Affine, statement: Statement) -> str | None:
    """Return the loop that `subscript` advances with."""
    return next((name for name in subscript.names if name in statement.variables), None)


def _is_simple(access: Access, statement: Statement) -> bool:
    """Tell whether each subscript is at most one loop, another for each, and an offset."""
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
    """Return `access` without offsets: the loops of its subscripts alone."""
    loops = (loop_of(subscript, statement) for subscript in access.subscripts)
    subscripts = tuple(variable(loop) for loop in loops if loop is not None)
    return Access(access.array, subscripts, access.mode, access.operator)


def _in_any_order(held: Held, statement: Statement) -> bool:
    """Tell whether instances of `statement` depend on each other in sums only."""
    target = held.names.nest.statement(statement.name).accesses[0]
    return (
        target.mode is Mode.UPDATE
        and target.operator == "+"
        and not any(
            each.source.name == each.sink.name == statement.name and not each.commuting
            for each in held.dependents
        )
    )
