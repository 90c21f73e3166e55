"""Plans of nests: which statements share tiles, their sizes, the order inside them.

    components (ISL's scheduler)  →  order inside a tile  →  sizes  →  vectors, jamming, wavefronts

The plan of two statements of a stencil under a time loop prints as

    S0, S1: tile t, i, j by 8, 16, 256; j innermost
      planes: S0: t, i + 2*t, j + 2*t; S1: t, i + 2*t + 1, j + 2*t + 1
      …
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from codegen.records import dataclass
from polyhedral.affine import Affine, affine
from polyhedral.band_schedule import Row, Schedule, Tag, original
from polyhedral.errors import BudgetExceededError
from polyhedral.isl.bands import Component, components
from polyhedral.isl.limits import BUDGET, limited
from polyhedral.isl.nest_relations import Relations, carried, hold
from polyhedral.model import Nest, Statement
from polyhedral.nests.directions import introduced, plane_extents
from polyhedral.nests.point_order import PointOrder, Sized, as_written, choose_order, padded, sized
from polyhedral.nests.register_jam import choose_factors, jammed_at_most
from polyhedral.nests.tile_ends import (
    SEPARATED,
    join_tiles,
    separate_full_tiles,
    separates_full_tiles,
)
from polyhedral.nests.tile_plan import Band, TilePlan, choose_sizes
from polyhedral.nests.vector_rows import vector_rows
from polyhedral.products.register_tile import machine_of
from polyhedral.programs.product_call import SHARING
from polyhedral.programs.program_product import ProductPlan, plan_product
from polyhedral.programs.question import ProgramQuestion

JAMMED = "jammed:"
"""The start of lines about unrolled and jammed loops."""


@dataclass(frozen=True, slots=True)
class ProgramPlan:
    """An order for a nest and its reasons, a line each.

    products  statements that run as contractions; the schedule has one instance of each
    """

    schedule: Schedule
    reasons: tuple[str, ...]
    products: tuple[ProductPlan, ...] = ()

    @property
    def kernel_key(self) -> str:
        """Return the parts of the plan that determine the loops."""
        return repr((self.schedule, [product.kernel_key for product in self.products]))

    @property
    def outline(self) -> str:
        """Return the order and the contractions, for text that goes with the loops.

        Plans with other sizes and reasons but the same loops share it.
        """
        return "\n".join([str(self.schedule), *(product.outline for product in self.products)])

    @property
    def simpler(self) -> ProgramPlan | None:
        """Return a plan with full tiles in the same loops as the others, or None.

        ISL generates these loops sooner. None where full tiles are not separated.
        """
        if not any(row.separates for _, rows in self.schedule.rows for row in rows):
            return None
        return self.join_tiles("ISL ran out of its budget")

    def join_tiles(self, cause: str) -> ProgramPlan:
        """Return a plan with full tiles in the same loops as the others, for the reason `cause`."""
        line_ = f"full tiles: in the same loops as the others, for {cause}"
        reasons = tuple(f"  {line_}" if SEPARATED in line else line for line in self.reasons)
        return replace(self, schedule=join_tiles(self.schedule), reasons=reasons)

    def smaller(self, cause: str) -> ProgramPlan | None:
        """Return a plan with less code, for the reason `cause`.

        Full tiles join the others, else fewer loops are jammed, else none; None where none are
        jammed.
        """
        if self.simpler is not None:
            return self.join_tiles(cause)
        for most, amount in ((1, "one at most"), (0, "none")):
            schedule = jammed_at_most(self.schedule, most)
            if schedule != self.schedule:
                lines = [line for line in self.reasons if not line.startswith(JAMMED)]
                amount = f"{JAMMED} {amount} above a vector loop, for {cause}"
                return replace(self, schedule=schedule, reasons=(*lines, amount))
        return None

    def __str__(self) -> str:
        return "\n".join(self.reasons)


def plan_program(question: ProgramQuestion, budget: int = BUDGET) -> ProgramPlan:
    """Return the plan for `question`.

    The original order, with the reason, where ISL runs out of `budget`.
    """
    nest = question.nest
    try:
        with limited(budget) as context:
            relations = hold(context, nest)
            if question.tiles == () and not question.reorder:
                rows = {
                    statement.name: original(nest).of(statement.name)
                    for statement in nest.statements
                }
                return finished(relations, question, rows, ("as written: asked for",))
            return _planned(relations, question)
    except BudgetExceededError as error:
        return unchanged(nest, error.message)


def unchanged(nest: Nest, reason: str) -> ProgramPlan:
    """Return the plan of the original order of `nest`, for that reason."""
    return ProgramPlan(original(nest), (f"as written: {reason}",))


@dataclass(frozen=True, slots=True)
class _Part:
    """A component with the decisions for it."""

    component: Component
    order: PointOrder
    sizes: TilePlan
    product: ProductPlan | None = None

    @property
    def is_changed(self) -> bool:
        return bool(self.order.planes is not None or self.sizes.tiles or self.product)


def _planned(relations: Relations, question: ProgramQuestion) -> ProgramPlan:
    nest = question.nest
    parts, bands, nest_sizes = [], components(relations), sized(nest, question.values)
    choose = choose_order if question.reorder else _keep_order
    for component in bands:
        order = choose(relations, nest_sizes, bands, component)
        sizes = _sizes(question, component, order)
        parts.append(_Part(component, order, sizes, _product(relations, question, component)))
    if not any(part.is_changed for part in parts):
        rows = {statement.name: original(nest).of(statement.name) for statement in nest.statements}
        reasons = [line for part in parts for line in part.sizes.reasons]
        reasons += _threads(question, ())
        return finished(
            relations, question, rows, ("as written", *(f"  {line}" for line in reasons))
        )
    points: dict[str, tuple[Row, ...]] = {}
    for place, part in enumerate(parts):
        for name, inner_rows in part.order.rows:
            points[name] = (Row("", affine(place)), *inner_rows)
    jammed = {
        name: _jammed(
            relations,
            question,
            padded(points),
            nest.statement(name),
            dict(part.order.private_loops),
            _iterations(nest_sizes, part, name),
        )
        for part in parts
        if part.product is None
        for name in part.component.statements
    }
    return _assembled(question, parts, jammed)


def _keep_order(
    relations: Relations, nest_sizes: Sized, parts: Sequence[Component], component: Component
) -> PointOrder:
    return as_written(nest_sizes.nest, component)


def _product(
    relations: Relations, question: ProgramQuestion, component: Component
) -> ProductPlan | None:
    """Return how the only statement of a component runs as a contraction.

    None where it may not, or where sizes of tiles are requested.
    """
    (name, *siblings) = component.statements
    if siblings or name not in question.products or question.tiles is not None:
        return None
    statement, product = question.nest.statement(name), question.products[name]
    machine = machine_of(question.processor, product.element)
    return plan_product(relations, statement, product, question.values, machine, question.parallel)


# ---------------------------------------------------------------- tiles


def _sizes(question: ProgramQuestion, component: Component, order: PointOrder) -> TilePlan:
    """Return the sizes of the tiles of a component, along its planes."""
    statements = [
        (question.nest.statement(name), planes) for name, planes in component.planes if planes
    ]
    names = _plane_names(question.nest, component)
    if not statements:
        return TilePlan((), (), ("no band of loops that could be tiled",))
    if question.tiles is not None:
        requested = question.tiles
        sizes = (
            tuple(requested[min(at, len(requested) - 1)] for at in range(len(names)))
            if requested
            else ()
        )
        return TilePlan(sizes, tuple(range(len(sizes))), ("sizes: asked for",), names)
    band = Band(
        tuple(statements),
        names,
        plane_extents(statements, question.values),
        {name: order.innermost(name) for name in component.statements},
        question.values,
        question.processor.cache_bytes,
        question.processor.line_bytes,
        question.element_bytes,
    )
    return choose_sizes(band)


def _plane_names(nest: Nest, component: Component) -> tuple[str, ...]:
    """Return a loop's name for each plane: the loop it adds.

    In the first statement where the plane adds a loop.
    """
    width = len(component.parallel)
    labels = [f"c{at}" for at in range(width)]
    for name, planes in reversed(component.planes):
        loops = introduced(planes, nest.statement(name).variables) or ()
        for at, loop in enumerate(loops):
            labels[at] = loop or labels[at]
    return tuple(labels)


def _tile_rows(
    question: ProgramQuestion, part: _Part, names: Sequence[str], planes: Sequence[Affine]
) -> tuple[Row, ...]:
    """Return the rows of the tiles of one statement, the outermost first."""
    sizes, order = part.sizes.sizes, part.sizes.order
    rows = [Row(f"{names[at]}_tile", planes[at], sizes[at]) for at in order]
    if not question.parallel or not rows:
        return tuple(rows)
    free = [place for place, at in enumerate(order) if part.component.parallel[at]]
    if free:
        rows[free[0]] = replace(rows[free[0]], tag=Tag.PARALLEL)
        return tuple(rows)
    if len(rows) == 1:
        return tuple(rows)
    first, second = rows[0], rows[1]
    wave = Row(first.name, first.value, first.size, Tag.SERIAL, ((second.value, second.size),))
    return (wave, replace(second, tag=Tag.PARALLEL), *rows[2:])


def _threads(question: ProgramQuestion, tiles: Sequence[Row]) -> list[str]:
    """Return a line about the loop over `tiles` that threads share, or why there is none.

    No line where there is one thread.
    """
    if not question.parallel:
        return []
    shared = next((row.name for row in tiles if row.tag is Tag.PARALLEL), None)
    if shared is None and tiles:
        return ["threads share: none, for each tile needs those before it"]
    if shared is None:
        return ["threads share: none, for they share tiles and there are none"]
    waves = [row.name for row in tiles if len(row.quotients) > 1]
    diagonals = f", tile by tile along diagonals of {waves[0]} and {shared}" if waves else ""
    return [f"threads share: {shared}{diagonals}"]


def _assembled(
    question: ProgramQuestion,
    parts: Sequence[_Part],
    jammed: Mapping[str, tuple[Row, ...]],
) -> ProgramPlan:
    rows: dict[str, tuple[Row, ...]] = {}
    reasons: list[str] = []
    for place, part in enumerate(parts):
        ends, tile_reasons = _ends(question, part)
        if part.product is not None:
            rows[part.product.statement] = (Row("", affine(place)),)
            reasons += part.product.reasons
            if part.product.threaded:
                reasons.append(f"    {SHARING}")
            continue
        names = _plane_names(question.nest, part.component)
        planes = dict(part.component.planes)
        tiles: tuple[Row, ...] = ()
        for name in part.component.statements:
            tiles = _tile_rows(question, part, names, planes[name]) if part.sizes.tiles else ()
            tiles = separate_full_tiles(tiles) if ends else tiles
            rows[name] = (Row("", affine(place)), *tiles, *jammed[name][1:])
        shared = (f"  {line}" for line in _threads(question, tiles))
        reasons += [*_lines(part, jammed), *tile_reasons, *shared]
    products = tuple(part.product for part in parts if part.product is not None)
    return ProgramPlan(padded(rows), tuple(reasons), products)


def _ends(question: ProgramQuestion, part: _Part) -> tuple[bool, tuple[str, ...]]:
    """Tell whether full tiles run in separate loops, and why.

    No reason where nothing is tiled.
    """
    if part.product is not None or not part.sizes.tiles:
        return False, ()
    statements = [
        (question.nest.statement(name), planes) for name, planes in part.component.planes if planes
    ]
    innermost = {name: part.order.innermost(name) for name in part.component.statements}
    ends, reason = separates_full_tiles(statements, part.sizes.sizes, innermost)
    return ends, (f"  {reason}",)


def _lines(part: _Part, rows: Mapping[str, Sequence[Row]]) -> list[str]:
    component, sizes = part.component, part.sizes
    lines = [f"{', '.join(component.statements)}: {sizes.outline}"]
    if any(planes for _, planes in component.planes):
        plane_texts = "; ".join(
            f"{name}: {', '.join(map(str, planes))}" for name, planes in component.planes
        )
        lines.append(f"  planes: {plane_texts}")
    inner = "; ".join(
        f"{name}: {', '.join(str(row) for row in inner_rows if row.name)}"
        for name, inner_rows in part.order.rows
    )
    lines.append(f"  order inside: {inner}")
    vectors = (
        f"{name}: {next((row.name for row in rows[name] if row.tag is Tag.VECTOR), 'none')}"
        for name in component.statements
    )
    lines.append(f"  vector loop: {'; '.join(vectors)}")
    return [*lines, *(f"  {reason}" for reason in sizes.reasons)]


# ---------------------------------------------------------------- vectors and jamming


def finished(
    relations: Relations,
    question: ProgramQuestion,
    rows: Mapping[str, tuple[Row, ...]],
    reasons: tuple[str, ...],
) -> ProgramPlan:
    """Return a plan without tiles, with vector loops marked where that is legal."""
    schedule = padded(rows)
    marked = {
        statement.name: vector_rows(relations, schedule, statement)
        for statement in question.nest.statements
    }
    return ProgramPlan(padded(marked), reasons)


def _jammed(
    relations: Relations,
    question: ProgramQuestion,
    schedule: Schedule,
    statement: Statement,
    private_loops: Mapping[str, int],
    iterations: Mapping[str, int],
) -> tuple[Row, ...]:
    """Return the rows of `statement` with vectors marked and outer loops jammed.

    iterations  the most iterations of each loop
    """
    rows = list(vector_rows(relations, schedule, statement))
    places = [place for place, row in enumerate(rows) if row.name][-private_loops[statement.name] :]
    if not question.reorder or private_loops[statement.name] < 2:
        return tuple(rows)
    places = _side_by_side(places)[-3:]
    backwards = any(
        carried(relations, schedule, place, statement.name, ">", agreed=places[0])
        for place in places[1:]
    )
    if backwards or any(rows[place].name not in statement.variables for place in places):
        return tuple(rows)
    loops = [rows[place].name for place in places]
    registers = question.processor.registers
    factors = choose_factors(statement, loops[:-1], loops[-1], registers, iterations)
    for place, factor in zip(places[:-1], factors, strict=True):
        rows[place] = replace(rows[place], unroll=factor)
    return tuple(rows)


def _iterations(nest_sizes: Sized, part: _Part, statement: str) -> dict[str, int]:
    """Return the iterations of the loops of `statement`, inside a tile where they are tiled."""
    counts = dict(nest_sizes.iterations[statement])
    planes = dict(part.component.planes)[statement]
    for plane, size in zip(planes, part.sizes.sizes, strict=False):
        if len(plane.names) == 1:
            counts[plane.names[0]] = min(size, counts.get(plane.names[0], size))
    return counts


def _side_by_side(places: Sequence[int]) -> list[int]:
    """Return the last of `places` without gaps between them."""
    adjacent = [places[-1]]
    for place in reversed(places[:-1]):
        if place != adjacent[0] - 1:
            break
        adjacent.insert(0, place)
    return adjacent
