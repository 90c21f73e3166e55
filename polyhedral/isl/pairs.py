"""Whether rows of a schedule keep pairs of instances in order, with a counterexample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from codegen.records import dataclass
from polyhedral.affine import Affine
from polyhedral.band_schedule import Row
from polyhedral.isl.notation import Notation
from polyhedral.model import Nest, Statement

if TYPE_CHECKING:
    import islpy


@dataclass(frozen=True, slots=True)
class Pair:
    """Two instances, by the values of their loops, at some values of the parameters."""

    source: tuple[int, ...]
    sink: tuple[int, ...]
    parameters: tuple[int, ...]


def out_of_order(
    context: islpy.Context,
    nest: Nest,
    relation: str,
    sides: Sequence[tuple[Statement, Sequence[Row]]],
) -> Pair | None:
    """Return a pair of `relation` that the rows of its two statements do not keep in order."""
    import islpy

    names = Notation(nest)
    left = islpy.Map.read_from_str(context, relation)
    for place in range(len(sides[0][1])):
        late = left.intersect(_compare(context, names, sides, place, ">"))
        if not late.is_empty():
            return _sample(late, sides)
        left = left.intersect(_compare(context, names, sides, place, "="))
        if left.is_empty():
            return None
    return _sample(left, sides)


def crossing(
    context: islpy.Context,
    nest: Nest,
    relation: str,
    sides: Sequence[tuple[Statement, Sequence[Row]]],
    outer: int,
    place: int,
    signs: str,
) -> Pair | None:
    """Return a pair whose rows agree before `outer` and differ at `place`.

    There they compare by one of `signs` (`<>`).
    """
    import islpy

    names = Notation(nest)
    left = islpy.Map.read_from_str(context, relation)
    for before in range(outer):
        left = left.intersect(_compare(context, names, sides, before, "="))
    for sign in signs:
        pairs = left.intersect(_compare(context, names, sides, place, sign))
        if not pairs.is_empty():
            return _sample(pairs, sides)
    return None


def _compare(
    context: islpy.Context,
    names: Notation,
    sides: Sequence[tuple[Statement, Sequence[Row]]],
    place: int,
    sign: str,
) -> islpy.Map:
    import islpy

    (source, mine), (sink, theirs) = sides
    arrow = f"{names.instance(source, 'i')} -> {names.instance(sink, 'j')}"
    left = names.row(mine[place], source, "i")
    right = names.row(theirs[place], sink, "j")
    return islpy.Map.read_from_str(context, f"{names.header}{{ {arrow} : {left} {sign} {right} }}")


def _sample(pairs: islpy.Map, sides: Sequence[tuple[Statement, Sequence[Row]]]) -> Pair:
    import islpy

    point = pairs.wrap().sample_point()
    values = _coordinates(
        point, islpy.dim_type.set, len(sides[0][0].loops) + len(sides[1][0].loops)
    )
    parameters = _coordinates(point, islpy.dim_type.param, pairs.dim(islpy.dim_type.param))
    first = len(sides[0][0].loops)
    return Pair(values[:first], values[first:], parameters)


def _coordinates(point: islpy.Point, kind: islpy.dim_type, count: int) -> tuple[int, ...]:
    return tuple(int(point.get_coordinate_val(kind, i).to_python()) for i in range(count))


def instance_where(
    context: islpy.Context, nest: Nest, statement: Statement, conditions: Sequence[Affine]
) -> dict[str, int] | None:
    """Return the loops of an instance of `statement` where all `conditions` are 0 or more.

    None if there is none.
    """
    import islpy

    names = Notation(nest)
    parts = [f"{names.value(condition, statement, 'i')} >= 0" for condition in conditions]
    text = " and ".join([names.domain(statement, "i"), *parts])
    instances = islpy.Set.read_from_str(
        context, f"{names.header}{{ {names.instance(statement, 'i')} : {text} }}"
    )
    if instances.is_empty():
        return None
    values = _coordinates(instances.sample_point(), islpy.dim_type.set, len(statement.loops))
    return dict(zip(statement.variables, values, strict=True))
