"""Statements of a nest that run as products of matrices, in packed blocks and register tiles.

    S: C[i, j] += alpha * A[i, k] * B[k, j]     for i in 0..N, j in 1..M, k in 0..K

is a contraction of the part of C at [0, 1] with N rows and M - 1 columns. It may run as one where

- its loops make a box, where no bound or guard has the index of another loop; or a triangle in the
  result, where one has (polyhedral.programs.program_triangle);
- each subscript is one loop and an offset, and of the three classes none is empty;
- no other statement shares its band of loops, so that all of it runs before later statements;
- only instances that add to one element depend on each other: then any order is legal.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from math import ceil, prod

from codegen.records import dataclass
from codegen.types import ScalarType
from polyhedral.affine import Affine, affine, variable
from polyhedral.isl.nest_relations import Relations
from polyhedral.model import Access, Loop, Mode, Statement
from polyhedral.products.contraction import Contraction, contraction
from polyhedral.products.contraction_plan import ContractionPlan, plan_contraction
from polyhedral.products.register_tile import Machine

EDGE = 96
"""The height of the strips that split a triangle into rectangles and small triangles."""
LEAST = 8
"""The least rows, columns and depth for which copies and register tiles pay."""


@dataclass(frozen=True, slots=True)
class Product:
    """The operands of a statement that adds `left * right` to its target, or subtracts it.

    element  the type of all three
    scaled   the operand that a factor multiplies first, where there is a factor
    """

    left: Access
    right: Access
    element: ScalarType
    scaled: Access | None = None


@dataclass(frozen=True, slots=True)
class Region:
    """Loops of a box, or of a triangle, in which the bounds of `cut` advance with `strip`."""

    loops: tuple[Loop, ...]
    strip: str | None = None
    cut: str | None = None

    def loop(self, name: str | None) -> Loop:
        return next(loop for loop in self.loops if loop.name == name)


@dataclass(frozen=True, slots=True)
class ProductPlan:
    """How a statement runs as a contraction.

    region    its loops
    uses      its target, left and right, with the offsets that the contraction lacks
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
        """Return the text of the plan for all sizes."""
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
        """Return the parts of the plan that determine the loops: all but the reasons."""
        return repr(replace(self, contraction=replace(self.contraction, reasons=())))


def plan_product(
    relations: Relations,
    statement: Statement,
    product: Product,
    values: Mapping[str, int],
    machine: Machine,
    threaded: bool,
) -> ProductPlan | None:
    """Return the plan of a statement that has a band of loops of its own.

    None where it is no contraction, or too small for one.

    values  about the values of parameters
    """
    region_, contraction_ = region(statement), as_contraction(statement, product)
    if region_ is None or contraction_ is None or not _in_any_order(relations, statement):
        return None
    extents = _extents(region_, values)
    if not (_pays(contraction_, extents) and _suits(contraction_, region_, extents)):
        return None
    inside, times = _pieces(region_, extents)
    plan = plan_contraction(contraction_, machine, inside, times=times)
    left, right = product.left, product.right
    if _plain(left, statement) != contraction_.left:
        left, right = right, left
    uses = (statement.accesses[0], left, right)
    return ProductPlan(statement.name, region_, uses, plan, product.element, threaded, EDGE)


def _pieces(where: Region, extents: Mapping[str, int]) -> tuple[Mapping[str, int], int]:
    """Return the extents of a product that runs as a unit, and the number of such products.

    In a triangle one for each strip, on the average half as long as the longest.
    """
    if where.strip is None or where.cut is None:
        return extents, 1
    half = ceil(extents[where.cut] / 2)
    strip = {where.strip: min(EDGE, extents[where.strip]), where.cut: half}
    return {**extents, **strip}, ceil(extents[where.strip] / EDGE)


def _pays(contraction_: Contraction, extents: Mapping[str, int]) -> bool:
    classes = (contraction_.rows, contraction_.columns, contraction_.depth)
    return min(prod(extents[x] for x in loops) for loops in classes) >= LEAST


def _suits(contraction_: Contraction, region: Region, extents: Mapping[str, int]) -> bool:
    """Tell whether a triangle is in the result, of one loop a class, and is several strips high."""
    if region.strip is None:
        return True
    row, column = contraction_.rows[0], contraction_.columns[0]
    plain = (region.strip, region.cut) in ((row, column), (column, row))
    high = min(extents[x] for x in (region.strip, region.cut) if x) >= 2 * EDGE
    return plain and high and len(contraction_.statement.loops) == 3


def as_contraction(statement: Statement, product: Product) -> Contraction | None:
    """Return `statement` as a contraction of a box at the origin."""
    uses = (statement.accesses[0], product.left, product.right)
    if not all(_is_simple(use, statement) for use in uses):
        return None
    plain = (_plain(use, statement) for use in uses)
    loops = tuple(Loop(x, (affine(0),), (variable(f"n_{x}"),)) for x in statement.variables)
    contraction_ = contraction(
        Statement(statement.name, loops, tuple(plain), (0,) * (len(loops) + 1))
    )
    if (
        contraction_ is None
        or contraction_.batch
        or not (contraction_.rows and contraction_.columns and contraction_.depth)
    ):
        return None
    scaled = None if product.scaled is None else _plain(product.scaled, statement)
    return contraction_ if scaled in (None, contraction_.left) else None


def region(statement: Statement) -> Region | None:
    """Return the box or the triangle in which `statement` runs.

    Guards of one loop are bounds of that loop.
    """
    loops = {loop.name: loop for loop in statement.loops}
    for guard in statement.guards:
        used = [name for name in guard.names if name in loops]
        if len(used) != 1 or abs(guard.coefficient(used[0])) != 1:
            return None
        loops[used[0]] = _guarded(loops[used[0]], guard)
    cut = [name for name, loop in loops.items() if _bound_loops(loop, loops.keys())]
    if not cut:
        return Region(tuple(loops.values()))
    return _triangle(loops, cut[0]) if len(cut) == 1 else None


def _bound_loops(loop: Loop, names: Collection[str]) -> set[str]:
    """Return the loops in the bounds of `loop`."""
    return {name for bound in (*loop.lower, *loop.upper) for name in bound.names if name in names}


def _triangle(loops: dict[str, Loop], cut: str) -> Region | None:
    """Return a triangle in which the bounds of the loop `cut` advance with one other loop.

    The other loop is limited to iterations in which some instance runs.
    """
    strip, *more = _bound_loops(loops[cut], loops.keys())
    lower, upper = loops[cut].lower, loops[cut].upper
    slopes = [[bound.coefficient(strip) for bound in bounds] for bounds in (lower, upper)]
    if more or any(sum(map(abs, slopes_)) > 1 for slopes_ in slopes):
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
    """Return the length of each loop of a box; of the loop that is cut, about the greatest one."""
    lengths = {loop.name: _length(loop, values) for loop in region.loops if loop.name != region.cut}
    if region.strip is not None:
        cut, strip = region.loop(region.cut), region.loop(region.strip)
        first = max(bound.evaluate(values) for bound in strip.lower)
        count = max(lengths[strip.name], 1)
        some = (first, first + count // 2, first + count - 1)
        lengths[cut.name] = max(_length(cut, {**values, strip.name: at}) for at in some)
    return lengths


def _length(loop: Loop, values: Mapping[str, int]) -> int:
    first = max(bound.evaluate(values) for bound in loop.lower)
    return min(bound.evaluate(values) for bound in loop.upper) - first


def loop_of(subscript: Affine, statement: Statement) -> str | None:
    """Return the loop that `subscript` advances with."""
    return next((name for name in subscript.names if name in statement.variables), None)


def _is_simple(access: Access, statement: Statement) -> bool:
    """Tell whether each subscript is an offset and at most one loop, with no loop twice."""
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


def _in_any_order(relations: Relations, statement: Statement) -> bool:
    """Tell whether instances of `statement` depend on each other in sums only."""
    target = relations.names.nest.statement(statement.name).accesses[0]
    return (
        target.mode is Mode.UPDATE
        and target.operator == "+"
        and not any(
            dependence.source.name == dependence.sink.name == statement.name
            and not dependence.commuting
            for dependence in relations.dependents
        )
    )
