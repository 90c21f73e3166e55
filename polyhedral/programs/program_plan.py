"""Choose how a whole nest runs: which statements share tiles, their sizes, the order inside them.

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
from polyhedral.isl.held import Held, carried, hold
from polyhedral.isl.limits import BUDGET, limited
from polyhedral.model import Nest, Statement
from polyhedral.nests.directions import introduced, plane_extents
from polyhedral.nests.point_order import PointOrder, Sized, as_written, choose_order, padded, sized
from polyhedral.nests.register_jam import choose_factors, jammed_at_most
from polyhedral.nests.tile_ends import OWN_LOOPS, apart, together, told_apart
from polyhedral.nests.tile_plan import Band, TilePlan, choose_sizes
from polyhedral.nests.vector_rows import vector_rows
from polyhedral.products.register_tile import machine_of
from polyhedral.programs.product_call import SHARING
from polyhedral.programs.program_product import ProductPlan, plan_product
from polyhedral.programs.question import ProgramQuestion

JAMMED = "jammed:"
"""How a line about loops begins that are unrolled and jammed."""


@dataclass(frozen=True, slots=True)
class ProgramPlan:
    """An order for a nest and the reasons for it, a line each; of `products`, the schedule says
    when each runs as a whole."""

    schedule: Schedule
    reasons: tuple[str, ...]
    products: tuple[ProductPlan, ...] = ()

    @property
    def kernel_key(self) -> str:
        """What of the plan decides the loops."""
        return repr((self.schedule, [product.kernel_key for product in self.products]))

    @property
    def outline(self) -> str:
        """Return the order and the contractions, for text that goes with the loops: sizes for which
        other reasons lead to the same loops share it."""
        return "\n".join([str(self.schedule), *(product.outline for product in self.products)])

    @property
    def simpler(self) -> ProgramPlan | None:
        """With full tiles in the same loops as the others, which ISL finds sooner; None where they
        are."""
        if not any(row.apart for _, rows in self.schedule.rows for row in rows):
            return None
        return self.together("ISL ran out of its budget")

    def together(self, why: str) -> ProgramPlan:
        """With full tiles in the same loops as the others, for that reason."""
        told = f"full tiles: in the same loops as the others, for {why}"
        reasons = tuple(f"  {told}" if OWN_LOOPS in line else line for line in self.reasons)
        return replace(self, schedule=together(self.schedule), reasons=reasons)

    def smaller(self, why: str) -> ProgramPlan | None:
        """With less code, for that reason: full tiles with the others, else fewer loops jammed,
        else none. None where that is so already."""
        if self.simpler is not None:
            return self.together(why)
        for most, told in ((1, "one at most"), (0, "none")):
            schedule = jammed_at_most(self.schedule, most)
            if schedule != self.schedule:
                lines = [line for line in self.reasons if not line.startswith(JAMMED)]
                told = f"{JAMMED} {told} above a vector loop, for {why}"
                return replace(self, schedule=schedule, reasons=(*lines, told))
        return None

    def __str__(self) -> str:
        return "\n".join(self.reasons)


def plan_program(question: ProgramQuestion, budget: int = BUDGET) -> ProgramPlan:
    """Return the plan for `question`; the order as written, with the reason, where ISL ran out of
    `budget`."""
    nest = question.nest
    try:
        with limited(budget) as context:
            held = hold(context, nest)
            if question.tiles == () and not question.reorder:
                rows = {each.name: original(nest).of(each.name) for each in nest.statements}
                return finished(held, question, rows, ("as written: asked for",))
            return _planned(held, question)
    except BudgetExceededError as error:
        return unchanged(nest, error.message)


def unchanged(nest: Nest, reason: str) -> ProgramPlan:
    """Return `nest` as it is written, for that reason."""
    return ProgramPlan(original(nest), (f"as written: {reason}",))


@dataclass(frozen=True, slots=True)
class _Part:
    """A component with what was decided for it."""

    component: Component
    order: PointOrder
    sizes: TilePlan
    product: ProductPlan | None = None

    @property
    def changed(self) -> bool:
        return bool(self.order.planes is not None or self.sizes.tiles or self.product)


def _planned(held: Held, question: ProgramQuestion) -> ProgramPlan:
    nest = question.nest
    parts, found, known = [], components(held), sized(nest, question.values)
    choose = choose_order if question.reorder else _keep_order
    for component in found:
        order = choose(held, known, found, component)
        sizes = _sizes(question, component, order)
        parts.append(_Part(component, order, sizes, _product(held, question, component)))
    if not any(part.changed for part in parts):
        rows = {each.name: original(nest).of(each.name) for each in nest.statements}
        reasons = [line for part in parts for line in part.sizes.reasons]
        reasons += _threads(question, ())
        return finished(held, question, rows, ("as written", *(f"  {line}" for line in reasons)))
    points: dict[str, tuple[Row, ...]] = {}
    for place, part in enumerate(parts):
        for name, own in part.order.rows:
            points[name] = (Row("", affine(place)), *own)
    jammed = {
        name: _jammed(
            held,
            question,
            padded(points),
            nest.statement(name),
            dict(part.order.own),
            _iterations(known, part, name),
        )
        for part in parts
        if part.product is None
        for name in part.component.statements
    }
    return _assembled(question, parts, jammed)


def _keep_order(
    held: Held, known: Sized, parts: Sequence[Component], component: Component
) -> PointOrder:
    return as_written(known.nest, component)


def _product(held: Held, question: ProgramQuestion, component: Component) -> ProductPlan | None:
    """Return how the only statement of a component runs as a contraction, where it may and tiles of
    other sizes are not asked for."""
    (name, *others) = component.statements
    if others or name not in question.products or question.tiles is not None:
        return None
    statement, product = question.nest.statement(name), question.products[name]
    machine = machine_of(question.processor, product.element)
    return plan_product(held, statement, product, question.values, machine, question.parallel)


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
        given = question.tiles
        sizes = tuple(given[min(at, len(given) - 1)] for at in range(len(names))) if given else ()
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
    """Return a loop's name for each plane: the one it adds, in the first statement where it adds
    one."""
    width = len(component.parallel)
    found = [f"c{at}" for at in range(width)]
    for name, planes in reversed(component.planes):
        own = introduced(planes, nest.statement(name).variables) or ()
        for at, loop in enumerate(own):
            found[at] = loop or found[at]
    return tuple(found)


def _tile_rows(
    question: ProgramQuestion, part: _Part, names: Sequence[str], planes: Sequence[Affine]
) -> tuple[Row, ...]:
    """Return the rows of the tiles that one statement is in, the outermost first."""
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
    """Which loop over `tiles` threads share, or why none; nothing where there is one thread."""
    if not question.parallel:
        return []
    shared = next((row.name for row in tiles if row.tag is Tag.PARALLEL), None)
    if shared is None and tiles:
        return ["threads share: none, for each tile needs those before it"]
    if shared is None:
        return ["threads share: none, for they share tiles and there are none"]
    waves = [row.name for row in tiles if len(row.quotients) > 1]
    along = f", tile by tile along diagonals of {waves[0]} and {shared}" if waves else ""
    return [f"threads share: {shared}{along}"]


def _assembled(
    question: ProgramQuestion,
    parts: Sequence[_Part],
    jammed: Mapping[str, tuple[Row, ...]],
) -> ProgramPlan:
    rows: dict[str, tuple[Row, ...]] = {}
    reasons: list[str] = []
    for place, part in enumerate(parts):
        ends, why = _ends(question, part)
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
            tiles = apart(tiles) if ends else tiles
            rows[name] = (Row("", affine(place)), *tiles, *jammed[name][1:])
        shared = (f"  {line}" for line in _threads(question, tiles))
        reasons += [*_told(part, jammed), *why, *shared]
    products = tuple(part.product for part in parts if part.product is not None)
    return ProgramPlan(padded(rows), tuple(reasons), products)


def _ends(question: ProgramQuestion, part: _Part) -> tuple[bool, tuple[str, ...]]:
    """Tell whether full tiles run in loops of their own, and why; no reason where nothing is
    tiled."""
    if part.product is not None or not part.sizes.tiles:
        return False, ()
    statements = [
        (question.nest.statement(name), planes) for name, planes in part.component.planes if planes
    ]
    innermost = {name: part.order.innermost(name) for name in part.component.statements}
    ends, why = told_apart(statements, part.sizes.sizes, innermost)
    return ends, (f"  {why}",)


def _told(part: _Part, rows: Mapping[str, Sequence[Row]]) -> list[str]:
    component, sizes = part.component, part.sizes
    lines = [f"{', '.join(component.statements)}: {sizes.outline}"]
    if any(planes for _, planes in component.planes):
        shown = "; ".join(
            f"{name}: {', '.join(map(str, planes))}" for name, planes in component.planes
        )
        lines.append(f"  planes: {shown}")
    inner = "; ".join(
        f"{name}: {', '.join(str(row) for row in own if row.name)}" for name, own in part.order.rows
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
    held: Held,
    question: ProgramQuestion,
    rows: Mapping[str, tuple[Row, ...]],
    reasons: tuple[str, ...],
) -> ProgramPlan:
    """Return a plan without tiles: loops that can be are marked for vectors."""
    schedule = padded(rows)
    marked = {each.name: vector_rows(held, schedule, each) for each in question.nest.statements}
    return ProgramPlan(padded(marked), reasons)


def _jammed(
    held: Held,
    question: ProgramQuestion,
    schedule: Schedule,
    statement: Statement,
    own: Mapping[str, int],
    iterations: Mapping[str, int],
) -> tuple[Row, ...]:
    """Return the rows of `statement` with vectors marked and the loops above the innermost jammed;
    these have at most so many `iterations`."""
    rows = list(vector_rows(held, schedule, statement))
    places = [place for place, row in enumerate(rows) if row.name][-own[statement.name] :]
    if not question.reorder or own[statement.name] < 2:
        return tuple(rows)
    places = _side_by_side(places)[-3:]
    backwards = any(
        carried(held, schedule, place, statement.name, ">", agreed=places[0])
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


def _iterations(known: Sized, part: _Part, statement: str) -> dict[str, int]:
    """Count how many iterations the loops of `statement` have, inside a tile where they are
    tiled."""
    found = dict(known.iterations[statement])
    planes = dict(part.component.planes)[statement]
    for plane, size in zip(planes, part.sizes.sizes, strict=False):
        if len(plane.names) == 1:
            found[plane.names[0]] = min(size, found.get(plane.names[0], size))
    return found


def _side_by_side(places: Sequence[int]) -> list[int]:
    """Return the last of `places` without gaps between them."""
    kept = [places[-1]]
    for place in reversed(places[:-1]):
        if place != kept[0] - 1:
            break
        kept.insert(0, place)
    return kept
